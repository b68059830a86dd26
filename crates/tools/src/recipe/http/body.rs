//! JSON bodies with placeholders. A string that is just one placeholder is replaced by the value itself, of any type.

use std::fmt;

use serde_json::{Map, Value};

use crate::recipe::argument::ArgumentValues;
use crate::recipe::template::Template;

/// JSON with placeholders.
#[derive(Clone, PartialEq)]
pub enum JsonTemplate {
    /// A constant value.
    Plain(Value),
    /// A text with placeholders, or a single placeholder.
    Text(Template),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(String, Self)>),
}

impl JsonTemplate {
    /// Its templates.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Text(template) => vec![template],
            Self::List(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Object(members) => {
                members.iter().flat_map(|(_, json_template)| json_template.templates()).collect()
            }
        }
    }

    /// The JSON with its values. Members and items whose argument is absent are omitted.
    pub(super) fn fill(&self, values: &ArgumentValues<'_>) -> Option<Value> {
        match self {
            Self::Plain(value) => Some(value.clone()),
            Self::Text(template) => match template.single_argument() {
                Some(name) => values.get(name).cloned(),
                None => template.fill(|name| values.to_text(name)).map(Value::String),
            },
            Self::List(items) => Some(items.iter().filter_map(|item| item.fill(values)).collect()),
            Self::Object(members) => {
                let filled =
                    |(key, value): &(String, Self)| Some((key.clone(), value.fill(values)?));
                Some(Value::Object(members.iter().filter_map(filled).collect::<Map<_, _>>()))
            }
        }
    }
}

impl fmt::Debug for JsonTemplate {
    /// Omits the values, which may come from the environment and be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.templates()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::recipe::argument::ArgumentType;
    use crate::recipe::argument::tests::argument;

    #[test]
    fn values_keep_their_types_and_cannot_leave_their_strings() {
        let text = |text: &str| JsonTemplate::Text(Template::parse(text).unwrap());
        let body = JsonTemplate::Object(vec![
            ("title".into(), text("Re: {a}")),
            ("count".into(), text("{n}")),
            ("none".into(), text("{b}")),
            ("fixed".into(), JsonTemplate::Plain(json!(true))),
            ("list".into(), JsonTemplate::List(vec![text("{a}"), text("{b}")])),
        ]);
        let arguments = [
            argument("a", ArgumentType::String),
            argument("b", ArgumentType::String),
            argument("n", ArgumentType::Integer),
        ];
        let hostile = r#"","admin":true,"x":""#;
        let values = ArgumentValues::new(&arguments, json!({ "a": hostile, "n": 3 }));
        let expected = json!({
            "title": format!("Re: {hostile}"), "count": 3, "fixed": true, "list": [hostile],
        });
        assert_eq!(body.fill(&values), Some(expected));
    }
}
