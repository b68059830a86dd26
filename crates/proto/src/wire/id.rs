//! Request ids (2025-11-25 schema, `RequestId`).

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use super::raw::Raw;
use super::text::{quote, unquote};

/// A request id: echoed byte for byte, compared by value.
///
/// `"a\u0062"` equals `"ab"`, and the string `"1"` differs from the integer `1`. Integers may have any size and are
/// never converted to a machine number, because the response must repeat the sender's spelling.
#[derive(Clone)]
pub struct Id {
    raw: Arc<str>,
    /// The value of a string with escapes.
    unescaped: Option<Box<str>>,
}

impl Id {
    /// Maximum length of an id, in bytes of its token.
    pub const MAX_BYTES: usize = 1024;

    /// Parses a string or integer token.
    pub fn parse(raw: &str) -> Result<Self, IdError> {
        if raw == "null" {
            return Err(IdError::Null);
        }
        if raw.len() > Self::MAX_BYTES {
            return Err(IdError::TooLong);
        }
        if is_integer(raw) {
            return Ok(Self { raw: raw.into(), unescaped: None });
        }
        let text = unquote(raw).ok_or(IdError::NotStringOrInteger)?;
        let is_verbatim = text.len() + 2 == raw.len();
        Ok(Self { raw: raw.into(), unescaped: (!is_verbatim).then(|| text.into()) })
    }

    /// Parses a string or any number token, for dialects whose ids are not only integers (JSON-RPC 2.0, section 4).
    /// Numbers with a fraction or exponent are compared by spelling.
    pub fn parse_number(raw: &str) -> Result<Self, IdError> {
        let is_number = raw.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        match is_number && raw.len() <= Self::MAX_BYTES {
            true => Ok(Self { raw: raw.into(), unescaped: None }),
            false => Self::parse(raw),
        }
    }

    /// The token as the sender wrote it.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The token as the sender wrote it, shared with this id.
    pub fn shared_raw(&self) -> Arc<str> {
        Arc::clone(&self.raw)
    }

    /// The token as JSON.
    pub fn to_json(&self) -> Raw {
        Raw::from_validated(&self.raw)
    }

    /// An integer id for a request of this side.
    pub fn from_number(n: u64) -> Self {
        Self { raw: n.to_string().into(), unescaped: None }
    }

    /// A string id for a request of this side. It must be shorter than [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn from_text(text: &str) -> Self {
        let mut token = Vec::new();
        quote(&mut token, text);
        let raw = String::from_utf8(token).unwrap_or_default();
        let is_verbatim = text.len() + 2 == raw.len();
        Self { raw: raw.into(), unescaped: (!is_verbatim).then(|| text.into()) }
    }

    fn value(&self) -> IdValue<'_> {
        match (&self.unescaped, self.raw.strip_prefix('"')) {
            (Some(text), _) => IdValue::Text(text),
            (None, Some(rest)) => IdValue::Text(rest.strip_suffix('"').unwrap_or(rest)),
            (None, None) => IdValue::integer(&self.raw),
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({})", self.raw)
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw || self.value() == other.value()
    }
}

impl Eq for Id {}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value().cmp(&other.value())
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

/// The reason why a value is not an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdError {
    /// It is null, which identifies no request but is not an absent id either (2025-11-25 basic, requests).
    Null,
    /// It is neither a string nor an integer.
    NotStringOrInteger,
    /// It is longer than [`Id::MAX_BYTES`].
    TooLong,
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("`id` must not be null"),
            Self::NotStringOrInteger => f.write_str("`id` must be a string or an integer"),
            Self::TooLong => write!(f, "`id` must not be longer than {} bytes", Id::MAX_BYTES),
        }
    }
}

impl core::error::Error for IdError {}

/// The value of an id. The order of variants and fields is the order of ids.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum IdValue<'a> {
    Negative(core::cmp::Reverse<Digits<'a>>),
    Natural(Digits<'a>),
    Text(&'a str),
}

/// Decimal digits without leading zeros: the longer number is the larger.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Digits<'a>(usize, &'a str);

impl<'a> IdValue<'a> {
    fn integer(token: &'a str) -> Self {
        let digits = |text: &'a str| Digits(text.len(), text);
        match token.strip_prefix('-') {
            None => Self::Natural(digits(token)),
            Some("0") => Self::Natural(digits("0")),
            Some(magnitude) => Self::Negative(core::cmp::Reverse(digits(magnitude))),
        }
    }
}

fn is_integer(token: &str) -> bool {
    match token.strip_prefix('-').unwrap_or(token).as_bytes() {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::format;

    use super::*;

    fn id(raw: &str) -> Id {
        Id::parse(raw).unwrap()
    }

    #[test]
    fn an_id_is_echoed_as_it_was_written() {
        let integers = ["-1", "0", "-0", "9007199254740991", "9007199254740993"];
        let large =
            ["-9223372036854775808", "18446744073709551615", "123456789012345678901234567890"];
        let strings =
            [r#""""#, r#""\n""#, r#""\u001b[0m""#, r#""😀""#, r#""\ud83d\ude00""#, r#""\"""#];
        for raw in integers.into_iter().chain(large).chain(strings) {
            assert_eq!(id(raw).raw(), raw);
        }
    }

    #[test]
    fn ids_are_equal_by_value() {
        assert_eq!(id(r#""a\u0062""#), id(r#""ab""#));
        assert_eq!(id("-0"), id("0"));
        assert_ne!(id("\"1\""), id("1"));
        assert_ne!(id("18446744073709551616"), id("18446744073709551617"));
        assert_eq!(Id::from_number(7), id("7"));
        assert_eq!(Id::from_text("a\n"), id(r#""a\u000a""#));
        assert_eq!(Id::from_text("a\n").raw(), r#""a\n""#);
    }

    #[test]
    fn ids_are_ordered_by_value() {
        let ascending =
            ["-10", "-9", "-1", "0", "2", "10", r#""""#, r#""1""#, r#""\u0061""#, r#""b""#];
        let sorted: BTreeSet<_> = ascending.iter().rev().map(|raw| id(raw)).collect();
        assert!(sorted.iter().map(Id::raw).eq(ascending));
    }

    #[test]
    fn only_strings_and_integers_are_ids() {
        assert_eq!(Id::parse("null"), Err(IdError::Null));
        let others =
            ["1.5", "1.0", "1e2", "01", "-", "--1", "+1", "", "true", "{}", "[]", "\"a", " 1"];
        for raw in others {
            assert_eq!(Id::parse(raw), Err(IdError::NotStringOrInteger), "{raw}");
        }
    }

    #[test]
    fn an_id_may_be_long_but_not_longer_than_the_limit() {
        let quoted = |length: usize| format!("\"{}\"", "a".repeat(length - 2));
        assert_eq!(Id::parse(&quoted(Id::MAX_BYTES)).unwrap().raw().len(), Id::MAX_BYTES);
        assert_eq!(Id::parse(&quoted(Id::MAX_BYTES + 1)), Err(IdError::TooLong));
        assert_eq!(Id::parse(&"9".repeat(Id::MAX_BYTES + 1)), Err(IdError::TooLong));
    }
}
