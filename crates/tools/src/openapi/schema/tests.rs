//! Tests of converting the schemas of documents.

use serde_json::{Value, json};

use super::*;

/// The converted `x` of a document, and the notes.
fn made(document: Value, is_old: bool, max: usize) -> Option<(Value, Vec<String>)> {
    let library = DocumentSet::from_value("x.json", document);
    let mut schemas = SchemaInliner::new(&library, is_old);
    let node = library.document().get("x").unwrap();
    let made = schemas.inline_all(&[node], max)?.remove(0);
    let usable = Schema::new(made.to_string()).validate(&json!({})).err().unwrap_or_default();
    assert!(!usable.iter().any(Violation::is_broken_schema), "{made} {usable:?}");
    Some((made, schemas.take_notes()))
}

fn old(x: Value) -> Value {
    made(json!({ "x": x }), true, 16_384).unwrap().0
}

#[test]
fn version_3_0_becomes_2020_12() {
    let rows = [
        (json!({ "type": "string", "nullable": true }), json!({ "type": ["string", "null"] })),
        (
            json!({ "type": "string", "enum": ["a"], "nullable": true }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
        ),
        (
            json!({ "allOf": [{ "type": "object" }], "nullable": true }),
            json!({ "anyOf": [{ "allOf": [{ "type": "object" }] }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false }),
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": 1, "maximum": 9 }),
        ),
        (
            json!({ "type": "string", "example": "a" }),
            json!({ "type": "string", "examples": ["a"] }),
        ),
        (
            json!({ "type": "object", "discriminator": { "propertyName": "k" }, "xml": {}, "externalDocs": {}, "x-y": 1 }),
            json!({ "type": "object" }),
        ),
        (
            json!({ "type": "object", "required": ["id", "name"], "properties": {
                "id": { "type": "integer", "readOnly": true }, "name": { "type": "string", "writeOnly": true } } }),
            json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } }),
        ),
        (json!({ "oneOf": [{ "type": "string" }] }), json!({ "anyOf": [{ "type": "string" }] })),
    ];
    for (value, expected) in rows {
        assert_eq!(old(value.clone()), expected, "{value}");
    }
}

#[test]
fn invalid_schema_parts_are_dropped() {
    let rows = [
        (json!({ "type": "strng" }), json!({})),
        (
            json!({ "type": "string", "required": true, "minLength": "1", "enum": [] }),
            json!({ "type": "string" }),
        ),
        (json!({ "type": "array", "items": [] }), json!({ "type": "array" })),
        (json!({ "maxLength": 3.0, "minLength": -1 }), json!({ "maxLength": 3 })),
        (json!("text"), json!({})),
        (json!({ "description": "a\u{202e}b" }), json!({ "description": "ab" })),
    ];
    for (value, expected) in rows {
        assert_eq!(old(value.clone()), expected, "{value}");
    }
    let (schema, notes) = made(json!({ "x": { "pattern": "(a" } }), true, 1000).unwrap();
    assert_eq!((schema, notes), (json!({}), vec!["the pattern `(a` is omitted".to_owned()]));
    assert_eq!(old(json!({ "pattern": "^[a-z]+$" })), json!({ "pattern": "^[a-z]+$" }));
}

#[test]
fn references_are_inlined_and_their_siblings_count_since_3_1() {
    let document = json!({
        "x": { "$ref": "#/s/Name", "description": "Own" },
        "s": { "Name": { "type": "string", "description": "Theirs" } },
    });
    let old = made(document.clone(), true, 1000).unwrap().0;
    assert_eq!(old, json!({ "type": "string", "description": "Theirs" }));
    let new = made(document, false, 1000).unwrap().0;
    assert_eq!(new, json!({ "type": "string", "description": "Own" }));
    let (schema, notes) = made(json!({ "x": { "$ref": "#/no" } }), true, 1000).unwrap();
    assert_eq!(schema, json!({}));
    assert_eq!(notes, ["its arguments have a reference to `#/no`, which does not exist"]);
}

#[test]
fn recursion_is_cut() {
    let node = json!({ "type": "object", "properties": {
        "name": { "type": "string" }, "child": { "$ref": "#/s/Node" } } });
    let document = json!({ "x": { "$ref": "#/s/Node" }, "s": { "Node": node } });
    let (schema, notes) = made(document, true, 16_384).unwrap();
    let cut = schema.pointer(&"/properties/child".repeat(5)).unwrap();
    assert_eq!(cut, &json!({ "type": "object", "description": "recursive: Node" }));
    assert_eq!(notes, ["a recursive part of its arguments is cut off"]);
    let itself = json!({ "x": { "$ref": "#/x" } });
    assert!(made(itself, false, 1000).is_some());
}

#[test]
fn many_branches_are_described_in_less_detail_and_never_without_end() {
    let names: Vec<String> = (0..30).map(|number| format!("S{number}")).collect();
    let members: Value =
        names.iter().map(|text| (text.clone(), json!({ "$ref": format!("#/s/{text}") }))).collect();
    let all: Value = names
        .iter()
        .map(|text| (text.clone(), json!({ "type": "object", "properties": members })))
        .collect();
    let document = json!({ "x": { "$ref": "#/s/S0" }, "s": all });
    let (schema, notes) = made(document, true, 16_384).unwrap();
    assert!(schema.to_string().len() <= 16_384);
    assert_eq!(notes, ["the schema of its arguments is simplified"]);
    let wide: Value =
        (0..2000).map(|value| (format!("member_{value}"), json!({ "type": "string" }))).collect();
    let wide = json!({ "x": { "type": "object", "properties": wide } });
    assert_eq!(made(wide.clone(), true, 16_384).unwrap().0, json!({ "type": "object" }));
    assert_eq!(made(wide, true, 10), None);
}
