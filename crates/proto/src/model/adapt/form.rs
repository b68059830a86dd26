//! Converts forms for clients that support only flat forms of plain types
//! (2025-06-18 client/elicitation, request schema).
//!
//! Titled choices use the older `enumNames`, defaults other than booleans move into the description, and a multiple
//! choice becomes one boolean per option. [`LoweredForm::raise_response`] converts the response back.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde_json::{Map, Value, json};

use crate::wire::Raw;

/// A converted form, and the data for converting its response back.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredForm {
    /// The form for the client.
    pub schema: Raw,
    /// Multiple choices: the name and the values of the options.
    choices: Vec<(String, Vec<Value>)>,
}

/// Converts a form.
pub fn lower_form(schema: &Raw) -> LoweredForm {
    let unchanged = || LoweredForm { schema: schema.clone(), choices: Vec::new() };
    let Ok(mut form) = schema.decode::<Value>() else { return unchanged() };
    let Some(Value::Object(properties)) = form.get_mut("properties").map(Value::take) else {
        return unchanged();
    };
    let mut lowered = Map::new();
    let mut choices = Vec::new();
    for (name, property) in properties {
        match options(&property) {
            Some(options) => {
                spread_choice(&name, &property, &options, &mut lowered);
                choices.push((name, options.into_iter().map(|(value, _)| value).collect()));
            }
            None => _ = lowered.insert(name, lower_property(property)),
        }
    }
    form["properties"] = Value::Object(lowered);
    if let Some(Value::Array(required)) = form.get_mut("required") {
        required.retain(|name| choices.iter().all(|(choice, _)| name != choice));
    }
    LoweredForm { schema: Raw::from_value(&form), choices }
}

impl LoweredForm {
    /// Converts the client's response to a response to the original form.
    pub fn raise_response(&self, response: &Raw) -> Raw {
        let Ok(mut value) = response.decode::<Value>() else { return response.clone() };
        let Some(Value::Object(content)) = value.get_mut("content") else {
            return response.clone();
        };
        for (name, options) in &self.choices {
            let mut chosen = Vec::new();
            for (index, option) in options.iter().enumerate() {
                if content.remove(&option_field_name(name, index)) == Some(Value::Bool(true)) {
                    chosen.push(option.clone());
                }
            }
            content.insert(name.clone(), Value::Array(chosen));
        }
        Raw::from_value(&value)
    }
}

/// The options of a multiple choice: values and titles (2025-11-25 schema, `MultiSelectEnumSchema`).
fn options(property: &Value) -> Option<Vec<(Value, String)>> {
    let items = property.get("items").filter(|_| property.get("type") == Some(&json!("array")))?;
    if let Some(Value::Array(titled)) = items.get("anyOf").or_else(|| items.get("oneOf")) {
        return Some(titled.iter().filter_map(titled_option).collect());
    }
    let Some(Value::Array(values)) = items.get("enum") else { return None };
    Some(values.iter().map(|value| (value.clone(), describe_value(value))).collect())
}

fn titled_option(option: &Value) -> Option<(Value, String)> {
    let value = option.get("const")?;
    let title = option.get("title").and_then(Value::as_str).map(ToString::to_string);
    Some((value.clone(), title.unwrap_or_else(|| describe_value(value))))
}

/// Creates one boolean per option.
fn spread_choice(
    name: &str,
    property: &Value,
    options: &[(Value, String)],
    into: &mut Map<String, Value>,
) {
    let about = ["description", "title"].iter().find_map(|key| property.get(*key)?.as_str());
    for (index, (value, title)) in options.iter().enumerate() {
        let mut lowered = json!({"type": "boolean", "title": title});
        if let Some(about) = about {
            lowered["description"] = json!(format!("{about}: {title}"));
        }
        let preset = property.get("default").and_then(Value::as_array);
        if preset.is_some_and(|preset| preset.contains(value)) {
            lowered["default"] = json!(true);
        }
        into.insert(option_field_name(name, index), lowered);
    }
}

fn option_field_name(name: &str, index: usize) -> String {
    format!("{name}__{index}")
}

fn lower_property(mut property: Value) -> Value {
    let Value::Object(members) = &mut property else { return property };
    if let Some(Value::Array(titled)) = members.remove("oneOf") {
        let options: Vec<_> = titled.iter().filter_map(titled_option).collect();
        let (values, names): (Vec<Value>, Vec<String>) = options.into_iter().unzip();
        members.insert("enum".into(), Value::Array(values));
        members.insert("enumNames".into(), json!(names));
    }
    let is_boolean = members.get("type") == Some(&json!("boolean"));
    if let Some(default) = members.get("default").filter(|_| !is_boolean).map(describe_value) {
        let about = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let about = format!("{about} (default: {default})");
        members.insert("description".into(), json!(about.trim_start()));
        members.remove("default");
    }
    property
}

fn describe_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lowered(properties: &Value) -> LoweredForm {
        lower_form(&Raw::from_value(
            &json!({"type": "object", "properties": properties, "required": ["m"]}),
        ))
    }

    #[test]
    fn a_choice_of_several_is_spread_and_gathered_again() {
        let form = lowered(&json!({"m": {"type": "array", "default": ["b"],
            "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}}}));
        let schema: Value = form.schema.decode().unwrap();
        assert_eq!(schema["properties"]["m__1"]["default"], true);
        assert_eq!(schema["required"], json!([]));
        let response =
            json!({"action": "accept", "content": {"m__0": false, "m__1": true, "x": 1}});
        let raised: Value = form.raise_response(&Raw::from_value(&response)).decode().unwrap();
        assert_eq!(raised["content"], json!({"m": ["b"], "x": 1}));
    }

    #[test]
    fn a_refusal_stays_as_it_is() {
        let form = lowered(&json!({"m": {"type": "array", "items": {"enum": ["a"]}}}));
        let refusal = Raw::from_value(&json!({"action": "decline"}));
        assert_eq!(form.raise_response(&refusal), refusal);
    }

    #[test]
    fn titles_and_defaults_use_the_older_syntax() {
        let form = lowered(&json!({"c": {"type": "string", "default": "a",
            "oneOf": [{"const": "a", "title": "A"}]}, "b": {"type": "boolean", "default": true}}));
        let schema: Value = form.schema.decode().unwrap();
        let expected = json!({"type": "string", "enum": ["a"], "enumNames": ["A"],
            "description": "(default: a)"});
        assert_eq!(schema["properties"]["c"], expected);
        assert_eq!(schema["properties"]["b"]["default"], true);
    }
}
