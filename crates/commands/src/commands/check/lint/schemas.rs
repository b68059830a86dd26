//! Finds schemas that some clients cannot use.

use creole::Schema;
use creole::proto::http::MirroredHeader;
use serde_json::Value;

/// The maximum depth to which a schema is checked.
const MAX_DEPTH: usize = 64;

/// The finding for a schema that has a boolean `required` in each property.
pub(super) const REQUIRED: &str = "has `\"required\": true` in its schema, which is JSON Schema \
    draft 3; write a list of names beside `properties`";

/// Checks the schemas of one tool.
pub(super) fn lint(tool: &Value, add: &mut impl FnMut(String)) {
    match tool.get("inputSchema") {
        None => {
            add("has no `inputSchema`; write `{\"type\":\"object\"}` for no arguments".to_owned())
        }
        Some(schema) => lint_input(schema, add),
    }
    if let Some(schema) = tool.get("outputSchema") {
        lint_schema("outputSchema", schema, add);
    }
}

fn lint_input(schema: &Value, add: &mut impl FnMut(String)) {
    if schema["type"] != "object" {
        add("has an `inputSchema` without `\"type\": \"object\"`, which every revision requires"
            .to_owned());
    }
    lint_schema("inputSchema", schema, add);
    if let Err(error) = MirroredHeader::find_all(&schema.to_string()) {
        add(format!("has an `x-mcp-header` that clients must refuse: {error}"));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let is_bare = property.get("description").is_none() && property.get("$ref").is_none();
        if property.is_object() && is_bare {
            add(format!("does not describe its argument `{name}`"));
        }
    }
}

/// Checks any schema.
fn lint_schema(description: &str, schema: &Value, add: &mut impl FnMut(String)) {
    let mut flags = SchemaFlags::default();
    walk(schema, MAX_DEPTH, &mut flags);
    if let Some(reference) = flags.remote {
        add(format!(
            "has a reference to `{reference}` in its `{description}`, which clients must not fetch"
        ));
        return;
    }
    if flags.has_boolean_required {
        add(REQUIRED.to_owned());
        return;
    }
    // A schema error shows only in a validation.
    if let Err(violations) = Schema::new(schema.to_string()).validate(&Value::Null)
        && let Some(broken) = violations.iter().find(|one| one.is_broken_schema())
    {
        add(format!("has an `{description}` that is not a valid JSON Schema: {}", broken.message));
    }
}

#[derive(Default)]
struct SchemaFlags {
    remote: Option<String>,
    has_boolean_required: bool,
}

fn walk(schema: &Value, depth: usize, flags: &mut SchemaFlags) {
    let Some(deeper) = depth.checked_sub(1) else { return };
    match schema {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            if let Some(reference) = reference.filter(|reference| !reference.starts_with('#')) {
                flags.remote.get_or_insert_with(|| reference.to_owned());
            }
            flags.has_boolean_required |= members.get("required").is_some_and(Value::is_boolean);
            for member in members.values() {
                walk(member, deeper, flags);
            }
        }
        Value::Array(members) => members.iter().for_each(|member| walk(member, deeper, flags)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(tool: &Value) -> Vec<String> {
        let mut found = Vec::new();
        lint(tool, &mut |problem| found.push(problem));
        found
    }

    fn of_property(property: &Value) -> Vec<String> {
        problems(&json!({"inputSchema": {"type": "object", "properties": {"a": property}}}))
    }

    #[test]
    fn a_plain_schema_is_right() {
        assert_eq!(of_property(&json!({"type": "string", "description": "d"})), [""; 0]);
        assert_eq!(of_property(&json!({"$ref": "#/properties/b"})).len(), 1);
    }

    #[test]
    fn schemas_that_clients_refuse_are_reported() {
        assert!(problems(&json!({}))[0].contains("has no `inputSchema`"));
        assert!(
            problems(&json!({"inputSchema": {}}))[0].contains("without `\"type\": \"object\"`")
        );
        let described = |property: Value| {
            let mut property = property;
            property["description"] = json!("d");
            of_property(&property).concat()
        };
        assert!(of_property(&json!({"type": "string"}))[0].contains("describe its argument `a`"));
        assert!(described(json!({"type": "strin"})).contains("not a valid JSON Schema"));
        assert!(described(json!({"$ref": "https://example.com/s"})).contains("must not fetch"));
        assert!(described(json!({"required": true})).contains("draft 3"));
        let header = described(json!({"type": "object", "x-mcp-header": "A"}));
        assert!(header.contains("must refuse"), "{header}");
    }
}
