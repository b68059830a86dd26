//! The messages of violations.
//!
//! They name types, limits and properties, never the offending value: it may be a secret, and the caller knows it
//! anyway.

use serde_json::{Number, Value};

/// `text`, or its first 80 characters.
pub(super) fn truncate(text: &str) -> String {
    truncate_to(MAX_CHARS, text)
}

/// `text`, or its first `length` characters.
pub(super) fn truncate_to(length: usize, text: &str) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// "must be a string or null, not an array".
pub(super) fn wrong_type<'a>(expected: impl Iterator<Item = &'a str>, value: &Value) -> String {
    let names: Vec<&str> = expected.map(with_article).collect();
    format!("must be {}, not {}", names.join(" or "), with_article(type_of(value)))
}

/// "must be one of "a", "b"".
pub(super) fn not_an_option(options: &[Value]) -> String {
    let shown: Vec<String> =
        options.iter().take(MAX_LISTED).map(|option| truncate(&option.to_string())).collect();
    let more = if options.len() > MAX_LISTED { ", …" } else { "" };
    format!("must be one of {}{more}", shown.join(", "))
}

/// "must have the property `name`".
pub(super) fn missing_property(name: &str) -> String {
    format!("must have the property `{}`", truncate(name))
}

/// "must not have the property `name`".
pub(super) fn unexpected_properties<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> =
        names.take(MAX_LISTED).map(|name| format!("`{}`", truncate(name))).collect();
    format!("must not have the property {}", names.join(" or "))
}

/// "must have at least 3 items", for the words "item" and "items".
pub(super) fn too_few(limit: u64, words: [&str; 2]) -> String {
    format!("must have at least {limit} {}", words[usize::from(limit != 1)])
}

/// "must have at most 3 items", for the words "item" and "items".
pub(super) fn too_many(limit: u64, words: [&str; 2]) -> String {
    format!("must have at most {limit} {}", words[usize::from(limit != 1)])
}

/// Whether JSON Schema calls this number an integer, which 1.0 is.
pub(super) fn is_integer(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_integer(number) => "integer",
        Value::Number(_) => "fraction",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn with_article(name: &str) -> &'static str {
    match name {
        "null" => "null",
        "boolean" => "a boolean",
        "integer" => "an integer",
        "fraction" => "a fraction",
        "number" => "a number",
        "string" => "a string",
        "array" => "an array",
        _ => "an object",
    }
}

pub(super) const CHARACTERS: [&str; 2] = ["character", "characters"];
pub(super) const ITEMS: [&str; 2] = ["item", "items"];
pub(super) const PROPERTIES: [&str; 2] = ["property", "properties"];

const MAX_CHARS: usize = 80;

const MAX_LISTED: usize = 20;
