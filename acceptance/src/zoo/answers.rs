//! The client's input responses: the same response to the same input request each time.

use serde_json::{Map, Value, json};

use super::Folder;

/// The capabilities that the client declares.
pub(super) fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": true}})
}

/// The result for an input request, or `None` for a method that the client does not support.
pub(super) fn answer(method: &str, params: &Value, folder: &Folder) -> Option<Value> {
    match method {
        "ping" => Some(json!({})),
        "roots/list" => {
            let uri = folder.fill("file://{folder}/below");
            Some(json!({"roots": [{"uri": uri, "name": "below"}]}))
        }
        "sampling/createMessage" => Some(json!({
            "role": "assistant", "model": "zoo", "stopReason": "endTurn",
            "content": {"type": "text", "text": "Sampled."},
        })),
        "elicitation/create" if params["mode"] == "url" => Some(json!({"action": "accept"})),
        "elicitation/create" => {
            let content = form(&params["requestedSchema"]);
            Some(json!({"action": "accept", "content": content}))
        }
        _ => None,
    }
}

/// A form with every field filled in.
fn form(schema: &Value) -> Value {
    let fields = schema["properties"].as_object();
    let filled = fields.into_iter().flatten().map(|(name, field)| (name.clone(), filled(field)));
    Value::Object(filled.collect::<Map<_, _>>())
}

/// The default of a field, else its first choice, else the simplest value of its type.
fn filled(field: &Value) -> Value {
    if let Some(value) = field.get("default") {
        return value.clone();
    }
    let choice = field["enum"].get(0).or_else(|| field["oneOf"].get(0).map(|one| &one["const"]));
    if let Some(choice) = choice {
        return choice.clone();
    }
    match (field["type"].as_str(), field["format"].as_str()) {
        (Some("boolean"), _) => json!(true),
        (Some("integer" | "number"), _) => field.get("minimum").cloned().unwrap_or(json!(1)),
        (Some("array"), _) => json!([]),
        (_, Some("email")) => json!("zoo@example.com"),
        (_, Some("uri")) => json!("https://example.com/"),
        (_, Some("date")) => json!("2026-01-02"),
        (_, Some("date-time")) => json!("2026-01-02T03:04:05Z"),
        _ => json!("zoo"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_filled_with_defaults_then_choices_then_plain_values() {
        let schema = json!({"properties": {
            "a": {"type": "string", "default": "d", "enum": ["c", "d"]},
            "b": {"type": "string", "oneOf": [{"const": "x"}, {"const": "y"}]},
            "c": {"type": "integer", "minimum": 7},
            "d": {"type": "string", "format": "date"},
        }});
        assert_eq!(form(&schema), json!({"a": "d", "b": "x", "c": 7, "d": "2026-01-02"}));
    }
}
