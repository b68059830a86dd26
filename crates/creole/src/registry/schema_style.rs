//! Rewrites tool schemas to a dialect's style; arguments are validated against the announced schema.

use creole_proto::dialect::{DefinitionDetail, Dialect, SchemaPolicy};
use creole_proto::model::{TaskSupport, Tool};
use creole_proto::wire::Raw;
use serde_json::Value;

/// Applies the dialect's style to a tool.
pub(super) fn apply(tool: &mut Tool, dialect: &Dialect) {
    tool.input_schema = restyle_schema(&tool.input_schema, dialect.schemas);
    if dialect.definitions == DefinitionDetail::Plain {
        tool.title = None;
        tool.output_schema = None;
        tool.annotations = None;
        tool.meta = None;
    }
    if dialect.definitions == DefinitionDetail::Plain || !dialect.shows_capability("tasks", true) {
        tool.task_support = TaskSupport::Forbidden;
    }
}

fn restyle_schema(schema: &Raw, style: SchemaPolicy) -> Raw {
    if style == SchemaPolicy::AsWritten {
        return schema.clone();
    }
    let Ok(mut value) = schema.decode() else { return schema.clone() };
    restyle_value(&mut value, style);
    Raw::from_value(&value)
}

fn restyle_value(schema: &mut Value, style: SchemaPolicy) {
    match schema {
        Value::Object(members) => {
            let describes_object = members.get("type").is_some_and(|kind| kind == "object");
            match style {
                SchemaPolicy::Closed if describes_object => {
                    members.entry("additionalProperties").or_insert(Value::Bool(false));
                    members.entry("required").or_insert(Value::Array(Vec::new()));
                }
                SchemaPolicy::Open
                    if members.get("additionalProperties") == Some(&Value::Bool(false)) =>
                {
                    members.remove("additionalProperties");
                }
                _ => {}
            }
            members.values_mut().for_each(|member| restyle_value(member, style));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| restyle_value(item, style)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn restyle(schema: Value, style: SchemaPolicy) -> Value {
        restyle_schema(&Raw::from_value(&schema), style).decode().unwrap()
    }

    #[test]
    fn closing_reaches_nested_objects_and_keeps_explicit_values() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object"}, "b": {"type": "object", "additionalProperties": true}}});
        let closed = restyle(schema, SchemaPolicy::Closed);
        assert_eq!(closed["additionalProperties"], false);
        assert_eq!(closed["properties"]["a"]["additionalProperties"], false);
        assert_eq!(closed["properties"]["b"]["additionalProperties"], true);
    }

    #[test]
    fn opening_removes_only_the_restriction() {
        let schema = json!({"type": "object", "additionalProperties": false});
        assert_eq!(restyle(schema, SchemaPolicy::Open), json!({"type": "object"}));
    }
}
