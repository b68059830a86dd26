//! Converts an upstream's schemas with the minimum of changes: order, unknown keywords and unusual numbers are
//! preserved.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

use super::schema::move_references;
use crate::wire::{Object, Raw, quote, write_foreign_member};

/// A change besides the repair of `required`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaChange {
    /// None.
    Nothing,
    /// Boolean property schemas become objects.
    ReplaceBooleans,
}

/// Moves misplaced `required` keywords to the place where validators read them; `None` if nothing changes. Hand-written
/// servers put `"required": true` into each property.
pub fn repair_required(schema: &str) -> Option<String> {
    apply_change(schema, SchemaChange::Nothing)
}

/// The same, and replaces boolean property schemas, which sessions do not support.
pub fn lower_input_schema(schema: &str) -> Option<String> {
    apply_change(schema, SchemaChange::ReplaceBooleans)
}

/// Converts an output schema to an object schema for sessions; `None` if nothing changes (2025-11-25 schema, `Tool`).
pub fn lower_output_schema(schema: &str) -> Option<String> {
    let object = Object::new(schema)?;
    if object.string("type").ok().flatten().as_deref() == Some("object") {
        return lower_input_schema(schema);
    }
    let inner = match schema.contains("$ref") {
        false => Cow::Borrowed(schema),
        true => {
            let mut value: Value = serde_json::from_str(schema).ok()?;
            move_references(&mut value);
            Cow::Owned(String::from(Raw::from_value(&value).as_str()))
        }
    };
    let properties = format!(r#"{{"result":{inner}}}"#);
    Some(format!(r#"{{"type":"object","properties":{properties},"required":["result"]}}"#))
}

fn apply_change(schema: &str, change: SchemaChange) -> Option<String> {
    // Most schemas contain no boolean but this one, and need no walk.
    let rest = schema.replace(r#""additionalProperties":false"#, "");
    if !rest.contains("true") && !rest.contains("false") {
        return None;
    }
    let mut out = Vec::new();
    let is_changed = write_schema(&mut out, Object::new(schema)?, change);
    is_changed.then(|| String::from_utf8(out).unwrap_or_default())
}

/// Writes a schema. Returns whether it differs from the original.
fn write_schema(out: &mut Vec<u8>, schema: Object<'_>, change: SchemaChange) -> bool {
    let mut properties = Vec::new();
    let mut demanded = Vec::new();
    let mut is_changed = false;
    if let Some(listed) = schema.get("properties").and_then(Object::new) {
        properties.push(b'{');
        for (name, property) in listed.members() {
            let mut text = Vec::new();
            let (differs, is_required) = write_property(&mut text, property, change);
            is_changed |= differs;
            if is_required {
                demanded.push(name.clone());
            }
            write_foreign_member(
                &mut properties,
                &name,
                core::str::from_utf8(&text).unwrap_or("{}"),
            );
        }
        properties.push(b'}');
    }
    let required = (!demanded.is_empty()).then(|| collect_required(schema, &demanded));
    out.push(b'{');
    for (name, value) in schema.members() {
        match &*name {
            "properties" if is_changed => {
                write_foreign_member(out, &name, core::str::from_utf8(&properties).unwrap_or("{}"));
            }
            "required" if required.is_some() => {}
            _ => write_foreign_member(out, &name, value),
        }
    }
    if let Some(required) = required {
        write_foreign_member(out, "required", &required);
    }
    out.push(b'}');
    is_changed
}

/// Writes the schema of a property. Returns whether it differs, and whether it marks itself as required.
fn write_property(out: &mut Vec<u8>, property: &str, change: SchemaChange) -> (bool, bool) {
    let Some(object) = Object::new(property) else {
        let lowered = match property {
            "true" if change == SchemaChange::ReplaceBooleans => "{}",
            "false" if change == SchemaChange::ReplaceBooleans => r#"{"not":{}}"#,
            other => other,
        };
        out.extend_from_slice(lowered.as_bytes());
        return (lowered != property, false);
    };
    match object.get("required") {
        Some(text @ ("true" | "false")) => {
            let mut bare = Vec::from(b"{");
            for (name, value) in object.members().filter(|(name, _)| name != "required") {
                write_foreign_member(&mut bare, &name, value);
            }
            bare.push(b'}');
            let bare = String::from_utf8(bare).unwrap_or_default();
            write_schema(out, Object::new(&bare).unwrap_or(Object::EMPTY), change);
            (true, text == "true")
        }
        _ => {
            let start = out.len();
            let differs = write_schema(out, object, change);
            if !differs {
                out.truncate(start);
                out.extend_from_slice(property.as_bytes());
            }
            (differs, false)
        }
    }
}

/// The required names, including those of an existing array.
fn collect_required(schema: Object<'_>, demanded: &[Cow<'_, str>]) -> String {
    let listed = schema.array("required").ok().flatten().unwrap_or_default();
    let mut out = Vec::from(b"[");
    for name in &listed {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(name.as_bytes());
    }
    for name in demanded {
        let is_listed = |listed: &&str| crate::wire::unquote(listed).as_deref() == Some(&**name);
        if listed.iter().any(is_listed) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        quote(&mut out, name);
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_schema_stays_as_it_is() {
        let plain = r#"{"type":"object","properties":{"a":{"type":"string","default":false}},"required":["a"],"additionalProperties":false}"#;
        assert_eq!(repair_required(plain), None);
        assert_eq!(lower_input_schema(plain), None);
        assert_eq!(lower_output_schema(plain), None);
    }

    #[test]
    fn required_of_properties_is_gathered() {
        let odd = r#"{"x":1e400,"properties":{"b":{"type":"string","required":true},"a":{"required":false,"n":1.0},"c":{}},"required":["c"]}"#;
        let sound = r#"{"x":1e400,"properties":{"b":{"type":"string"},"a":{"n":1.0},"c":{}},"required":["c","b"]}"#;
        assert_eq!(repair_required(odd).as_deref(), Some(sound));
    }

    #[test]
    fn booleans_become_objects_for_sessions_only() {
        let odd = r#"{"properties":{"a":true,"b":{"properties":{"c":false}}}}"#;
        let lowered = r#"{"properties":{"a":{},"b":{"properties":{"c":{"not":{}}}}}}"#;
        assert_eq!(repair_required(odd), None);
        assert_eq!(lower_input_schema(odd).as_deref(), Some(lowered));
    }

    #[test]
    fn a_result_that_is_no_object_is_wrapped() {
        let list = r##"{"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{}}}"##;
        let lowered = lower_output_schema(list).unwrap();
        assert!(lowered.contains(r##""$ref":"#/properties/result/$defs/x""##), "{lowered}");
        let number = r#"{"type":"number","maximum":1e400}"#;
        let lowered = lower_output_schema(number).unwrap();
        assert!(lowered.contains(number), "{lowered}");
    }
}
