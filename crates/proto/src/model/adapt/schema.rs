//! Converts tool schemas for peers of the handshake era.

use alloc::string::{String, ToString};
use serde_json::{Map, Value, json};

use crate::model::Tool;
use crate::wire::Raw;

/// Converts a tool for the revisions of the handshake era; `None` if nothing changes.
///
/// These revisions require an object schema for each property and an object as structured result
/// (2025-11-25 schema, `Tool`). The newest one allows `true`, `false` and any value (2026-07-28 schema, `Tool`).
pub fn lower_tool(tool: &Tool) -> Option<Tool> {
    if tool.output_schema.is_none() && !mentions_booleans(&tool.input_schema) {
        return None;
    }
    let input = change_schema(&tool.input_schema, replace_booleans);
    let output =
        tool.output_schema.as_ref().and_then(|schema| change_schema(schema, wrap_output_schema));
    if input.is_none() && output.is_none() {
        return None;
    }
    let mut tool = tool.clone();
    tool.input_schema = input.unwrap_or(tool.input_schema);
    tool.output_schema = output.or(tool.output_schema);
    Some(tool)
}

/// Whether a schema may contain a boolean in place of a schema. Most do not, and a server with a thousand tools should
/// not parse a thousand schemas before its first response.
fn mentions_booleans(schema: &Raw) -> bool {
    let rest = schema.as_str().replace(r#""additionalProperties":false"#, "");
    rest.contains("true") || rest.contains("false")
}

fn change_schema(schema: &Raw, change: impl FnOnce(&mut Value) -> bool) -> Option<Raw> {
    let mut value: Value = schema.decode().ok()?;
    change(&mut value).then(|| Raw::from_value(&value))
}

/// Replaces boolean property schemas by objects. Returns whether there were any.
fn replace_booleans(schema: &mut Value) -> bool {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return false };
    let mut changed = false;
    for property in properties.values_mut() {
        match property {
            Value::Bool(true) => (*property, changed) = (json!({}), true),
            Value::Bool(false) => (*property, changed) = (json!({"not": {}}), true),
            nested => changed |= replace_booleans(nested),
        }
    }
    changed
}

/// Wraps the schema of a result that is not an object into an object schema with the member `result`.
fn wrap_output_schema(schema: &mut Value) -> bool {
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        return replace_booleans(schema);
    }
    let mut inner = schema.take();
    move_references(&mut inner);
    *schema = json!({"type": "object", "properties": {"result": inner}, "required": ["result"]});
    true
}

/// Adjusts local references to the new locations of their targets.
pub(super) fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            move_reference(members);
            members.values_mut().for_each(move_references);
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}

fn move_reference(members: &mut Map<String, Value>) {
    let Some(Value::String(target)) = members.get_mut("$ref") else { return };
    if let Some(path) = target.strip_prefix('#')
        && (path.is_empty() || path.starts_with('/'))
    {
        *target = "#/properties/result".to_string() + path;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TaskSupport;

    fn tool(input: Value, output: Option<Value>) -> Tool {
        Tool {
            name: "t".into(),
            title: None,
            description: String::new(),
            input_schema: Raw::from_value(&input),
            output_schema: output.map(|schema| Raw::from_value(&schema)),
            annotations: None,
            task_support: TaskSupport::Forbidden,
            meta: None,
        }
    }

    #[test]
    fn an_ordinary_tool_is_announced_as_it_is() {
        let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(lower_tool(&tool(plain.clone(), Some(plain))), None);
    }

    #[test]
    fn boolean_properties_become_objects() {
        let odd = json!({"type": "object", "properties": {"a": true, "b": false}});
        let lowered = lower_tool(&tool(odd, None)).unwrap();
        let schema: Value = lowered.input_schema.decode().unwrap();
        assert_eq!(schema["properties"], json!({"a": {}, "b": {"not": {}}}));
    }

    #[test]
    fn a_list_result_is_wrapped_and_its_references_move_along() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": true}});
        let lowered = lower_tool(&tool(json!({"type": "object"}), Some(list))).unwrap();
        let schema: Value = lowered.output_schema.unwrap().decode().unwrap();
        assert_eq!(schema["properties"]["result"]["items"]["$ref"], "#/properties/result/$defs/x");
    }
}
