//! Schemas and values that hang, crash or bloat the `jsonschema` crate when nothing bounds them.

use std::time::{Duration, Instant};

use serde_json::Map;

use super::*;

/// Generous for a debug build on a busy machine; unbounded, each case takes minutes or aborts.
const SOON: Duration = Duration::from_secs(60);

/// Validates in a thread with the stack that workers have.
fn validate(schema: &Value, instance: Value) -> Result<(), Vec<Violation>> {
    let schema = super::schema(schema);
    let start = Instant::now();
    let run = move || schema.validate(&instance);
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
    let result = thread.join().unwrap();
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    result
}

fn is_refused(schema: &Value) -> bool {
    validate(schema, json!({})).is_err_and(|violations| violations[0].is_broken_schema())
}

fn nested(depth: usize, core: Value) -> Value {
    (0..depth).fold(core, |value, _| json!({"a": value}))
}

/// `levels` definitions, each of which refers to the next one twice.
fn doubling(levels: usize, keyword: &str, core: &Value) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({keyword: [next, next]}));
    }
    definitions.insert(format!("d{levels}"), core.clone());
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn references_that_double_at_each_level_are_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert!(is_refused(&doubling(40, keyword, &json!({"type": "object"}))), "{keyword}");
        let harmless = doubling(10, keyword, &json!({"type": "string"}));
        let violations = validate(&harmless, json!({})).unwrap_err();
        assert!(!violations[0].is_broken_schema(), "{keyword}: {}", violations[0]);
    }
}

#[test]
fn long_chains_of_references_are_refused() {
    let mut definitions: Map<String, Value> = (0..6000)
        .map(|i| (format!("d{i}"), json!({"$ref": format!("#/$defs/d{}", i + 1)})))
        .collect();
    definitions.insert("d6000".into(), json!({}));
    assert!(is_refused(&json!({"$ref": "#/$defs/d0", "$defs": definitions})));
}

#[test]
fn depth_and_number_of_subschemas_are_bounded() {
    let deep = (0..40).fold(json!({}), |inner, _| json!({"allOf": [inner]}));
    assert!(is_refused(&deep));
    let deeper = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Schema::new(deeper).check().is_err());
    let wide: Value = json!({"anyOf": vec![json!({}); 10_001]});
    assert!(is_refused(&wide));
    let long = json!({"description": "x".repeat(MAX_TEXT)});
    assert_eq!(schema(&long).check(), Err(SchemaError::TooLarge));
}

#[test]
fn nested_unevaluated_keywords_are_refused() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let nested = (0..18).fold(
            json!({"properties": {"a": true}}),
            |inner, _| json!({keyword: [inner], "unevaluatedProperties": false}),
        );
        assert!(is_refused(&nested), "{keyword}");
    }
    let usual = json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false});
    assert_eq!(validate(&usual, json!({"a": 1})), Ok(()));
    let violations = validate(&usual, json!({"b": 1})).unwrap_err();
    assert_eq!(violations[0].to_string(), "the value must not have the property `b`");
}

#[test]
fn recursion_that_branches_ends_soon_for_deep_values() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let part = json!({"properties": {"a": {"$ref": "#"}, "b": false}});
        let schema = json!({keyword: [part, part, part]});
        let _ = validate(&schema, nested(120, json!({})));
        let violations = validate(&schema, nested(120, json!({"b": 1}))).unwrap_err();
        assert!(!violations[0].is_broken_schema());
    }
}

#[test]
fn recursion_through_deep_schemas_does_not_overflow_the_stack() {
    for wrap in [
        |inner: Value| json!({"allOf": [inner, true]}),
        |inner: Value| json!({"anyOf": [inner, false]}),
        |inner: Value| json!({"oneOf": [inner, false]}),
        |inner: Value| json!({"not": inner}),
        |inner: Value| json!({"if": inner, "then": true}),
        |inner: Value| json!({"dependentSchemas": {"a": inner}}),
    ] {
        let core = json!({"properties": {"a": {"$ref": "#"}, "b": false}});
        let schema = (0..28).fold(core, |inner, _| wrap(inner));
        let _ = validate(&schema, nested(120, json!({"b": 1})));
    }
}

#[test]
fn references_that_only_refer_to_themselves_are_refused() {
    for definition in [
        json!({"$ref": "#/$defs/a"}),
        json!({"allOf": [{"not": {"$ref": "#/$defs/a"}}]}),
        json!({"if": {"$ref": "#"}}),
        json!({
            "properties": {"b": {"$ref": "#/$defs/b"}},
            "anyOf": [{"dependentSchemas": {"x": {"$ref": "#/$defs/b"}}}],
        }),
    ] {
        let other = json!({"oneOf": [{"$ref": "#/$defs/a"}]});
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": definition, "b": other}});
        assert_eq!(super::schema(&schema).check(), Err(SchemaError::Circular), "{schema}");
    }
}

#[test]
fn only_references_within_the_schema_are_followed() {
    for reference in [
        "https://example.com/schema",
        "file:///etc/passwd",
        "other.json",
        "/etc/passwd",
        "//host/x",
        "https://json-schema.org/draft/2020-12/schema",
        "#anchor",
        "#/nowhere",
        "#/%zz",
        "",
    ] {
        for keyword in ["$ref", "$dynamicRef"] {
            let schema = json!({"properties": {"a": {keyword: reference}}});
            assert!(is_refused(&schema), "{keyword} {reference}");
        }
    }
    assert!(is_refused(&json!({"$defs": {"x": {"$id": "https://example.com/", "$ref": "#"}}})));
    // A property with the name `$ref` is not a reference.
    let property = json!({"properties": {"$ref": {"type": "string"}, "$id": {"type": "null"}}});
    assert_eq!(validate(&property, json!({"$ref": "https://example.com"})), Ok(()));
    let data = json!({"not": {"const": {"$ref": "https://example.com"}}});
    assert_eq!(validate(&data, json!({})), Ok(()));
}

#[test]
fn patterns_run_in_linear_time_and_bounded_space() {
    let alternatives: Vec<String> = (0..20_000).map(|i| format!("word{i}")).collect();
    for pattern in [
        "^(a+)+$",
        "(.*)*x",
        "((a{0,100}){0,100}b){0,100}",
        "^.{0,400000}$",
        &alternatives.join("|"),
    ] {
        let _ = validate(&json!({"pattern": pattern}), json!("a".repeat(100_000) + "!"));
    }
    let violations =
        validate(&json!({"pattern": "^(a+)+$"}), json!("a".repeat(5000) + "!")).unwrap_err();
    assert_eq!(violations[0].to_string(), "the value must match the pattern `^(a+)+$`");
    let many: Map<String, Value> = (0..101).map(|i| (format!("x{i}.*y$"), json!({}))).collect();
    assert!(is_refused(&json!({"patternProperties": many})));
}

#[test]
fn large_values_are_not_multiplied_by_large_schemas() {
    let wide = json!({"items": {"allOf": vec![json!({"minLength": 0}); 3000]}});
    let violations = validate(&wide, Value::Array(vec![json!("x"); 100_000])).unwrap_err();
    assert_eq!(violations[0].to_string(), "the value must be smaller to be checked");
    let copies = json!({"anyOf": vec![json!({"minLength": 2_000_000}); 30]});
    let violations = validate(&copies, json!("x".repeat(1_000_000))).unwrap_err();
    assert_eq!(violations.len(), 1);
    let errors = json!({"items": {"anyOf": [{"type": "string"}]}});
    let violations = validate(&errors, Value::Array(vec![json!(1); 200_000])).unwrap_err();
    assert_eq!(violations[0].to_string(), "the value must match the schema");
    let errors = json!({"items": {"type": "string", "pattern": "a"}});
    let violations = validate(&errors, Value::Array(vec![json!(1); 200_000])).unwrap_err();
    assert_eq!(violations[0].to_string(), "`/0` must be a string, not an integer");
}
