//! Tests of schemas as tools use them, and of the two validators against each other.

mod hostile;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;

fn schema(value: &Value) -> Schema {
    Schema::new(value.to_string())
}

/// The violations as sentences.
fn violations(schema: &Schema, instance: &Value) -> Vec<String> {
    schema.validate(instance).err().into_iter().flatten().map(|v| v.to_string()).collect()
}

fn is_flat(value: &Value) -> bool {
    FlatSchema::compile(value).is_some()
}

#[test]
fn plain_schemas_need_no_compiler() {
    let plain = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Search", "type": "object", "additionalProperties": false,
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "What to find"},
            "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 50, "default": 10},
            "order": {"type": "string", "enum": ["up", "down"]},
            "tags": {"type": "array", "items": {"type": "string", "format": "uri"}},
        },
        "required": ["query"],
    });
    assert!(is_flat(&plain));
    let schema = schema(&plain);
    assert_eq!(schema.validate(&json!({"query": "x", "limit": 1.0, "tags": ["a"]})), Ok(()));
    assert_eq!(
        violations(&schema, &json!({"limit": 51, "order": "left", "tags": ["a", 1], "a/b": 0})),
        [
            "the value must have the property `query`",
            "`/limit` must be at most 50",
            "`/order` must be one of \"up\", \"down\"",
            "`/tags/1` must be a string, not an integer",
            "the value must not have the property `a/b`",
        ]
    );
    assert_eq!(
        violations(&schema, &json!({"query": "", "limit": 0.5})),
        [
            "`/limit` must be an integer or null, not a fraction",
            "`/query` must have at least 1 character"
        ]
    );
}

#[test]
fn trivial_schemas_are_plain() {
    for text in [json!({}), json!({"type": "object"}), json!({"type": "object", "properties": {}})]
    {
        assert!(is_flat(&text), "{text}");
        assert_eq!(schema(&text).validate(&json!({"any": [1]})), Ok(()));
    }
    let refused = violations(&schema(&json!({"type": "object"})), &json!([]));
    assert_eq!(refused, ["the value must be an object, not an array"]);
}

#[test]
fn both_checkers_use_the_same_sentences() {
    let plain = json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {
            "b": {"type": ["null", "string"]}, "c": {"enum": ["x", null]}, "d": {"minimum": 2.5},
            "e": {"maximum": 3}, "f": {"minLength": 2}, "g": {"maxLength": 1}, "h~/": {"type": "null"},
        },
    });
    let (value, dialect, shape) = parse(&plain.to_string()).unwrap();
    let flat = FlatSchema::compile(&value).unwrap();
    let full = FullSchema::compile(&value, dialect, shape).unwrap();
    for instance in [
        json!({"b": 1, "c": "y", "d": 1, "e": 4, "i": 0, "j": 0}),
        json!({"f": "é", "g": "éé", "h~/": 0}),
        json!([]),
    ] {
        let mut one = flat.validate(&instance).unwrap_err();
        let mut other = full.validate(&instance, ValueSize::of(&instance)).unwrap_err();
        one.sort_by(|a, b| (&a.pointer, &a.message).cmp(&(&b.pointer, &b.message)));
        other.sort_by(|a, b| (&a.pointer, &a.message).cmp(&(&b.pointer, &b.message)));
        assert_eq!(one, other);
    }
}

#[test]
fn definitions_recursion_and_combinations_work() {
    let schema = schema(&json!({
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/Node%3CT%3E"},
            "who": {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^@[a-z]+$"}]},
        },
        "$defs": {"Node<T>": {
            "type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node%3CT%3E"}},
        }},
    }));
    assert_eq!(schema.check(), Ok(()));
    let tree = json!({"name": "a", "next": {"name": "b", "next": {"name": "c"}}});
    assert_eq!(schema.validate(&json!({"tree": tree, "who": "@me"})), Ok(()));
    assert_eq!(
        violations(&schema, &json!({"tree": {"name": "a", "next": {"name": 1}}, "who": "me"})),
        [
            "`/tree/next/name` must be a string, not an integer",
            "`/who` must match one of the allowed forms",
        ]
    );
}

#[test]
fn draft_7_is_detected_by_its_name() {
    // An array of `items` is a tuple in draft-07 and invalid in 2020-12.
    let tuple = json!({"items": [{"type": "string"}], "additionalItems": false});
    assert!(schema(&tuple).validate(&json!(["a"])).unwrap_err()[0].is_broken_schema());
    for name in
        ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema"]
    {
        let mut old = tuple.clone();
        old["$schema"] = json!(name);
        assert_eq!(schema(&old).validate(&json!(["a"])), Ok(()));
        assert!(!schema(&old).validate(&json!(["a", 1])).unwrap_err()[0].is_broken_schema());
    }
}

#[test]
fn other_dialects_are_refused_by_name() {
    for name in [
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "x",
    ] {
        let schema = schema(&json!({"$schema": name, "type": "object"}));
        let error = schema.check().unwrap_err();
        assert_eq!(error, SchemaError::Dialect(name.to_owned()));
        assert!(error.to_string().contains(name), "{error}");
        assert!(schema.validate(&json!({})).unwrap_err()[0].is_broken_schema());
    }
    assert!(schema(&json!({"$schema": 7})).check().is_err());
    let nested = json!({"not": {"$schema": "http://json-schema.org/draft-04/schema#"}});
    assert!(schema(&nested).check().is_err());
}

#[test]
fn a_broken_schema_says_why_and_is_not_the_callers_fault() {
    for (text, reason) in [
        ("{", "is not JSON"),
        (r#"{"type": "strnig"}"#, "is not a valid schema"),
        (r#"{"properties": {"a": {"minLength": -1}}}"#, "is not a valid schema"),
        (r#"{"pattern": "("}"#, "is not a valid schema"),
        (r#"{"pattern": "(?=a)b"}"#, "is not a valid schema"),
        ("5", "is not a valid schema"),
    ] {
        let violations = Schema::new(text).validate(&json!({})).unwrap_err();
        assert_eq!(violations.len(), 1);
        assert!(violations[0].is_broken_schema());
        assert!(violations[0].to_string().contains(reason), "{text}: {}", violations[0]);
    }
}

#[test]
fn neither_values_nor_long_names_are_echoed() {
    let secret = "s3cr3t".repeat(20);
    let long = "n".repeat(5000);
    for keyword in [json!({"maxLength": 3}), json!({"pattern": "^x$"}), json!({"const": 1})] {
        let closed = json!({"properties": {"p": keyword}, "additionalProperties": false});
        for instance in [json!({"p": secret}), json!({long.as_str(): 1})] {
            let text = violations(&schema(&closed), &instance).concat();
            assert!(!text.contains("s3cr3t") && text.len() < 300, "{text}");
        }
    }
    let nested = json!({"additionalProperties": {"type": "null"}});
    let text = violations(&schema(&nested), &json!({long.as_str(): 1})).concat();
    assert!(text.len() < 400, "{text}");
    let choice = json!({"enum": (0..5000).map(|i| format!("option {i}")).collect::<Vec<_>>()});
    assert!(violations(&schema(&choice), &json!("x")).concat().len() < 500);
}

#[test]
fn at_most_eight_violations_are_reported() {
    let many: Value = (0..100).map(|i| json!({"x": i})).collect();
    for items in [json!({"type": "string"}), json!({"anyOf": [{"type": "string"}]})] {
        let violations = schema(&json!({"items": items})).validate(&many).unwrap_err();
        assert_eq!(violations.len(), MAX_VIOLATIONS);
    }
    let required: Vec<String> = (0..100).map(|i| format!("p{i}")).collect();
    let violations = schema(&json!({"required": required})).validate(&json!({})).unwrap_err();
    assert_eq!(violations.len(), MAX_VIOLATIONS);
}

#[test]
fn formats_are_annotations_in_both_dialects() {
    for name in
        ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema"]
    {
        for more in [json!({}), json!({"not": {"const": 1}})] {
            let mut text = json!({"$schema": name, "type": "string", "format": "email"});
            text.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(schema(&text).validate(&json!("not an address")), Ok(()));
        }
    }
}

#[test]
fn a_schema_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let schema = schema(&json!({"anyOf": [{"type": "object"}]}));
    shared(&schema);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(schema.validate(&json!({})), Ok(())));
        }
    });
    assert_eq!(schema.text(), r#"{"anyOf":[{"type":"object"}]}"#);
}

fn scalar() -> impl Strategy<Value = Value> {
    let numbers = vec![
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-1),
        json!(-0.0),
        json!(3),
        json!(1e300),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(9_007_199_254_740_993_u64),
    ];
    let texts = ["", "a", "é", "👍🏽", "abc", "e\u{301}"].map(|text| json!(text)).to_vec();
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(numbers),
        select(texts),
    ]
}

fn instance() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn keyword(
    inner: impl Strategy<Value = Value> + Clone + 'static,
) -> BoxedStrategy<(&'static str, Value)> {
    let types = ["null", "boolean", "integer", "number", "string", "array", "object", "int"];
    let limits = vec![
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-3),
        json!(9_007_199_254_740_991_u64),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!("1"),
    ];
    let lengths = vec![json!(0), json!(1), json!(2), json!(2.0), json!(-1)];
    let named = |name: &'static str| move |value: Value| (name, value);
    prop_oneof![
        select(types.to_vec()).prop_map(|name| ("type", json!(name))),
        vec(select(types.to_vec()), 0..3).prop_map(|names| ("type", json!(names))),
        vec(scalar(), 0..3).prop_map(|options| ("enum", json!(options))),
        select(limits.clone()).prop_map(named("minimum")),
        select(limits).prop_map(named("maximum")),
        select(lengths.clone()).prop_map(named("minLength")),
        select(lengths).prop_map(named("maxLength")),
        btree_map("[a-c]", inner.clone(), 0..3).prop_map(|map| ("properties", json!(map))),
        vec("[a-c]", 0..3).prop_map(|names| ("required", json!(names))),
        any::<bool>().prop_map(|open| ("additionalProperties", json!(open))),
        inner.prop_map(named("items")),
        scalar().prop_map(named("default")),
        scalar().prop_map(named("description")),
        Just(("examples", json!([1]))),
        Just(("format", json!("email"))),
    ]
    .boxed()
}

fn flat_schema() -> impl Strategy<Value = Value> {
    let collect = |keywords: Vec<(&str, Value)>| {
        Value::Object(keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    Just(json!({}))
        .prop_recursive(3, 24, 4, move |inner| vec(keyword(inner), 0..5).prop_map(collect))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_flat_checker_decides_like_the_full_one(
        schema in flat_schema(),
        old in any::<bool>(),
        instances in vec(instance(), 12),
    ) {
        let mut schema = schema;
        if old {
            schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        }
        if let Some(flat) = FlatSchema::compile(&schema) {
            let (value, dialect, shape) = parse(&schema.to_string()).unwrap();
            let full = FullSchema::compile(&value, dialect, shape)
                .map_err(|error| TestCaseError::fail(format!("{schema}: {error}")))?;
            for instance in &instances {
                let expected = full.validate(instance, ValueSize::of(instance)).is_ok();
                let decided = flat.validate(instance).is_ok();
                prop_assert_eq!(decided, expected, "{} {}", schema, instance);
            }
        }
    }

    #[test]
    fn a_sketch_refuses_nothing_that_the_schema_accepts(
        schema in flat_schema(),
        more in select(vec![
            json!({}), json!({"patternProperties": {"[ab]": {}}}), json!({"prefixItems": [true]}),
            json!({"anyOf": [{"type": "object"}, {"type": "null"}]}),
        ]),
        instances in vec(instance(), 12),
    ) {
        let mut schema = schema;
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (value, dialect, shape) = parse(&schema.to_string()).unwrap();
        let sketch = FlatSchema::sketch(&value);
        if let Ok(full) = FullSchema::compile(&value, dialect, shape) {
            for instance in &instances {
                let accepted = full.validate(instance, ValueSize::of(instance)).is_ok();
                prop_assert!(!accepted || sketch.validate(instance).is_ok(), "{} {}", schema, instance);
            }
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,60}", schema in flat_schema(), instance in instance()) {
        let _ = Schema::new(text).validate(&instance);
        let _ = Schema::new(schema.to_string()).check();
    }
}
