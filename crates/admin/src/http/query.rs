//! The query of a request: decoded pairs, of which each name may be known and occur once.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::clock;
use crate::http::problem::{Problem, ProblemCode};

/// Maximum length of a value in bytes.
const MAX_VALUE: usize = 1024;
/// The default and the maximum number of entries of a list.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1000;

/// The query of a request.
#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads a query with these names.
    pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Self, Problem> {
        let mut pairs = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name), decode(value));
            let (Some(name), Some(value)) = (name, value) else {
                return Err(Problem::new(ProblemCode::InvalidQuery, "The query is not UTF-8 text"));
            };
            if !known.contains(&name.as_str()) {
                let title = format!("The query parameter `{}` is unknown", name.escape_debug());
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Problem::new(ProblemCode::InvalidQuery, title)
                    .detail(format!("known: {known}")));
            }
            if value.len() > MAX_VALUE {
                return Err(Problem::query(&name, &format!("at most {MAX_VALUE} bytes")));
            }
            if pairs.insert(name.clone(), value).is_some() {
                return Err(Problem::query(&name, "one value"));
            }
        }
        Ok(Self(pairs))
    }

    /// A value that is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a switch is on: present, and neither `0` nor `false`.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "false"))
    }

    /// The maximum number of entries.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else { return Ok(DEFAULT_LIMIT) };
        let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
        limit.ok_or_else(|| Problem::query("limit", &format!("a number from 1 to {MAX_LIMIT}")))
    }

    /// Where a list continues: a number that an earlier page gave.
    pub(crate) fn offset(&self) -> Result<usize, Problem> {
        let Some(text) = self.text("cursor") else { return Ok(0) };
        text.parse().map_err(|_| Problem::query("cursor", "the `next` of an earlier answer"))
    }

    /// A time.
    pub(crate) fn time(&self, name: &str) -> Result<Option<SystemTime>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let expected = "a time such as 2026-11-18T10:00:00Z";
        clock::parse(text).map(Some).ok_or_else(|| Problem::query(name, expected))
    }
}

/// Decodes percent escapes and `+`.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match first {
            b'+' => b' ',
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_unknown_names_are_refused() {
        let query = Query::parse("q=a%20b+c&limit=5", &["q", "limit"]).unwrap();
        assert_eq!((query.text("q"), query.limit().unwrap()), (Some("a b c"), 5));
        for wrong in ["other=1", "q=1&q=2", "q=%ff", "q=%2", "limit=0", "limit=1001", "limit=x"] {
            let read = Query::parse(wrong, &["q", "limit"]).and_then(|query| query.limit());
            assert_eq!(read.unwrap_err().code(), ProblemCode::InvalidQuery, "{wrong}");
        }
    }
}
