//! Parses tool arguments of the form `name=value` according to the tool's schema.

use creole_tools::ordered_value::OrderedValue;
use serde_json::Value;

use crate::failure::{Failure, suggestion};
use crate::schema_property;
use crate::schema_property::kind_of;

/// Keys of a schema that may allow properties which it does not name.
const OPEN_SCHEMA_KEYS: [&str; 8] = [
    "allOf",
    "anyOf",
    "oneOf",
    "$ref",
    "$dynamicRef",
    "if",
    "patternProperties",
    "unevaluatedProperties",
];

/// The object of the arguments. Checks for unknown and for missing names. `text` is the schema as the server wrote it.
pub(crate) fn typed_arguments(
    tool: &str,
    text: &str,
    given: &[String],
) -> Result<OrderedValue, Failure> {
    let schema: Value = serde_json::from_str(text).unwrap_or_default();
    let schema = &schema;
    let mut arguments: Vec<(String, OrderedValue)> = Vec::new();
    for entry in given {
        let (name, value) = split_argument(entry)?;
        if schema["properties"].get(name).is_none() && is_closed(schema) {
            return Err(Failure::Usage(unknown_argument(
                tool,
                &schema_property::names(text),
                name,
            )));
        }
        let value = parse_typed(tool, schema, name, value).map_err(Failure::Usage)?;
        if arguments.iter().any(|(known, _)| known == name) {
            return Err(Failure::Usage(format!("the argument `{name}` is given twice")));
        }
        arguments.push((name.to_owned(), value.into()));
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<String> = required
        .filter(|name| !arguments.iter().any(|(known, _)| known == name))
        .map(|name| format!("--arg {name}={}", placeholder(schema, name)))
        .collect();
    if !missing.is_empty() {
        let message = format!("the tool `{tool}` also needs {}", missing.join(" "));
        return Err(Failure::Usage(message));
    }
    Ok(OrderedValue::Object(arguments))
}

/// The name and the text of an argument.
pub(crate) fn split_argument(entry: &str) -> Result<(&str, &str), Failure> {
    let parts = entry.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.ok_or_else(|| Failure::Usage(format!("invalid argument `{entry}`; write `name=value`")))
}

/// Whether the schema names every allowed argument. A schema without properties, or one that allows additional ones,
/// does not.
fn is_closed(schema: &Value) -> bool {
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => true,
        Some(_) => false,
        None => {
            schema["properties"].is_object()
                && !OPEN_SCHEMA_KEYS.iter().any(|key| schema.get(key).is_some())
        }
    }
}

fn parse_typed(tool: &str, schema: &Value, name: &str, text: &str) -> Result<Value, String> {
    let kinds = schema_property::types(&schema["properties"][name], schema);
    if kinds.is_empty() {
        return Ok(parse_untyped(text));
    }
    let read =
        kinds.iter().filter(|kind| *kind != "string").find_map(|kind| parse_value(kind, text));
    let is_text = kinds.iter().any(|kind| kind == "string");
    read.or_else(|| is_text.then(|| Value::String(text.to_owned()))).ok_or_else(|| {
        let expected: Vec<&str> = kinds.iter().map(|kind| type_phrase(kind)).collect();
        format!("the argument `{name}` of `{tool}` must be {}, not `{text}`", expected.join(" or "))
    })
}

/// Parses a value without a type in the schema: as JSON if it is valid, otherwise as text.
fn parse_untyped(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The error for an unknown argument, with a similar name and the way to send it anyway.
fn unknown_argument(tool: &str, known: &[String], name: &str) -> String {
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    if names.is_empty() {
        return format!("the tool `{tool}` takes no arguments, so `{name}` is not sent");
    }
    format!(
        "the tool `{tool}` has no argument `{name}`: {} (`--args` sends a JSON object unchecked)",
        suggestion(name, &names)
    )
}

/// The text as a value of this type, if it is valid.
fn parse_value(kind: &str, text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let fits = match kind {
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n % 1.0 == 0.0)
        }
        other => kind_of(&value) == other,
    };
    fits.then_some(value)
}

fn type_phrase(kind: &str) -> &str {
    match kind {
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "`true` or `false`",
        "array" => "a JSON list such as `[1,2]`",
        "object" => "a JSON object such as `{\"a\":1}`",
        "null" => "`null`",
        other => other,
    }
}

/// A placeholder for a missing value.
fn placeholder(schema: &Value, name: &str) -> String {
    let kinds = schema_property::types(&schema["properties"][name], schema);
    kinds.first().map_or("VALUE", String::as_str).to_uppercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "share": {"type": "number"},
                "sure": {"type": "boolean"},
                "list": {"type": "array"},
                "maybe": {"anyOf": [{"$ref": "#/$defs/Count"}, {"type": "null"}]},
                "either": {"type": ["integer", "string"]},
                "colour": {"enum": ["red", "green"]},
                "anything": {}
            },
            "$defs": {"Count": {"type": "integer"}},
            "additionalProperties": false
        })
    }

    fn read_as(entry: &str) -> Result<Value, String> {
        let (name, text) = split_argument(entry).unwrap();
        parse_typed("tool", &schema(), name, text)
    }

    #[test]
    fn values_are_read_as_the_schema_says() {
        assert_eq!(read_as("text=5"), Ok(json!("5")));
        assert_eq!(read_as("text=a=b"), Ok(json!("a=b")));
        assert_eq!(read_as("count=5"), Ok(json!(5)));
        assert_eq!(read_as("share=0.5"), Ok(json!(0.5)));
        assert_eq!(read_as("sure=true"), Ok(json!(true)));
        assert_eq!(read_as("list=[1]"), Ok(json!([1])));
        assert_eq!(read_as("maybe=7"), Ok(json!(7)));
        assert_eq!(read_as("maybe=null"), Ok(json!(null)));
        assert_eq!(read_as("either=7"), Ok(json!(7)));
        assert_eq!(read_as("either=seven"), Ok(json!("seven")));
        assert_eq!(read_as("colour=red"), Ok(json!("red")));
        assert_eq!(read_as("anything={\"a\":1}"), Ok(json!({"a": 1})));
        assert_eq!(read_as("anything=word"), Ok(json!("word")));
    }

    #[test]
    fn an_invalid_value_is_refused_with_the_expected_type() {
        let problem = read_as("count=many").unwrap_err();
        assert_eq!(problem, "the argument `count` of `tool` must be an integer, not `many`");
        assert!(read_as("sure=yes").unwrap_err().ends_with("must be `true` or `false`, not `yes`"));
        assert!(read_as("maybe=x").unwrap_err().ends_with("must be an integer or `null`, not `x`"));
    }

    fn error_of(schema: &str, entry: &str) -> Option<String> {
        typed_arguments("tool", schema, &[entry.to_owned()])
            .err()
            .map(|failure| failure.to_string())
    }

    #[test]
    fn an_unknown_name_is_refused_with_a_similar_one() {
        let schema = r#"{"properties":{"zoo":{},"message":{},"ape":{}}}"#;
        let expected = "error: the tool `tool` has no argument `mesage`: did you mean `message`? \
                        (`--args` sends a JSON object unchecked)";
        assert_eq!(error_of(schema, "mesage=1").as_deref(), Some(expected));
        let all = error_of(schema, "x=1").unwrap();
        assert!(all.contains("it has `zoo`, `message`, `ape`"), "{all}");
        let none = "error: the tool `tool` takes no arguments, so `x` is not sent";
        assert_eq!(error_of(r#"{"properties":{}}"#, "x=1").as_deref(), Some(none));
        let closed = r#"{"properties":{"a":{}},"additionalProperties":false}"#;
        assert!(error_of(closed, "b=1").is_some());
    }

    #[test]
    fn a_schema_that_welcomes_others_gets_them() {
        for open in [
            "{}",
            r#"{"properties":{"a":{}},"additionalProperties":true}"#,
            r#"{"properties":{"a":{}},"additionalProperties":{"type":"string"}}"#,
            r#"{"properties":{"a":{}},"patternProperties":{"^x":{}}}"#,
            r#"{"properties":{"a":{}},"anyOf":[{"properties":{"x":{}}}]}"#,
        ] {
            assert_eq!(error_of(open, "x=1"), None, "{open}");
        }
    }

    #[test]
    fn arguments_are_sent_in_the_order_in_which_they_are_given() {
        let given = ["z=1".to_owned(), "a=x".to_owned()];
        assert_eq!(
            typed_arguments("tool", "{}", &given).unwrap().to_string(),
            r#"{"z":1,"a":"x"}"#
        );
    }

    #[test]
    fn missing_and_duplicate_arguments_are_reported() {
        let schema = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
        let schema = schema.to_string();
        let message = typed_arguments("add", &schema, &[]).unwrap_err().to_string();
        assert_eq!(message, "error: the tool `add` also needs --arg a=INTEGER");
        let twice = ["a=1".to_owned(), "a=2".to_owned()];
        assert!(typed_arguments("add", &schema, &twice).unwrap_err().to_string().contains("twice"));
        assert!(split_argument("=1").is_err() && split_argument("a").is_err());
    }
}
