//! Converts WordPress's argument descriptions to JSON Schema.

use serde_json::{Map, Value, json};

/// One segment of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoutePart {
    Text(String),
    /// An argument, and whether it is a number.
    Argument {
        name: String,
        is_number: bool,
    },
}

/// Keywords with the same meaning in WordPress and in JSON Schema.
const COPIED_KEYWORDS: &[&str] = &[
    "description",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "multipleOf",
];
const TYPES: &[&str] = &["string", "integer", "number", "boolean", "array", "object", "null"];
/// Maximum depth. Deeper schemas accept anything.
const MAX_DEPTH: usize = 6;

/// The schema of all arguments of a route.
pub(super) fn arguments_schema(args: &Value, parts: &[RoutePart]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    // PHP encodes an empty map as an empty array.
    for (name, about) in args.as_object().into_iter().flatten() {
        // The tool sets `context` itself, and read-only members are not input.
        if name == "context" || about["readonly"] == true {
            continue;
        }
        if about["required"] == true && about.get("default").is_none() {
            required.push(name.clone());
        }
        properties.insert(name.clone(), convert_schema(about, MAX_DEPTH));
    }
    for part in parts {
        let RoutePart::Argument { name, is_number } = part else { continue };
        let value = properties.remove(name);
        let about = value.as_ref().and_then(|item| item.get("description")).cloned();
        let mut place = match is_number {
            true => json!({"type": "integer", "minimum": 0}),
            false => json!({"type": ["string", "integer"]}),
        };
        if let Some(about) = about {
            place["description"] = about;
        }
        properties.insert(name.clone(), place);
        required.retain(|other| other != name);
        required.push(name.clone());
    }
    required.sort();
    let mut schema =
        json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn convert_schema(about: &Value, deepest: usize) -> Value {
    let (Some(about), Some(deeper)) = (about.as_object(), deepest.checked_sub(1)) else {
        return json!({});
    };
    let mut schema = Map::new();
    for key in COPIED_KEYWORDS {
        let Some(value) = about.get(*key) else { continue };
        if is_valid_keyword(key, value) {
            schema.insert((*key).to_owned(), value.clone());
        }
    }
    convert_exclusive_bounds(about, &mut schema);
    let types = read_types(about.get("type"));
    let is = |name: &str| types.iter().any(|text| text == name);
    if is("array") {
        let mut items = about.get("items").map_or(json!({}), |items| convert_schema(items, deeper));
        if let Some(values) = read_enum(about.get("enum")) {
            items["enum"] = values;
        }
        schema.insert("items".to_owned(), items);
    } else if let Some(values) = read_enum(about.get("enum")) {
        schema.insert("enum".to_owned(), values);
    }
    if is("object")
        && let Some(properties) = about.get("properties").and_then(Value::as_object)
    {
        let writable = properties.iter().filter(|(_, about)| about["readonly"] != true);
        let properties: Map<String, Value> =
            writable.map(|(name, about)| (name.clone(), convert_schema(about, deeper))).collect();
        schema.insert("properties".to_owned(), properties.into());
    }
    let mut types = types;
    // A text with a raw and a rendered form may be given as a plain string.
    if types == ["object"] && about.get("properties").is_some_and(|item| item.get("raw").is_some())
    {
        types.insert(0, "string".to_owned());
    }
    match &types[..] {
        [] => {}
        [one] => drop(schema.insert("type".to_owned(), json!(one))),
        several => drop(schema.insert("type".to_owned(), json!(several))),
    }
    Value::Object(schema)
}

fn read_types(value: Option<&Value>) -> Vec<String> {
    let all = match value {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    // A type that JSON Schema does not have, such as `date`, is ignored.
    match all.iter().all(|name| TYPES.contains(name)) {
        true => all.iter().map(|name| (*name).to_owned()).collect(),
        false => Vec::new(),
    }
}

/// The values of an `enum`. PHP may encode an array as a map, and an empty one would reject everything.
fn read_enum(item: Option<&Value>) -> Option<Value> {
    let mut values: Vec<Value> = match item? {
        Value::Array(values) => values.clone(),
        Value::Object(values) => values.values().cloned().collect(),
        _ => return None,
    };
    let mut seen: Vec<Value> = Vec::new();
    values.retain(|value| {
        !seen.contains(value) && {
            seen.push(value.clone());
            true
        }
    });
    (!values.is_empty()).then(|| values.into())
}

/// In WordPress, a boolean determines whether a bound is exclusive.
fn convert_exclusive_bounds(about: &Map<String, Value>, schema: &mut Map<String, Value>) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if about.get(flag) == Some(&Value::Bool(true))
            && let Some(value) = schema.remove(bound)
        {
            schema.insert(flag.to_owned(), value);
        }
    }
}

/// Whether the value of a keyword is valid in JSON Schema.
fn is_valid_keyword(key: &str, value: &Value) -> bool {
    match key {
        "description" | "format" | "pattern" => value.is_string(),
        "minimum" | "maximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "uniqueItems" => value.is_boolean(),
        _ => value.is_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wordpress_schemas_become_json_schemas() {
        let args = json!({
            "context": {"type": "string", "default": "view", "enum": ["view", "edit"]},
            "page": {"type": "integer", "default": 1, "minimum": 1, "required": false},
            "title": {"type": "string", "required": true, "properties": {"raw": {}}, "arg_options": null},
            "user_id": {"type": "integer", "required": true, "default": 0},
            "types": {"type": "array", "enum": [], "items": {"type": "string"}},
            "status": {"type": "array", "enum": ["a", "b"], "items": {"type": "string"}},
            "kind": {"type": ["string"], "enum": {"post": "post", "page": "page", "again": "post"}},
            "price": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "meta": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"readonly": true}}},
            "empty": {"type": "object", "properties": []},
            "text": {"type": "object", "properties": {"raw": {"type": "string"}, "rendered": {"readonly": true}}},
            "when": {"type": ["string", "null"], "format": "date-time"},
            "odd": {"type": "date", "sanitize_callback": "x", "default": false},
            "gone": {"type": "string", "readonly": true},
        });
        let parts = [RoutePart::Argument { name: "id".to_owned(), is_number: true }];
        let expected = json!({"type": "object", "additionalProperties": false, "required": ["id", "title"],
        "properties": {
            "page": {"type": "integer", "minimum": 1},
            "title": {"type": "string"},
            "user_id": {"type": "integer"},
            "types": {"type": "array", "items": {"type": "string"}},
            "status": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "kind": {"type": "string", "enum": ["page", "post"]},
            "price": {"type": "number", "exclusiveMinimum": 0},
            "meta": {"type": "object", "properties": {"x": {"type": "string"}}},
            "empty": {"type": "object"},
            "text": {"type": ["string", "object"], "properties": {"raw": {"type": "string"}}},
            "when": {"type": ["string", "null"], "format": "date-time"},
            "odd": {},
            "id": {"type": "integer", "minimum": 0},
        }});
        let mut made = arguments_schema(&args, &parts);
        made["properties"]["kind"]["enum"].as_array_mut().unwrap().sort_by_key(Value::to_string);
        assert_eq!(made, expected);
        assert_eq!(arguments_schema(&json!([]), &[])["properties"], json!({}));
    }
}
