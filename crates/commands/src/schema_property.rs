//! The properties of a tool's schema: their order, types, values and defaults.

use creole::proto::wire::Object;
use serde_json::Value;

/// The maximum depth to which references are followed.
const MAX_DEPTH: usize = 16;

/// The maximum number of enumeration values that are shown.
const MAX_VALUES: usize = 12;

/// The maximum length of a shown value in characters.
const MAX_VALUE_LENGTH: usize = 40;

/// The names of the properties in the order of the schema's text, which a parsed object does not keep.
pub(crate) fn names(schema: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in Object::new(schema)
        .and_then(|schema| schema.enter_member("properties"))
        .into_iter()
        .flatten()
    {
        if !names.iter().any(|known| *known == name) {
            names.push(name.into_owned());
        }
    }
    names
}

/// The types of a property, in the order of its schema. `root` holds its definitions.
pub(crate) fn types(property: &Value, root: &Value) -> Vec<String> {
    let mut kinds = Vec::new();
    collect_types(property, root, MAX_DEPTH, &mut kinds);
    kinds
}

/// A summary of a property for a list: its values or else its types, and its default.
pub(crate) fn summary(property: &Value, root: &Value) -> String {
    let mut values = Vec::new();
    collect_values(property, root, MAX_DEPTH, &mut values);
    let taken = match values.as_slice() {
        [] => {
            let types = types(property, root);
            types.into_iter().filter(|kind| kind != "null").collect::<Vec<_>>().join("|")
        }
        values => {
            let more = if values.len() > MAX_VALUES { "|…" } else { "" };
            let shown: Vec<String> = values.iter().take(MAX_VALUES).map(value_text).collect();
            format!("{}{more}", shown.join("|"))
        }
    };
    let default = property.get("default").filter(|default| !default.is_null());
    match default.map(value_text) {
        Some(default) => format!("{taken} = {default}").trim_start().to_owned(),
        None => taken,
    }
}

/// A value on one line, shortened to a few words.
fn value_text(value: &Value) -> String {
    let text = value.as_str().filter(|text| !text.is_empty());
    let text = text.map_or_else(|| value.to_string(), str::to_owned);
    match text.chars().count() > MAX_VALUE_LENGTH {
        true => text.chars().take(MAX_VALUE_LENGTH).chain(['…']).collect(),
        false => text,
    }
}

fn collect_types(schema: &Value, root: &Value, depth: usize, kinds: &mut Vec<String>) {
    let Some(deeper) = depth.checked_sub(1) else { return };
    let mut add = |kind: &str| {
        if !kinds.iter().any(|known| known == kind) {
            kinds.push(kind.to_owned());
        }
    };
    match &schema["type"] {
        Value::String(kind) => return add(kind),
        Value::Array(several) => {
            return several.iter().filter_map(Value::as_str).for_each(add);
        }
        _ => {}
    }
    for value in schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")) {
        add(kind_of(value));
    }
    for part in parts(schema, root) {
        collect_types(part, root, deeper, kinds);
    }
}

/// Collects the values of an enumeration. Null stands for omitting a property.
fn collect_values(schema: &Value, root: &Value, depth: usize, values: &mut Vec<Value>) {
    let Some(deeper) = depth.checked_sub(1) else { return };
    for value in schema["enum"].as_array().into_iter().flatten().chain(schema.get("const")) {
        if !value.is_null() && !values.contains(value) {
            values.push(value.clone());
        }
    }
    // If the type allows more than the values, the enumeration is not complete.
    let takes_more = |part: &Value| {
        let mut own = Vec::new();
        collect_values(part, root, deeper, &mut own);
        own.is_empty() && part["type"] != "null"
    };
    if !parts(schema, root).any(takes_more) {
        for part in parts(schema, root) {
            collect_values(part, root, deeper, values);
        }
    }
}

/// The parts of a schema: its alternatives and its references.
fn parts<'a>(schema: &'a Value, root: &'a Value) -> impl Iterator<Item = &'a Value> {
    let alternatives =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    alternatives.chain(pointer.and_then(|pointer| root.pointer(pointer)))
}

/// The type of a value.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_keep_the_order_of_the_text() {
        let schema = r#"{"type":"object","properties":{"zoo":{},"ape":{},"zoo":{},"m":{}},"required":["ape"]}"#;
        assert_eq!(names(schema), ["zoo", "ape", "m"]);
        assert!(names("{}").is_empty() && names("5").is_empty());
    }

    #[test]
    fn a_summary_has_values_and_default() {
        let root = json!({"$defs": {"Unit": {"enum": ["metric", "imperial"]}}});
        let rows = [
            (json!({"type": "integer"}), "integer"),
            (json!({"type": "integer", "default": 5}), "integer = 5"),
            (json!({"enum": ["red", "green"], "default": "red"}), "red|green = red"),
            (json!({"type": "string", "enum": ["", "a"], "default": ""}), "\"\"|a = \"\""),
            (
                json!({"anyOf": [{"$ref": "#/$defs/Unit"}, {"type": "null"}], "default": null}),
                "metric|imperial",
            ),
            (json!({"anyOf": [{"const": "auto"}, {"type": "integer"}]}), "string|integer"),
            (json!({"default": [1]}), "= [1]"),
            (json!({}), ""),
        ];
        for (property, expected) in rows {
            assert_eq!(summary(&property, &root), expected, "{property}");
        }
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(summary(&json!({"enum": many}), &root), "0|1|2|3|4|5|6|7|8|9|10|11|…");
        let long = "x".repeat(50);
        assert_eq!(summary(&json!({"default": long}), &root), format!("= {}…", "x".repeat(40)));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let root = json!({"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}});
        assert_eq!(summary(&json!({"$ref": "#/$defs/A"}), &root), "");
    }
}
