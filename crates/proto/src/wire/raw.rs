//! JSON text that is stored and forwarded without being interpreted.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::object::Object;
use super::scan::{ScanLimits, scan_value};
use super::scan_error::ScanError;
use super::text::compact;

/// Valid JSON text; clones share it. Two are equal if their texts are equal; see [`canonical`] for comparing values.
///
/// [`canonical`]: super::canonical()
#[derive(Clone)]
pub struct Raw(RawText);

/// The storage of the text.
#[derive(Clone)]
enum RawText {
    Owned(Arc<str>),
    Static(&'static str),
    MessagePart(Box<MessagePart>),
}

/// A part of a message that is too large to be copied.
#[derive(Clone)]
struct MessagePart {
    message: Arc<String>,
    range: Range<usize>,
}

/// Maximum number of bytes that are moved to avoid copying a large text.
const MAX_MOVED_PREFIX: usize = 4096;

impl Raw {
    /// Checks that `text` is one JSON value in which no object repeats a key, and stores it without the surrounding
    /// whitespace.
    ///
    /// The depth is bounded as for messages. The number of values is not, since the owner of `text` already paid for
    /// it.
    pub fn parse(text: &str) -> Result<Self, RawError> {
        let limits = ScanLimits { max_nodes: usize::MAX, ..ScanLimits::default() };
        match scan_value(text, &limits) {
            Ok(false) => Ok(Self::from_validated(text.trim_ascii())),
            Ok(true) => Err(RawError::RepeatedKey),
            Err(error) => Err(RawError::Invalid(error)),
        }
    }

    /// A JSON constant of the program, which is neither copied nor checked at each start.
    ///
    /// # Panics
    /// In builds with debug assertions, if [`parse`](Self::parse) does not accept it.
    pub fn from_static(text: &'static str) -> Self {
        debug_assert!(Self::parse(text).is_ok(), "a JSON literal in the program is valid: {text}");
        Self(RawText::Static(text))
    }

    /// The JSON text of `value`. Serialising plain data cannot fail; a failing `Serialize` gives `null`.
    pub fn from_value<T: Serialize>(value: &T) -> Self {
        let text = serde_json::to_string(value).unwrap_or_else(|_| String::from("null"));
        Self(RawText::Owned(text.into()))
    }

    /// Stores text that was already validated, such as a slice of a scanned message.
    pub(crate) fn from_validated(text: &str) -> Self {
        match text {
            // Many arguments and capabilities are empty.
            "{}" => Self(RawText::Static("{}")),
            text => Self(RawText::Owned(text.into())),
        }
    }

    /// Stores `part` of an already validated message, sharing the message.
    pub(crate) fn from_message_part(message: &Arc<String>, part: &str) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(message.as_ptr() as usize);
        let range = start..start.wrapping_add(part.len());
        match message.get(range.clone()) {
            Some(found) if found.as_ptr() == part.as_ptr() => {
                let message = Arc::clone(message);
                Self(RawText::MessagePart(Box::new(MessagePart { message, range })))
            }
            _ => Self::from_validated(part),
        }
    }

    /// Appends the text. A large text without other owners is not copied; the few bytes in `out` are moved in front of
    /// it.
    pub(crate) fn append_to(self, out: &mut Vec<u8>) {
        let part = match self.0 {
            RawText::MessagePart(part) if out.len() <= MAX_MOVED_PREFIX => *part,
            text => return out.extend_from_slice(Self(text).as_str().as_bytes()),
        };
        match Arc::try_unwrap(part.message) {
            Ok(message) => {
                let mut bytes = message.into_bytes();
                bytes.truncate(part.range.end);
                bytes.splice(..part.range.start, out.drain(..));
                *out = bytes;
            }
            Err(message) => out.extend_from_slice(message[part.range].as_bytes()),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            RawText::Owned(text) => text,
            RawText::Static(text) => text,
            RawText::MessagePart(part) => &part.message[part.range.clone()],
        }
    }

    /// The same value without whitespace between its tokens.
    pub fn compact(&self) -> Self {
        Self::from_validated(&compact(self.as_str()))
    }

    /// The value as an object, if it is one.
    pub fn as_object(&self) -> Option<Object<'_>> {
        Object::new(self.as_str())
    }

    /// Decodes it as `T`, which may borrow from it.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.as_str())
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Raw {}

impl fmt::Debug for Raw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Raw").field(&self.as_str()).finish()
    }
}

impl Serialize for Raw {
    /// Embeds the text verbatim. The serializer must be that of `serde_json`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let verbatim: &RawValue = serde_json::from_str(self.as_str()).map_err(S::Error::custom)?;
        verbatim.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    /// Takes the text verbatim and checks it like [`Raw::parse`]. `serde_json` alone would accept lone surrogates,
    /// repeated keys and any depth.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(text.get()).map_err(D::Error::custom)
    }
}

/// The reason why text cannot be stored as [`Raw`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawError {
    /// It is not one JSON value, or is nested too deeply.
    Invalid(ScanError),
    /// An object in it repeats a key.
    RepeatedKey,
}

impl fmt::Display for RawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::RepeatedKey => f.write_str("an object repeats a key"),
        }
    }
}

impl core::error::Error for RawError {}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn text_is_embedded_and_extracted_verbatim() {
        let text = r#"{"b": 1.0,  "a":"\u0061", "n":123456789012345678901234567890}"#;
        let outer = BTreeMap::from([("inner", Raw::parse(text).unwrap())]);
        let output = serde_json::to_string(&outer).unwrap();
        assert_eq!(output, [r#"{"inner":"#, text, "}"].concat());
        assert_eq!(serde_json::from_str::<BTreeMap<&str, Raw>>(&output).unwrap(), outer);
    }

    #[test]
    fn only_one_valid_value_is_kept() {
        for text in ["", "{", "1 2", "NaN", r#""\ud800""#, "\u{feff}1"] {
            assert!(matches!(Raw::parse(text), Err(RawError::Invalid(_))), "{text}");
        }
        assert_eq!(Raw::parse(r#"[{"a":1,"\u0061":2}]"#), Err(RawError::RepeatedKey));
        assert_eq!(Raw::parse(" [1] \n").unwrap().as_str(), "[1]");
        assert!(serde_json::from_str::<Raw>(r#"{"a":1,"a":2}"#).is_err());
    }

    #[test]
    fn plain_data_becomes_text_and_back() {
        let raw = Raw::from_value(&["a", "b"]);
        assert_eq!(raw.as_str(), r#"["a","b"]"#);
        assert_eq!(raw.decode::<Vec<&str>>().unwrap(), ["a", "b"]);
        assert!(raw.as_object().is_none());
        assert_eq!(
            Raw::from_value(&BTreeMap::from([("k", 1)])).as_object().unwrap().get("k"),
            Some("1")
        );
    }

    #[test]
    fn a_part_of_a_large_message_is_not_copied() {
        let message = Arc::new(String::from(r#"{"id":1,"result":{"a":1}}"#));
        let place = message.as_ptr();
        let part = Raw::from_message_part(&message, &message[17..24]);
        assert_eq!((part.as_str(), &part), (r#"{"a":1}"#, &Raw::from_validated(r#"{"a":1}"#)));
        // The message has another owner, so it is copied.
        let mut out = Vec::from(b"<");
        part.clone().append_to(&mut out);
        assert_eq!(out, br#"<{"a":1}"#);
        drop(message);
        let mut out = Vec::from(b"<>");
        part.append_to(&mut out);
        assert_eq!((&out[..], out.as_ptr()), (&br#"<>{"a":1}"#[..], place));
        // A part in another position is copied.
        let message = Arc::new(String::from("{}"));
        assert_eq!(Raw::from_message_part(&message, "[1]").as_str(), "[1]");
    }

    #[test]
    fn a_failing_serialize_gives_null() {
        let unwritable = BTreeMap::from([([1, 2], 3)]);
        assert_eq!(Raw::from_value(&unwritable).as_str(), "null");
    }

    #[test]
    fn errors_are_displayed_in_plain_words() {
        assert_eq!(Raw::parse("[1,]").unwrap_err().to_string(), "expected a value at byte 3");
        assert_eq!(
            Raw::parse(r#"{"a":1,"a":1}"#).unwrap_err().to_string(),
            "an object repeats a key"
        );
    }
}
