//! The schema keywords that are kept, and the valid form of each.

use serde_json::{Value, json};

/// The value of a keyword.
pub(super) enum Keyword<'a> {
    /// It is removed.
    Nothing,
    /// A value that is kept unchanged.
    Value(Value),
    /// An example or default value.
    Sample(Value),
    /// A text for people and models.
    Text(&'a str),
    /// A regular expression.
    Pattern(&'a str),
    /// A boolean about the limit of this name.
    Exclusive(&'static str),
    /// A schema.
    Schema,
    /// An array of schemas.
    List,
    /// Schemas by name.
    Members,
}

/// The value of a keyword, if it is valid.
pub(super) fn keyword<'a>(key: &str, value: &'a Value) -> Keyword<'a> {
    let kept_if = |fits: bool| match fits {
        true => Keyword::Value(value.clone()),
        false => Keyword::Nothing,
    };
    let is_schema = value.is_object() || value.is_boolean();
    match key {
        "type" => read_types(value).map_or(Keyword::Nothing, Keyword::Value),
        "enum" => kept_if(value.as_array().is_some_and(|choices| !choices.is_empty())),
        "const" => kept_if(true),
        "default" => Keyword::Sample(value.clone()),
        "example" => Keyword::Sample(value.clone()),
        "examples" if value.is_array() => Keyword::Sample(value.clone()),
        "required" => read_names(value).map_or(Keyword::Nothing, Keyword::Value),
        "exclusiveMinimum" if value == &json!(true) => Keyword::Exclusive("minimum"),
        "exclusiveMaximum" if value == &json!(true) => Keyword::Exclusive("maximum"),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            kept_if(value.is_number())
        }
        "multipleOf" => kept_if(value.as_f64().is_some_and(|number| number > 0.0)),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => {
            read_count(value).map_or(Keyword::Nothing, Keyword::Value)
        }
        "uniqueItems" => kept_if(value.is_boolean()),
        "format" | "contentEncoding" | "contentMediaType" => kept_if(value.is_string()),
        "description" => value.as_str().map_or(Keyword::Nothing, Keyword::Text),
        "pattern" => value.as_str().map_or(Keyword::Nothing, Keyword::Pattern),
        "additionalProperties"
        | "items"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
            if is_schema =>
        {
            Keyword::Schema
        }
        "allOf" | "anyOf" | "oneOf" | "prefixItems"
            if value.as_array().is_some_and(|list| !list.is_empty()) =>
        {
            Keyword::List
        }
        "properties" if value.is_object() => Keyword::Members,
        _ => Keyword::Nothing,
    }
}

/// The known types that a schema names.
pub(super) fn read_types(value: &Value) -> Option<Value> {
    let is_kind = |kind: &Value| {
        let known = ["string", "number", "integer", "boolean", "array", "object", "null"];
        kind.as_str().is_some_and(|kind| known.contains(&kind))
    };
    match value {
        Value::Array(kinds) => {
            let mut known: Vec<&Value> = Vec::new();
            for kind in kinds.iter().filter(|kind| is_kind(kind)) {
                if !known.contains(&kind) {
                    known.push(kind);
                }
            }
            (!known.is_empty()).then(|| json!(known))
        }
        kind => is_kind(kind).then(|| kind.clone()),
    }
}

/// An array of names; older documents have a boolean here.
fn read_names(value: &Value) -> Option<Value> {
    let mut names: Vec<&str> = value.as_array()?.iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| json!(names))
}

/// A non-negative count.
fn read_count(value: &Value) -> Option<Value> {
    let float = value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0);
    value
        .as_u64()
        .map(Value::from)
        .or_else(|| float.filter(|number| *number < 1e15).map(|number| Value::from(number as u64)))
}
