//! Asks for the fields of a form one by one.

use std::io::BufRead;

use creole::Schema;
use creole::proto::wire::Raw;
use serde_json::{Map, Value};

use crate::session::input_requests::field::FormField;
use crate::session::input_requests::{CANCEL, DECLINE, FormAnswer, TypedLine, read_typed};
use crate::{output, schema_property};

/// The maximum number of attempts per field.
const MAX_TRIES: usize = 10;

/// The maximum number of fields.
const MAX_FIELDS: usize = 100;

/// Asks for every field of a form.
pub(crate) fn ask(schema: &Raw, input: &mut impl BufRead) -> FormAnswer {
    // A parsed object does not keep the order in which the form was written.
    let names = schema_property::names(schema.as_str());
    let schema: Value = schema.decode().unwrap_or(Value::Null);
    let Some(properties) = schema["properties"].as_object().filter(|all| all.len() <= MAX_FIELDS)
    else {
        output::write_message("creole: declined, because the form of the server is invalid");
        return FormAnswer::Decline;
    };
    output::write_message(&format!("({DECLINE} declines, {CANCEL} cancels)"));
    let mut content = Map::new();
    for name in &names {
        let schema_of_field = &properties[name];
        let required = schema["required"].as_array();
        let is_required =
            required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)));
        let field = FormField::new(name, schema_of_field, is_required);
        match ask_field(&field, schema_of_field, input) {
            Ok(Some(value)) => _ = content.insert(name.clone(), value),
            Ok(None) => {}
            Err(answer) => return answer,
        }
    }
    if properties.is_empty() {
        return confirm(input);
    }
    FormAnswer::Accept(content)
}

/// A form without fields only needs a confirmation.
fn confirm(input: &mut impl BufRead) -> FormAnswer {
    output::prompt("  Enter to accept: ");
    match read_typed(input) {
        TypedLine::Line(_) => FormAnswer::Accept(Map::new()),
        TypedLine::Decline => FormAnswer::Decline,
        TypedLine::Cancel => FormAnswer::Cancel,
    }
}

/// Asks until the value is valid.
fn ask_field(
    field: &FormField<'_>,
    schema: &Value,
    input: &mut impl BufRead,
) -> Result<Option<Value>, FormAnswer> {
    let schema = Schema::new(schema.to_string());
    for _ in 0..MAX_TRIES {
        output::prompt(&output::printable(&field.prompt()));
        let line = match read_typed(input) {
            TypedLine::Line(line) => line,
            TypedLine::Decline => return Err(FormAnswer::Decline),
            TypedLine::Cancel => return Err(FormAnswer::Cancel),
        };
        let value = match field.read(&line) {
            Ok(None) => return Ok(None),
            Ok(Some(value)) => value,
            Err(problem) => {
                output::write_message(&format!("    {problem}"));
                continue;
            }
        };
        match schema.validate(&value) {
            Err(violations) if !violations.iter().any(|one| one.is_broken_schema()) => {
                for violation in violations {
                    output::write_message(&format!(
                        "    the value {}",
                        output::printable(&violation.message)
                    ));
                }
            }
            _ => return Ok(Some(value)),
        }
    }
    output::write_message("creole: cancelled after too many invalid values");
    Err(FormAnswer::Cancel)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_prompted_in_the_order_of_the_form() {
        let schema =
            Raw::parse(r#"{"properties":{"zoo":{"type":"integer"},"ape":{"type":"string"}}}"#);
        let answer = ask(&schema.unwrap(), &mut "5\nfive\n".as_bytes());
        assert_eq!(answer, accepted(json!({"zoo": 5, "ape": "five"})));
    }

    #[test]
    fn an_invalid_date_is_prompted_again() {
        let schema = json!({"properties": {"day": {"type": "string", "format": "date"}}});
        let answer = fill(&schema, "notadate\n2026-02-30\n2026-02-28\n");
        assert_eq!(answer, accepted(json!({"day": "2026-02-28"})));
    }

    fn fill(schema: &Value, typed: &str) -> FormAnswer {
        ask(&Raw::from_value(schema), &mut typed.as_bytes())
    }

    fn accepted(content: Value) -> FormAnswer {
        let Value::Object(content) = content else { panic!("not an object") };
        FormAnswer::Accept(content)
    }

    #[test]
    fn fields_are_prompted_one_by_one_until_they_are_valid() {
        let schema = json!({
            "type": "object",
            "properties": {
                "age": {"type": "integer", "minimum": 18},
                "name": {"type": "string", "minLength": 2},
                "yes": {"type": "boolean"}
            },
            "required": ["age", "name"]
        });
        let answer = fill(&schema, "old\n17\n18\n\nA\nAnn\ny\n");
        assert_eq!(answer, accepted(json!({"age": 18, "name": "Ann", "yes": true})));
        assert_eq!(fill(&schema, "20\nAnn\n\n"), accepted(json!({"age": 20, "name": "Ann"})));
        assert_eq!(fill(&schema, "20\n!no\n"), FormAnswer::Decline);
        assert_eq!(fill(&schema, "20\n"), FormAnswer::Cancel);
    }

    #[test]
    fn invalid_input_ends_the_prompt_after_some_tries() {
        let schema = json!({"properties": {"n": {"type": "number"}}});
        assert_eq!(fill(&schema, &"x\n".repeat(50)), FormAnswer::Cancel);
    }

    #[test]
    fn a_form_without_fields_is_agreed_to() {
        assert_eq!(fill(&json!({"properties": {}}), "\n"), FormAnswer::Accept(Map::new()));
        assert_eq!(fill(&json!([]), "\n"), FormAnswer::Decline);
    }
}
