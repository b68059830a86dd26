//! One field of a form: its prompt, and the parsing of its input.

use serde_json::{Value, json};

use crate::session::input_requests::format::TextFormat;

/// A field of a form.
#[derive(Debug)]
pub(crate) struct FormField<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
    kind: FieldKind,
}

#[derive(Debug, PartialEq)]
enum FieldKind {
    Text,
    /// Text of a certain format.
    Formatted(TextFormat),
    Integer,
    Number,
    Boolean,
    /// One of these values, each with its title.
    Choice(Vec<(Value, String)>),
    /// Any number of these values.
    Choices(Vec<(Value, String)>),
}

impl<'a> FormField<'a> {
    pub(crate) fn new(name: &'a str, schema: &'a Value, is_required: bool) -> Self {
        let kind = match (choices(schema), schema["type"].as_str()) {
            (Some(choices), _) => FieldKind::Choice(choices),
            (None, Some("array")) => {
                choices(&schema["items"]).map_or(FieldKind::Text, FieldKind::Choices)
            }
            (None, Some("integer")) => FieldKind::Integer,
            (None, Some("number")) => FieldKind::Number,
            (None, Some("boolean")) => FieldKind::Boolean,
            _ => match schema["format"].as_str().and_then(TextFormat::by_name) {
                Some(format) => FieldKind::Formatted(format),
                None => FieldKind::Text,
            },
        };
        Self { name, schema, is_required, kind }
    }

    /// The lines of the prompt. The user types after the last one.
    pub(crate) fn prompt(&self) -> String {
        let text = |key: &str| self.schema[key].as_str();
        let mut lines = format!("  {}", text("title").unwrap_or(self.name));
        if let Some(description) = text("description") {
            lines.push_str(&format!(": {description}"));
        }
        if let FieldKind::Choice(choices) | FieldKind::Choices(choices) = &self.kind {
            for (number, (_, title)) in choices.iter().enumerate() {
                lines.push_str(&format!("\n    {}  {title}", number + 1));
            }
        }
        let need = match (self.schema.get("default"), self.is_required) {
            (Some(default), _) => format!("Enter for {}", self.title_of(default)),
            (None, true) => "required".to_owned(),
            (None, false) => "Enter for none".to_owned(),
        };
        format!("{lines}\n    {}, {need}: ", self.expected())
    }

    /// The title of a value in the form.
    fn title_of(&self, value: &Value) -> String {
        let choices = match &self.kind {
            FieldKind::Choice(choices) | FieldKind::Choices(choices) => choices.as_slice(),
            _ => &[],
        };
        let title = |value: &Value| {
            let choice = choices.iter().find(|(known, _)| known == value);
            choice.map_or_else(|| value_text(value), |(_, title)| title.clone())
        };
        match value {
            Value::Array(values) if !choices.is_empty() => {
                values.iter().map(title).collect::<Vec<_>>().join(", ")
            }
            value => title(value),
        }
    }

    fn expected(&self) -> &'static str {
        match &self.kind {
            FieldKind::Text => "text",
            FieldKind::Formatted(format) => format.expected(),
            FieldKind::Integer => "an integer",
            FieldKind::Number => "a number",
            FieldKind::Boolean => "yes or no",
            FieldKind::Choice(_) => "its number",
            FieldKind::Choices(_) => "numbers, separated by commas",
        }
    }

    /// Parses the line. `None` if the field stays empty.
    pub(crate) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match (self.schema.get("default"), self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, true) => Err(format!("a value is required; write {}", self.expected())),
                (None, false) => Ok(None),
            };
        }
        let wrong = || format!("invalid value `{line}`; write {}", self.expected());
        let value = match &self.kind {
            FieldKind::Text => json!(line),
            FieldKind::Formatted(format) if format.matches(line) => json!(line),
            FieldKind::Formatted(_) => return Err(wrong()),
            FieldKind::Integer => json!(line.parse::<i64>().map_err(|_| wrong())?),
            FieldKind::Number => {
                let number = line.parse::<f64>().ok().filter(|number| number.is_finite());
                json!(number.ok_or_else(wrong)?)
            }
            FieldKind::Boolean => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return Err(wrong()),
            },
            FieldKind::Choice(choices) => pick_choice(choices, line).ok_or_else(wrong)?,
            FieldKind::Choices(choices) => {
                let picked = line.split(',').map(|word| pick_choice(choices, word.trim()));
                Value::Array(picked.collect::<Option<_>>().ok_or_else(wrong)?)
            }
        };
        Ok(Some(value))
    }
}

/// The choice with this number, value or title.
fn pick_choice(choices: &[(Value, String)], word: &str) -> Option<Value> {
    let by_number =
        word.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let by_name =
        || choices.iter().find(|(value, title)| title == word || value_text(value) == word);
    by_number.or_else(by_name).map(|(value, _)| value.clone())
}

/// The values of an enumeration, in any of the notations of forms.
fn choices(schema: &Value) -> Option<Vec<(Value, String)>> {
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(titled) = titled {
        let one = |choice: &Value| {
            let value = choice.get("const")?.clone();
            let title = choice["title"].as_str().map_or_else(|| value_text(&value), str::to_owned);
            Some((value, title))
        };
        return titled.iter().map(one).collect();
    }
    let values = schema["enum"].as_array()?;
    let title = |index: usize, value: &Value| {
        schema["enumNames"][index].as_str().map_or_else(|| value_text(value), str::to_owned)
    };
    let with_title = |(index, value): (usize, &Value)| (value.clone(), title(index, value));
    Some(values.iter().enumerate().map(with_title).collect())
}

/// A value as plain text.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_numbered_and_accepted_by_number_or_name() {
        let schema = json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]});
        let field = FormField::new("colour", &schema, true);
        let expected = "  colour\n    1  Red\n    2  Green\n    its number, required: ";
        assert_eq!(field.prompt(), expected);
        assert_eq!(field.read("2"), Ok(Some(json!("g"))));
        assert_eq!(field.read("Red"), Ok(Some(json!("r"))));
        assert!(field.read("3").is_err() && field.read("").is_err() && field.read("0").is_err());
    }

    #[test]
    fn several_may_be_chosen_where_the_form_says_so() {
        let items = json!({"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]});
        let schema = json!({"type": "array", "items": items});
        let field = FormField::new("letters", &schema, false);
        assert_eq!(field.read("1, 2"), Ok(Some(json!(["a", "b"]))));
        assert_eq!(field.read(""), Ok(None));
        assert!(field.read("1,9").is_err());
    }

    #[test]
    fn a_default_is_shown_by_its_title() {
        let items = json!({"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]});
        let schema = json!({"type": "array", "items": items, "default": ["a", "b"]});
        let prompt = FormField::new("letters", &schema, false).prompt();
        assert!(prompt.ends_with("separated by commas, Enter for A, B: "), "{prompt}");
        let schema = json!({"enum": ["r"], "enumNames": ["Red"], "default": "r"});
        assert!(FormField::new("colour", &schema, false).prompt().ends_with("Enter for Red: "));
    }

    #[test]
    fn text_of_a_certain_form_is_read_as_such() {
        let schema = json!({"type": "string", "format": "date"});
        let field = FormField::new("day", &schema, true);
        assert_eq!(field.prompt(), "  day\n    a date such as 2027-01-31, required: ");
        assert_eq!(field.read("2027-01-31"), Ok(Some(json!("2027-01-31"))));
        let expected = "invalid value `notadate`; write a date such as 2027-01-31";
        assert_eq!(field.read("notadate"), Err(expected.to_owned()));
    }

    #[test]
    fn an_omitted_field_has_its_default() {
        let schema =
            json!({"type": "boolean", "default": true, "title": "Sure", "description": "Really?"});
        let field = FormField::new("sure", &schema, true);
        assert_eq!(field.prompt(), "  Sure: Really?\n    yes or no, Enter for true: ");
        assert_eq!(field.read(""), Ok(Some(json!(true))));
        assert_eq!(field.read("No"), Ok(Some(json!(false))));
    }
}
