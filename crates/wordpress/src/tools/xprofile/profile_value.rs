//! The value of a profile field: its conversion to the site's format, and its verification.

use std::collections::BTreeSet;

use creole::{BoxFuture, ToolError};
use serde_json::{Value, json};

use crate::site::site_error::strip_markup;
use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::ToolCall;

/// Field types with several choices. The site reads their value as the text of a JSON array: an actual array causes a
/// PHP fatal error, and any other text deletes the choices.
const CHOICES: &[&str] = &["checkbox", "multiselectbox"];
/// The field type for dates, which the site accepts only with a zero time.
const DATE: &str = "datebox";
/// The field type for several addresses, which are sent unchanged.
const NETWORKS: &str = "socialnetworks";

/// Reads the type of the field, sends the value in the format of that type, and verifies the stored value.
pub(crate) fn update<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let field = SiteRequest::get(call.path("/buddyboss/v1/xprofile/fields/{field_id}"));
        let field = call.request(&field.with_query("_fields", "id,type")).await?.body;
        let kind = field["type"].as_str().unwrap_or_default();
        let wanted = FieldValue::for_field_type(kind, &call.arguments["value"])
            .map_err(ToolError::failed)?;
        let mut request = call.build_request();
        if let Some(body) = &mut request.body {
            body["value"] = wanted.to_json();
        }
        let response = call.request(&request).await?;
        match wanted.is_stored(&response.body["value"]) {
            true => Ok(response),
            false => {
                let stored = display_value(&response.body["value"]);
                Err(ToolError::failed(format!(
                    "the site responded, but the field now holds `{stored}`, not what was sent"
                )))
            }
        }
    })
}

/// The wanted value of a field.
#[derive(Clone, Debug, PartialEq)]
enum FieldValue {
    One(String),
    Several(Vec<String>),
    /// A value in its own format: only its existence can be verified.
    Raw(Value),
}

impl FieldValue {
    /// The value of a call, for a field of this type.
    fn for_field_type(kind: &str, value: &Value) -> Result<Self, String> {
        let texts = |items: &[Value]| -> Vec<String> {
            items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        match value {
            value if kind == NETWORKS => Ok(Self::Raw(value.clone())),
            Value::Array(items) if CHOICES.contains(&kind) => Ok(Self::Several(texts(items))),
            Value::Array(items) => match &texts(items)[..] {
                [] => Ok(Self::One(String::new())),
                [one] => Ok(Self::One(to_site_date(kind, one))),
                _ => Err(format!(
                    "this field (of type `{kind}`) takes one value; send a text, not a list"
                )),
            },
            Value::String(text) if CHOICES.contains(&kind) => {
                Ok(Self::Several(match text.as_str() {
                    "" => Vec::new(),
                    one => serde_json::from_str(one).unwrap_or_else(|_| vec![one.to_owned()]),
                }))
            }
            Value::String(text) => Ok(Self::One(to_site_date(kind, text))),
            _ => Err("`value` must be a text or a list of texts".to_owned()),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::One(text) => json!(text),
            Self::Several(texts) => json!(json!(texts).to_string()),
            Self::Raw(value) => value.clone(),
        }
    }

    /// Whether the site's response contains it. The order of choices does not matter, and neither does markup, which
    /// the site may add or remove.
    fn is_stored(&self, value: &Value) -> bool {
        let (all, raw) = stored_values(value);
        match self {
            Self::One(text) => {
                strip_to_words(text) == strip_to_words(&raw)
                    || all.iter().any(|one| strip_to_words(one) == strip_to_words(text))
            }
            Self::Several(texts) => {
                let set = |texts: &[String]| {
                    texts.iter().map(|output| strip_to_words(output)).collect::<BTreeSet<_>>()
                };
                set(texts) == set(&all)
            }
            Self::Raw(sent) => {
                let is_empty =
                    sent.as_str() == Some("") || sent.as_array().is_some_and(Vec::is_empty);
                is_empty || !all.is_empty() || !raw.is_empty()
            }
        }
    }
}

/// The stored values of a response, and the stored text.
fn stored_values(value: &Value) -> (Vec<String>, String) {
    let texts = |items: &Vec<Value>| -> Vec<String> {
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    match value {
        Value::Object(_) => {
            let all = match &value["unserialized"] {
                Value::Array(items) => texts(items),
                Value::Object(items) => texts(&items.values().cloned().collect()),
                _ => Vec::new(),
            };
            let raw = value["raw"].as_str().unwrap_or_default().to_owned();
            (all.into_iter().filter(|one| !one.is_empty()).collect(), raw)
        }
        Value::Array(items) => (texts(items), String::new()),
        Value::String(text) => (vec![text.clone()], text.clone()),
        _ => (Vec::new(), String::new()),
    }
}

fn display_value(value: &Value) -> String {
    let (all, raw) = stored_values(value);
    match all.is_empty() {
        true => raw,
        false => all.join(", "),
    }
}

fn strip_to_words(text: &str) -> String {
    strip_markup(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A date in the site's format, if the text is a plain date.
fn to_site_date(kind: &str, text: &str) -> String {
    let parts: Vec<&str> = text.trim().split('-').collect();
    let is_number = |part: &&str, max: usize| {
        (1..=max).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_date = matches!(&parts[..], [year, month, day]
        if year.len() == 4 && is_number(year, 4) && is_number(month, 2) && is_number(day, 2));
    match kind == DATE && is_date {
        true => format!("{} 00:00:00", text.trim()),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_sent_in_the_form_of_its_field() {
        let sent = |kind: &str, value: Value| {
            FieldValue::for_field_type(kind, &value).map(|field_value| field_value.to_json())
        };
        assert_eq!(sent("checkbox", json!(["a", "b"])), Ok(json!("[\"a\",\"b\"]")));
        assert_eq!(sent("checkbox", json!("a")), Ok(json!("[\"a\"]")));
        assert_eq!(sent("multiselectbox", json!("")), Ok(json!("[]")));
        assert_eq!(sent("checkbox", json!("[\"a\"]")), Ok(json!("[\"a\"]")));
        assert_eq!(sent("datebox", json!("1990-05-17")), Ok(json!("1990-05-17 00:00:00")));
        assert_eq!(sent("datebox", json!("1990-05-17 00:00:00")), Ok(json!("1990-05-17 00:00:00")));
        assert_eq!(sent("textbox", json!("1990-05-17")), Ok(json!("1990-05-17")));
        assert_eq!(sent("textbox", json!(["a"])), Ok(json!("a")));
        assert!(sent("textbox", json!(["a", "b"])).is_err());
    }

    #[test]
    fn stored_values_are_compared_with_sent_ones() {
        let several = FieldValue::for_field_type("checkbox", &json!(["A & B", "C"])).unwrap();
        let answer = |all: Value| json!({"raw": "a:2:{…}", "unserialized": all, "rendered": ""});
        assert!(several.is_stored(&answer(json!(["C", "A &amp; B"]))));
        assert!(several.is_stored(&answer(json!({"0": "C", "2": "A & B"}))));
        assert!(!several.is_stored(&answer(json!([]))));
        assert!(!several.is_stored(&answer(json!(["C"]))));
        let date = FieldValue::for_field_type("datebox", &json!("1990-05-17")).unwrap();
        let stored = json!({"raw": "1990-05-17 00:00:00", "unserialized": ["1990-05-17 00:00:00"]});
        assert!(date.is_stored(&stored));
        let empty = FieldValue::for_field_type("textbox", &json!("")).unwrap();
        assert!(empty.is_stored(&json!({"raw": "", "unserialized": []})));
        assert!(!date.is_stored(&json!({"raw": "", "unserialized": []})));
    }
}
