//! Mirrored headers: the arguments that a tool's schema repeats in headers, and the check of a request against them
//! (2026-07-28 basic/transports/streamable-http, custom headers from tool parameters).

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde_json::Value;

use super::header_value;
use super::mcp_headers::{mismatch, shorten};
use crate::fault::Fault;
use crate::model::Definition;
use crate::wire::{Object, unquote};

/// The schema keyword that names the header of an argument.
pub const HEADER_KEYWORD: &str = "x-mcp-header";

/// The prefix of the headers' names.
pub const HEADER_PREFIX: &str = "mcp-param-";

/// The largest integer that all peers represent exactly: 2^53 - 1.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// An argument that is mirrored in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredHeader {
    /// The name of the header, in lower case.
    pub header: String,
    path: Vec<String>,
}

/// An invalid annotation. Clients must reject the whole tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirroredHeaderError {
    /// The value of the annotation.
    name: String,
    problem: &'static str,
}

impl fmt::Display for MirroredHeaderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{HEADER_KEYWORD}`: `{}` {}", shorten(&self.name), self.problem)
    }
}

impl core::error::Error for MirroredHeaderError {}

impl Definition {
    /// The mirrored headers of a tool.
    pub fn mirrored_headers(&self) -> Result<Vec<MirroredHeader>, MirroredHeaderError> {
        self.member("inputSchema").map_or(Ok(Vec::new()), MirroredHeader::find_all)
    }
}

impl MirroredHeader {
    /// The mirrored headers that a schema declares.
    pub fn find_all(schema: &str) -> Result<Vec<Self>, MirroredHeaderError> {
        if !mentions_keyword(schema) {
            return Ok(Vec::new());
        }
        let Ok(schema) = serde_json::from_str::<Value>(schema) else { return Ok(Vec::new()) };
        let mut finder = MirroredHeaderFinder { found: Vec::new(), path: Vec::new() };
        finder.properties(&schema)?;
        match count_keyword(&schema) == finder.found.len() {
            true => Ok(finder.found),
            false => Err(error("", "is not reachable through `properties`")),
        }
    }

    /// Checks that the header matches the argument.
    pub fn check(&self, arguments: Object<'_>, header: Option<&[u8]>) -> Result<(), Fault> {
        let body = self.argument(arguments);
        match (body, header) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(self.fault("is missing, but the argument is present")),
            (None, Some(_)) => Err(self.fault("is present, but the argument is missing")),
            (Some(raw), Some(value)) => match header_value::decode(value) {
                None => Err(self.fault("is malformed")),
                Some(value) if matches_argument(raw, &value) => Ok(()),
                Some(_) => Err(self.fault("differs from the argument")),
            },
        }
    }

    /// The header's value for these arguments; `None` if the argument is absent.
    pub fn value<'a>(&self, arguments: Object<'a>) -> Option<Cow<'a, str>> {
        let raw = self.argument(arguments)?;
        if let Some(text) = unquote(raw) {
            return Some(Cow::Owned(header_value::encode(&text).into_owned()));
        }
        let is_scalar = !raw.starts_with(['{', '[']);
        let is_whole = |number: &f64| number % 1.0 == 0.0 && number.abs() <= MAX_SAFE_INTEGER;
        match raw.parse::<f64>().ok().filter(is_whole) {
            Some(number) => Some(Cow::Owned(format!("{number}"))),
            None => is_scalar.then_some(Cow::Borrowed(raw)),
        }
    }

    /// The raw argument; null counts as absent.
    fn argument<'a>(&self, arguments: Object<'a>) -> Option<&'a str> {
        let (last, parents) = self.path.split_last()?;
        let mut object = arguments;
        for parent in parents {
            object = object.get(parent).and_then(Object::new)?;
        }
        object.get(last).filter(|raw| *raw != "null")
    }

    fn fault(&self, problem: &str) -> Fault {
        mismatch(format!("the header {} {problem}", self.header))
    }
}

/// Whether the keyword occurs anywhere. Every tool is checked at each start, so the search starts with a text that is
/// rare in schemas.
fn mentions_keyword(schema: &str) -> bool {
    let (before, _) = HEADER_KEYWORD.split_once('-').unwrap_or_default();
    memchr::memchr_iter(b'-', schema.as_bytes()).any(|index| {
        let start = index.checked_sub(before.len());
        start
            .and_then(|start| schema.get(start..))
            .is_some_and(|rest| rest.starts_with(HEADER_KEYWORD))
    })
}

/// Whether a header's text matches the raw argument. Numbers are compared by value.
fn matches_argument(raw: &str, text: &str) -> bool {
    if let Some(string) = unquote(raw) {
        return string == text;
    }
    let integer = |digits: &str| {
        let is_decimal = digits.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
        let number: f64 = digits.parse().ok().filter(|_| is_decimal)?;
        (number % 1.0 == 0.0 && number.abs() <= MAX_SAFE_INTEGER).then_some(number)
    };
    match (integer(raw), integer(text)) {
        (Some(body), Some(header)) => body == header,
        _ => raw == text && matches!(raw, "true" | "false"),
    }
}

struct MirroredHeaderFinder {
    found: Vec<MirroredHeader>,
    path: Vec<String>,
}

impl MirroredHeaderFinder {
    fn properties(&mut self, schema: &Value) -> Result<(), MirroredHeaderError> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Ok(());
        };
        for (name, property) in properties {
            self.path.push(name.clone());
            if let Some(annotation) = property.get(HEADER_KEYWORD) {
                self.take(annotation, property)?;
            }
            self.properties(property)?;
            self.path.pop();
        }
        Ok(())
    }

    fn take(&mut self, annotation: &Value, property: &Value) -> Result<(), MirroredHeaderError> {
        let name =
            annotation.as_str().ok_or_else(|| error(&annotation.to_string(), "is not a string"))?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(error(name, "is not a valid header name"));
        }
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["boolean", "integer", "string"].contains(&kind) {
            return Err(error(name, "needs a property of type string, integer or boolean"));
        }
        let header = format!("{HEADER_PREFIX}{}", name.to_ascii_lowercase());
        if self.found.iter().any(|mirror| mirror.header == header) {
            return Err(error(name, "is used twice"));
        }
        self.found.push(MirroredHeader { header, path: self.path.clone() });
        Ok(())
    }
}

fn error(name: &str, problem: &'static str) -> MirroredHeaderError {
    MirroredHeaderError { name: name.to_owned(), problem }
}

/// The characters of a token (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Number of occurrences of the keyword as a keyword. A property may have the same name.
fn count_keyword(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let own = usize::from(members.contains_key(HEADER_KEYWORD));
            let inner = members
                .iter()
                .filter(|(key, _)| *key != "properties")
                .map(|(_, v)| count_keyword(v));
            let named = members.get("properties").and_then(Value::as_object);
            let named = named.into_iter().flat_map(|all| all.values()).map(count_keyword);
            own + inner.sum::<usize>() + named.sum::<usize>()
        }
        Value::Array(items) => items.iter().map(count_keyword).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mirrors(properties: Value) -> Result<Vec<MirroredHeader>, MirroredHeaderError> {
        MirroredHeader::find_all(&json!({"type": "object", "properties": properties}).to_string())
    }

    #[test]
    fn annotated_arguments_are_found_along_chains_of_properties() {
        let found = mirrors(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "x-mcp-header": {"type": "string"},
        }));
        let found: Vec<_> = found.unwrap().into_iter().map(|mirror| mirror.header).collect();
        assert_eq!(found, ["mcp-param-n", "mcp-param-region"]);
    }

    #[test]
    fn annotations_that_clients_refuse_are_refused() {
        let string = |name: Value| json!({"type": "string", "x-mcp-header": name});
        let rows = [
            json!({"a": string(json!(""))}),
            json!({"a": string(json!("a b"))}),
            json!({"a": string(json!("a\r\nb"))}),
            json!({"a": string(json!("é"))}),
            json!({"a": string(json!(1))}),
            json!({"a": string(json!("X")), "b": string(json!("x"))}),
            json!({"a": {"type": "number", "x-mcp-header": "A"}}),
            json!({"a": {"type": "object", "x-mcp-header": "A"}}),
            json!({"a": {"type": "array", "items": string(json!("A"))}}),
            json!({"a": {"anyOf": [string(json!("A"))]}}),
        ];
        for row in rows {
            assert!(mirrors(row.clone()).is_err(), "{row}");
        }
    }

    #[test]
    fn a_header_mirrors_its_argument() {
        let mirror = &mirrors(json!({"a": {"type": "string", "x-mcp-header": "A"}})).unwrap()[0];
        let rows: [(&str, Option<&str>, bool); 16] = [
            (r#"{"a":"x"}"#, Some("x"), true),
            (r#"{"a":"x"}"#, Some("y"), false),
            (r#"{"a":"x"}"#, None, false),
            (r#"{"a":null}"#, None, true),
            (r#"{"a":null}"#, Some("x"), false),
            ("{}", None, true),
            (r#"{"a":"Hello"}"#, Some("=?base64?SGVsbG8=?="), true),
            (r#"{"a":"Hello"}"#, Some("=?base64?SGVsbG8?="), false),
            (r#"{"a":42}"#, Some("42.0"), true),
            (r#"{"a":42}"#, Some("43"), false),
            (r#"{"a":1000}"#, Some("1e3"), false),
            (r#"{"a":9007199254740993}"#, Some("9007199254740993"), false),
            (r#"{"a":true}"#, Some("true"), true),
            (r#"{"a":true}"#, Some("True"), false),
            (r#"{"a":""}"#, Some(""), true),
            (r#"{"a":"42"}"#, Some("42.0"), false),
        ];
        for (arguments, header, right) in rows {
            let arguments_view = Object::new(arguments).unwrap();
            let checked = mirror.check(arguments_view, header.map(str::as_bytes));
            assert_eq!(checked.is_ok(), right, "{arguments} {header:?}");
        }
    }
}
