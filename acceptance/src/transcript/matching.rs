//! Compares a message with the expected one, and finds the first difference.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::text;
use super::text::{ANY, Captures};

const ANY_ELEMENTS: &str = "…*";

/// An expected message, ready to be compared.
#[derive(Debug)]
pub(super) struct Pattern(PatternShape);

impl Pattern {
    pub(super) fn parse(json: &str) -> Result<Self, String> {
        PatternShape::parse(json).map(Self).map_err(|error| error.to_string())
    }

    /// Compares a line of output. Names are captured only when it matches.
    pub(super) fn compare(&self, line: &str, captures: &mut Captures) -> Result<(), Difference> {
        let got = PatternShape::parse(line)
            .map_err(|error| Difference::new(format!("not JSON: {error}")))?;
        let mut trial = captures.clone();
        shapes(&self.0, &got, &mut trial)?;
        *captures = trial;
        Ok(())
    }
}

/// Where two messages differ, and how.
#[derive(Debug)]
pub(super) struct Difference {
    path: Vec<String>,
    what: String,
}

impl Difference {
    fn new(message: impl Into<String>) -> Self {
        Self { path: Vec::new(), what: message.into() }
    }

    /// The difference of a message that was not expected.
    pub(super) fn nothing_expected() -> Self {
        Self::new("nothing is expected here")
    }

    fn inside(mut self, place: impl fmt::Display) -> Self {
        self.path.insert(0, place.to_string());
        self
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "at {}: {}", self.path.join("."), self.what)
    }
}

#[derive(Debug)]
enum PatternShape {
    One(IdentifiedMessage),
    Batch(Vec<IdentifiedMessage>),
}

/// A message whose `id` is kept as the original text.
#[derive(Debug)]
struct IdentifiedMessage {
    id: Option<String>,
    body: Value,
}

impl PatternShape {
    fn parse(json: &str) -> serde_json::Result<Self> {
        if json.trim_start().starts_with('[') {
            let entries: Vec<Box<RawValue>> = serde_json::from_str(json)?;
            let messages: serde_json::Result<Vec<_>> =
                entries.iter().map(|entry| IdentifiedMessage::parse(entry.get())).collect();
            return Ok(Self::Batch(messages?));
        }
        IdentifiedMessage::parse(json).map(Self::One)
    }
}

impl IdentifiedMessage {
    fn parse(json: &str) -> serde_json::Result<Self> {
        let mut body: Value = serde_json::from_str(json)?;
        let Some(members) = body.as_object_mut() else {
            return Ok(Self { id: None, body });
        };
        members.remove("id");
        let raw: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json)?;
        Ok(Self { id: raw.get("id").map(|id| id.get().to_owned()), body })
    }
}

type MatchResult = Result<(), Difference>;

fn shapes(expected: &PatternShape, got: &PatternShape, captures: &mut Captures) -> MatchResult {
    match (expected, got) {
        (PatternShape::One(expected), _) if expected.body == ANY => Ok(()),
        (PatternShape::One(expected), PatternShape::One(got)) => messages(expected, got, captures),
        (PatternShape::Batch(expected), PatternShape::Batch(got)) => {
            batches(expected, got, captures)
        }
        (PatternShape::One(_), PatternShape::Batch(_)) => {
            Err(Difference::new("a batch, expected one message"))
        }
        (PatternShape::Batch(_), PatternShape::One(_)) => {
            Err(Difference::new("one message, expected a batch"))
        }
    }
}

fn batches(
    expected: &[IdentifiedMessage],
    got: &[IdentifiedMessage],
    captures: &mut Captures,
) -> MatchResult {
    if expected.len() != got.len() {
        let text = format!("{} messages, expected {}", got.len(), expected.len());
        return Err(Difference::new(text));
    }
    let mut left: Vec<&IdentifiedMessage> = got.iter().collect();
    for (index, wanted) in expected.iter().enumerate() {
        let found = left.iter().position(|message| messages(wanted, message, captures).is_ok());
        let Some(offset) = found else {
            return Err(Difference::new("no entry of the batch matches this one").inside(index));
        };
        left.remove(offset);
    }
    Ok(())
}

fn messages(
    expected: &IdentifiedMessage,
    got: &IdentifiedMessage,
    captures: &mut Captures,
) -> MatchResult {
    let mut trial = captures.clone();
    match (&expected.id, &got.id) {
        (Some(wanted), Some(id)) => ids(wanted, id, &mut trial).map_err(|d| d.inside("id"))?,
        (Some(_), None) => return Err(Difference::new("is missing").inside("id")),
        (None, Some(_)) if !is_open(&expected.body) => {
            return Err(Difference::new("is not expected").inside("id"));
        }
        (None, _) => {}
    }
    values(&expected.body, &got.body, &mut trial)?;
    *captures = trial;
    Ok(())
}

fn ids(expected: &str, got: &str, captures: &mut Captures) -> MatchResult {
    let pattern: Option<String> = serde_json::from_str(expected).ok();
    let same = match pattern.as_deref() {
        Some(ANY) => true,
        Some(pattern) => match text::whole_name(pattern) {
            Some(name) => captures.bind(name, got),
            None if got == expected => true,
            None => serde_json::from_str::<String>(got)
                .is_ok_and(|got| got != pattern && text::matches(pattern, &got, captures)),
        },
        None => got == expected,
    };
    if same { Ok(()) } else { Err(Difference::new(format!("{got}, expected {expected}"))) }
}

fn values(expected: &Value, got: &Value, captures: &mut Captures) -> MatchResult {
    let same = match (expected, got) {
        (Value::String(pattern), _) if pattern == ANY => true,
        (Value::String(pattern), _) if text::whole_name(pattern).is_some() => {
            text::whole_name(pattern).is_some_and(|name| captures.bind(name, &got.to_string()))
        }
        (Value::String(pattern), Value::String(got)) => text::matches(pattern, got, captures),
        (Value::Object(expected), Value::Object(got)) => return objects(expected, got, captures),
        (Value::Array(expected), Value::Array(got)) => return arrays(expected, got, captures),
        _ => expected == got,
    };
    if same { Ok(()) } else { Err(Difference::new(format!("{got}, expected {expected}"))) }
}

fn objects(
    expected: &Map<String, Value>,
    got: &Map<String, Value>,
    captures: &mut Captures,
) -> MatchResult {
    for (name, required) in expected.iter().filter(|(name, _)| *name != ANY) {
        match got.get(name) {
            Some(value) => values(required, value, captures).map_err(|d| d.inside(name))?,
            None => return Err(Difference::new("is missing").inside(name)),
        }
    }
    let open = expected.contains_key(ANY);
    match got.keys().find(|name| !open && !expected.contains_key(*name)) {
        Some(extra) => Err(Difference::new("is not expected").inside(extra)),
        None => Ok(()),
    }
}

fn arrays(expected: &[Value], got: &[Value], captures: &mut Captures) -> MatchResult {
    if expected.iter().any(|element| element == ANY_ELEMENTS) {
        return if elements(expected, got, captures) {
            Ok(())
        } else {
            Err(Difference::new("no such elements"))
        };
    }
    if expected.len() != got.len() {
        let message = format!("{} elements, expected {}", got.len(), expected.len());
        return Err(Difference::new(message));
    }
    for (index, (required, value)) in expected.iter().zip(got).enumerate() {
        values(required, value, captures).map_err(|d| d.inside(index))?;
    }
    Ok(())
}

/// Arrays with `"…*"`: tries each number of elements that it may stand for.
fn elements(expected: &[Value], got: &[Value], captures: &mut Captures) -> bool {
    let Some((first, rest)) = expected.split_first() else {
        return got.is_empty();
    };
    if first == ANY_ELEMENTS {
        return (0..=got.len()).any(|skipped| elements(rest, &got[skipped..], captures));
    }
    let Some((value, left)) = got.split_first() else {
        return false;
    };
    let mut trial = captures.clone();
    let fits = values(first, value, &mut trial).is_ok() && elements(rest, left, &mut trial);
    if fits {
        *captures = trial;
    }
    fits
}

fn is_open(body: &Value) -> bool {
    body.as_object().is_some_and(|members| members.contains_key(ANY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(expected: &str, got: &str) -> Result<(), String> {
        let pattern = Pattern::parse(expected).unwrap();
        pattern.compare(got, &mut Captures::default()).map_err(|difference| difference.to_string())
    }

    #[test]
    fn the_order_of_members_does_not_matter() {
        assert_eq!(
            compare(r#"{"id":1,"result":{"a":1,"b":2}}"#, r#"{"result":{"b":2,"a":1},"id":1}"#),
            Ok(())
        );
    }

    #[test]
    fn an_id_must_be_the_same_token() {
        assert!(compare(r#"{"id":1}"#, r#"{"id":1.0}"#).is_err());
        assert!(compare(r#"{"id":1}"#, r#"{"id":"1"}"#).is_err());
        assert!(compare(r#"{"id":"é"}"#, r#"{"id":"\u00e9"}"#).is_err());
        assert_eq!(compare(r#"{"id":9007199254740993}"#, r#"{"id": 9007199254740993 }"#), Ok(()));
        assert!(compare(r#"{"id":9007199254740993}"#, r#"{"id":9007199254740992}"#).is_err());
        assert_eq!(compare(r#"{"id":null}"#, r#"{"id":null}"#), Ok(()));
    }

    #[test]
    fn an_id_must_be_present_only_where_it_is_expected() {
        assert_eq!(compare(r#"{"id":1}"#, "{}"), Err("at id: is missing".into()));
        assert_eq!(compare("{}", r#"{"id":1}"#), Err("at id: is not expected".into()));
        assert_eq!(compare(r#"{"…":"…"}"#, r#"{"id":1}"#), Ok(()));
        assert_eq!(compare(r#"{"id":"…"}"#, r#"{"id":1}"#), Ok(()));
        assert_eq!(compare(r#"{"id":"a…"}"#, r#"{"id":"ab"}"#), Ok(()));
    }

    #[test]
    fn an_object_has_exactly_the_members_shown_unless_it_is_open() {
        let got = r#"{"error":{"code":-32600,"message":"no","data":1}}"#;
        let closed = compare(r#"{"error":{"code":-32600,"message":"…"}}"#, got);
        assert_eq!(closed, Err("at error.data: is not expected".into()));
        assert_eq!(compare(r#"{"error":{"code":-32600,"message":"…","…":"…"}}"#, got), Ok(()));
        assert_eq!(compare(r#"{"error":{"…":"…"}}"#, got), Ok(()));
    }

    #[test]
    fn a_bare_ellipsis_matches_any_value() {
        for value in ["null", "7", "[1]", "{\"a\":1}", "\"text\""] {
            assert_eq!(compare(r#"{"result":"…"}"#, &format!(r#"{{"result":{value}}}"#)), Ok(()));
        }
        assert_eq!(compare(r#""…""#, "[]"), Ok(()));
    }

    #[test]
    fn a_string_is_not_a_number_that_looks_like_it() {
        assert!(compare(r#"{"result":"7"}"#, r#"{"result":7}"#).is_err());
    }

    #[test]
    fn a_difference_names_its_path() {
        let result = compare(r#"{"tools":[{"name":"echo"}]}"#, r#"{"tools":[{"name":"hello"}]}"#);
        assert_eq!(result, Err("at tools.0.name: \"hello\", expected \"echo\"".into()));
    }

    #[test]
    fn an_array_has_exactly_the_elements_shown_unless_it_is_open() {
        assert!(compare(r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#).is_err());
        assert!(compare(r#"{"a":["…"]}"#, r#"{"a":[1,2]}"#).is_err());
        assert_eq!(compare(r#"{"a":["…*",2,"…*"]}"#, r#"{"a":[1,2,3,4]}"#), Ok(()));
        assert_eq!(compare(r#"{"a":["…*",2,"…*"]}"#, r#"{"a":[2]}"#), Ok(()));
        assert!(compare(r#"{"a":["…*",2,"…*"]}"#, r#"{"a":[1]}"#).is_err());
    }

    #[test]
    fn the_entries_of_a_batch_come_in_any_order() {
        let expected = r#"[{"id":1,"result":{}},{"id":"1","result":{}}]"#;
        assert_eq!(compare(expected, r#"[{"id":"1","result":{}},{"id":1,"result":{}}]"#), Ok(()));
        assert!(compare(expected, r#"[{"id":1,"result":{}},{"id":1,"result":{}}]"#).is_err());
        assert!(compare(expected, r#"[{"id":1,"result":{}}]"#).is_err());
        assert!(compare(expected, r#"{"id":1,"result":{}}"#).is_err());
    }

    #[test]
    fn a_captured_id_keeps_its_token() {
        let mut captures = Captures::default();
        let pattern = Pattern::parse(r#"{"id":"${question}","method":"ping"}"#).unwrap();
        pattern.compare(r#"{"id":1.0,"method":"ping"}"#, &mut captures).unwrap();
        assert_eq!(
            text::substitute(r#"{"id":"${question}"}"#, &captures).unwrap(),
            r#"{"id":1.0}"#
        );
    }

    #[test]
    fn output_that_is_not_json_matches_nothing() {
        assert!(compare(r#""…""#, "Listening on stdio").is_err());
    }
}
