//! Compiles a schema to a rule of the flat validator.

use serde_json::{Map, Number, Value};

use super::FlatRule;

/// The rule that decides like `schema`, if there is one.
pub(super) fn exact(schema: &Value) -> Option<FlatRule> {
    let mut map = schema.as_object()?.clone();
    map.remove("$schema");
    rule(&map)
}

/// A rule that rejects nothing that `schema` accepts.
pub(super) fn approximate(schema: &Value) -> FlatRule {
    let mut rule = FlatRule::default();
    // Next to a reference, draft-07 ignores all other keywords.
    let Some(map) = schema.as_object().filter(|map| !map.contains_key("$ref")) else {
        return rule;
    };
    for (name, value) in map {
        match (name.as_str(), value) {
            ("properties", Value::Object(map)) => {
                rule.properties =
                    sorted(map.iter().map(|(name, s)| (name.clone(), approximate(s))));
            }
            // It is not known here to which properties or items these apply.
            ("additionalProperties", _) if map.contains_key("patternProperties") => {}
            ("items", _) if map.contains_key("prefixItems") => {}
            ("items", Value::Object(_)) => {
                rule.items = Some(Box::new(approximate(value)));
            }
            _ => {
                let _ = keyword(&mut rule, name, value);
            }
        }
    }
    rule
}

fn rule(schema: &Map<String, Value>) -> Option<FlatRule> {
    let mut rule = FlatRule::default();
    schema.iter().try_for_each(|(name, value)| keyword(&mut rule, name, value))?;
    Some(rule)
}

/// Adds one keyword to a rule; `None` if rules do not have it.
fn keyword(rule: &mut FlatRule, name: &str, value: &Value) -> Option<()> {
    match name {
        "type" => rule.types = types(value)?,
        "enum" => rule.options = Some(options(value)?),
        "minimum" => rule.minimum = Some(limit(value)?),
        "maximum" => rule.maximum = Some(limit(value)?),
        "minLength" => rule.min_length = Some(value.as_u64()?),
        "maxLength" => rule.max_length = Some(value.as_u64()?),
        "properties" => rule.properties = properties(value)?,
        "required" => rule.required = distinct(value)?,
        "additionalProperties" => rule.closed = !value.as_bool()?,
        "items" => rule.items = Some(Box::new(self::rule(value.as_object()?)?)),
        "title" | "description" | "format" | "$comment" if value.is_string() => {}
        "deprecated" | "readOnly" | "writeOnly" if value.is_boolean() => {}
        "examples" if value.is_array() => {}
        "default" => {}
        _ => return None,
    }
    Some(())
}

fn types(value: &Value) -> Option<Vec<String>> {
    let types = match value {
        Value::String(name) => vec![name.clone()],
        _ => distinct(value)?,
    };
    let known = ["null", "boolean", "integer", "number", "string", "array", "object"];
    (!types.is_empty() && types.iter().all(|name| known.contains(&name.as_str()))).then_some(types)
}

/// Numbers are left to the full validator, because 1 and 1.0 are the same option.
fn options(value: &Value) -> Option<Vec<Value>> {
    let options = value.as_array().filter(|options| !options.is_empty())?;
    let plain = |option: &Value| option.is_string() || option.is_boolean() || option.is_null();
    options.iter().all(plain).then(|| options.clone())
}

fn limit(value: &Value) -> Option<Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_number().filter(|number| number.as_f64().is_some_and(|n| n.abs() < EXACT)).cloned()
}

fn distinct(value: &Value) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for name in value.as_array()? {
        let name = name.as_str().filter(|name| !names.iter().any(|other| other == name))?;
        names.push(name.to_owned());
    }
    Some(names)
}

fn properties(value: &Value) -> Option<Vec<(String, FlatRule)>> {
    let compile =
        |(name, schema): (&String, &Value)| Some((name.clone(), rule(schema.as_object()?)?));
    let properties: Option<Vec<_>> = value.as_object()?.iter().map(compile).collect();
    Some(sorted(properties?.into_iter()))
}

fn sorted(properties: impl Iterator<Item = (String, FlatRule)>) -> Vec<(String, FlatRule)> {
    let mut properties: Vec<_> = properties.collect();
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    properties
}
