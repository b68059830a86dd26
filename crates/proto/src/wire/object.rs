//! Access to the members of validated object text, without copies and without serde's leniency.
//!
//! Derived decoders read an array as a struct and null as absent. Here an object is an object, null is a value of the
//! wrong type, and members that are not requested are not read.

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::text::{plain_run, unquote};

/// An object in JSON text that [`scan`](super::scan()) accepted.
///
/// Text that was not validated is memory-safe to read, but the results are meaningless.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    text: &'a str,
}

impl<'a> Object<'a> {
    /// The object without members, for absent params.
    pub const EMPTY: Self = Self { text: "{}" };

    /// The object in `text`, or `None` if it is another value. `text` must be valid JSON.
    pub fn new(text: &'a str) -> Option<Self> {
        // Mostly there is no whitespace around it.
        let text = match text.as_bytes() {
            [b'{', .., b'}'] => return Some(Self { text }),
            _ => text.trim_matches(is_space),
        };
        text.starts_with('{').then_some(Self { text })
    }

    /// Its text, from brace to brace.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Its members in order: the unescaped key and the raw text of the value.
    pub fn members(self) -> Members<'a> {
        Members { items: TokenWalker::new(self.text) }
    }

    /// The raw text of a member's value.
    pub fn get(self, key: &str) -> Option<&'a str> {
        self.members().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The members of a nested object. Its end is not searched, so that finding a member near its start does not cost a
    /// walk over the rest.
    pub fn enter_member(self, key: &str) -> Option<Members<'a>> {
        let mut items = TokenWalker::new(self.text);
        loop {
            if items.next_key()? == key {
                let value = self.text.get(items.next_start(b':')?..)?;
                return value.starts_with('{').then(|| Members { items: TokenWalker::new(value) });
            }
            items.next_token(b':')?;
        }
    }

    /// The raw texts of several members, found in one walk.
    pub fn get_many<const N: usize>(self, keys: [&str; N]) -> [Option<&'a str>; N] {
        let mut found = [None; N];
        for (key, value) in self.members() {
            if let Some(index) = keys.iter().position(|expected| *expected == key) {
                found[index] = Some(value);
            }
        }
        found
    }

    /// A string member, or `None` if it is absent.
    pub fn string(self, key: &str) -> Result<Option<Cow<'a, str>>, FieldError> {
        self.typed(key, "a string", unquote)
    }

    /// A required string member.
    pub fn required_string(self, key: &str) -> Result<Cow<'a, str>, FieldError> {
        self.string(key)?.ok_or_else(|| FieldError::new(key, FieldErrorKind::Missing))
    }

    /// An object member, or `None` if it is absent.
    pub fn object(self, key: &str) -> Result<Option<Self>, FieldError> {
        self.typed(key, "an object", Self::new)
    }

    /// The raw texts of an array member's elements, or `None` if it is absent.
    pub fn array(self, key: &str) -> Result<Option<Vec<&'a str>>, FieldError> {
        self.typed(key, "an array", elements)
    }

    /// A boolean member, or `None` if it is absent.
    pub fn bool(self, key: &str) -> Result<Option<bool>, FieldError> {
        self.typed(key, "a boolean", |raw| match raw {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        })
    }

    fn typed<T>(
        self,
        key: &str,
        kind: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        typed(key, self.get(key), kind, read)
    }
}

/// Reads a member's raw value as a string.
pub fn as_string<'a>(key: &str, raw: Option<&'a str>) -> Result<Option<Cow<'a, str>>, FieldError> {
    typed(key, raw, "a string", unquote)
}

/// Reads a member's raw value as an object.
pub fn as_object<'a>(key: &str, raw: Option<&'a str>) -> Result<Option<Object<'a>>, FieldError> {
    typed(key, raw, "an object", Object::new)
}

/// Reads a required member's raw value as a string.
pub fn as_required_string<'a>(key: &str, raw: Option<&'a str>) -> Result<Cow<'a, str>, FieldError> {
    as_string(key, raw)?.ok_or_else(|| FieldError::new(key, FieldErrorKind::Missing))
}

fn typed<'a, T>(
    key: &str,
    raw: Option<&'a str>,
    kind: &'static str,
    read: impl FnOnce(&'a str) -> Option<T>,
) -> Result<Option<T>, FieldError> {
    let Some(raw) = raw else { return Ok(None) };
    read(raw).map(Some).ok_or_else(|| FieldError::new(key, FieldErrorKind::MustBe(kind)))
}

/// The members of an [`Object`]; see [`Object::members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    items: TokenWalker<'a>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.items.next_key()?;
        Some((key, self.items.next_token(b':')?))
    }
}

impl core::iter::FusedIterator for Members<'_> {}

/// A member that is missing or has the wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The key that was looked up.
    pub key: String,
    /// The violated requirement.
    pub kind: FieldErrorKind,
}

impl FieldError {
    fn new(key: &str, problem: FieldErrorKind) -> Self {
        Self { key: key.to_owned(), kind: problem }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FieldErrorKind::Missing => write!(f, "`{}` is missing", self.key),
            FieldErrorKind::MustBe(kind) => write!(f, "`{}` must be {kind}", self.key),
        }
    }
}

impl core::error::Error for FieldError {}

/// The violated requirement of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// It is required but absent.
    Missing,
    /// It must have this type, named with its article.
    MustBe(&'static str),
}

/// The end of the token or container that starts at `start` in validated text.
pub(super) fn value_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.get(start)? {
        b'"' => string_end(bytes, start),
        b'{' | b'[' => container_end(bytes, start),
        _ => {
            let length = bytes[start..].iter().position(|&byte| ends_scalar(byte));
            Some(length.map_or(bytes.len(), |length| start + length)).filter(|&end| end > start)
        }
    }
}

/// The raw texts of an array's elements; `None` if `text` is not an array. `text` must be valid JSON.
pub fn elements(text: &str) -> Option<Vec<&str>> {
    if !text.starts_with('[') {
        return None;
    }
    let mut items = TokenWalker::new(text);
    Some(core::iter::from_fn(|| items.next_token(b',')).collect())
}

/// Iterates over the tokens directly inside one container.
#[derive(Clone, Debug)]
struct TokenWalker<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> TokenWalker<'a> {
    /// `text` starts with the opening bracket, which is one byte.
    fn new(text: &'a str) -> Self {
        Self { text, at: 1 }
    }

    /// The next token, after a separator unless it is the first. After unexpected text it always returns `None`.
    fn next_token(&mut self, separator: u8) -> Option<&'a str> {
        let start = self.next_start(separator)?;
        match value_end(self.text, start).and_then(|end| self.text.get(start..end)) {
            Some(token) => {
                self.at = start + token.len();
                Some(token)
            }
            None => self.stop(),
        }
    }

    /// The value of the next key. A key without escapes ends at its first quote.
    fn next_key(&mut self) -> Option<Cow<'a, str>> {
        let before = self.clone();
        let bytes = self.text.as_bytes();
        let start = self.next_start(b',')? + 1;
        if bytes.get(start - 1) != Some(&b'"') {
            return self.stop();
        }
        let end = start + plain_run(bytes.get(start..)?);
        if bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return self.text.get(start..end).map(Cow::Borrowed);
        }
        *self = before;
        self.next_token(b',').and_then(unquote)
    }

    /// The start of the next token.
    fn next_start(&mut self, separator: u8) -> Option<usize> {
        let first = self.at == 1;
        self.space();
        if !first {
            if self.text.as_bytes().get(self.at) != Some(&separator) {
                return self.stop();
            }
            self.at += 1;
            self.space();
        }
        Some(self.at)
    }

    fn space(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|&&byte| is_space(char::from(byte))).count();
    }

    fn stop<T>(&mut self) -> Option<T> {
        self.at = self.text.len() + 1;
        None
    }
}

fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut offset = start + 1;
    loop {
        // Keys and most values are short: words of eight bytes are faster than a call to a vectorised search.
        offset += plain_run(bytes.get(offset..)?);
        match bytes.get(offset)? {
            b'"' => return Some(offset + 1),
            b'\\' => offset += 2,
            _ => offset += 1,
        }
    }
}

fn container_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut offset = start;
    loop {
        match bytes.get(offset)? {
            b'"' => {
                offset = string_end(bytes, offset)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            // Validated text closes each bracket with its own kind, so one count is enough for both.
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        offset += 1;
        if depth == 0 {
            return Some(offset);
        }
    }
}

fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b',' | b':' | b'}' | b']') || is_space(char::from(byte))
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    const TEXT: &str = r#" { "name" : "add\n", "n\u0061me2":[1 , {"a":"]"},"x"], "flag":true,
        "none":null, "args":{"name":"inner","}":"{"},"empty":{},"list":[] ,"n":-1.5e3} "#;

    fn object() -> Object<'static> {
        Object::new(TEXT).unwrap()
    }

    #[test]
    fn a_member_is_entered_without_its_end_and_left_where_it_ends() {
        let entered: Vec<_> = object().enter_member("args").unwrap().collect();
        assert_eq!(entered, [("name".into(), "\"inner\""), ("}".into(), "\"{\"")]);
        assert_eq!(object().enter_member("empty").unwrap().count(), 0);
        for other in ["list", "none", "flag", "name", "missing"] {
            assert!(object().enter_member(other).is_none(), "{other}");
        }
    }

    #[test]
    fn members_are_in_order_with_unescaped_keys_and_raw_values() {
        let keys: Vec<_> = object().members().map(|(key, _)| key.into_owned()).collect();
        assert_eq!(keys, ["name", "name2", "flag", "none", "args", "empty", "list", "n"]);
        assert_eq!(object().get("name"), Some(r#""add\n""#));
        assert_eq!(object().get("name2"), Some(r#"[1 , {"a":"]"},"x"]"#));
        assert_eq!(object().get("n"), Some("-1.5e3"));
        assert_eq!(object().get("inner"), None);
        assert_eq!(object().text(), TEXT.trim());
    }

    #[test]
    fn typed_members_are_read_with_their_types() {
        assert_eq!(object().string("name").unwrap().unwrap(), "add\n");
        assert_eq!(object().bool("flag"), Ok(Some(true)));
        assert_eq!(object().array("name2"), Ok(Some(vec!["1", r#"{"a":"]"}"#, "\"x\""])));
        assert_eq!(object().array("list"), Ok(Some(vec![])));
        let inner = object().object("args").unwrap().unwrap();
        assert_eq!(inner.required_string("name").unwrap(), "inner");
        assert_eq!(inner.get("}"), Some("\"{\""));
        assert_eq!(object().object("empty").unwrap().unwrap().members().count(), 0);
    }

    #[test]
    fn an_absent_member_is_none_and_a_null_one_has_the_wrong_type() {
        assert_eq!(object().string("nowhere"), Ok(None));
        assert_eq!(object().bool("nowhere"), Ok(None));
        assert!(object().string("none").is_err());
        assert!(object().object("none").is_err());
        assert!(object().array("none").is_err());
        assert!(object().bool("none").is_err());
    }

    #[test]
    fn errors_are_displayed_in_plain_words() {
        let told = |error: FieldError| error.to_string();
        assert_eq!(told(object().required_string("uri").unwrap_err()), "`uri` is missing");
        assert_eq!(told(object().string("flag").unwrap_err()), "`flag` must be a string");
        assert_eq!(told(object().object("list").unwrap_err()), "`list` must be an object");
        assert_eq!(told(object().array("args").unwrap_err()), "`args` must be an array");
        assert_eq!(told(object().bool("n").unwrap_err()), "`n` must be a boolean");
    }

    #[test]
    fn only_an_object_is_an_object() {
        for text in ["", " ", "[]", "null", "1", "\"{}\"", "["] {
            assert!(Object::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn text_that_was_never_validated_ends_the_walk_quietly() {
        let texts =
            ["{", "{}}", "{]", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":}", "{\"a\":1", "{,"];
        for text in
            texts.into_iter().chain(["{\"a\":\"\\", "{1:2}", "{\"a\":[", "{é", "{\"a\" é:1"])
        {
            let object = Object::new(text).unwrap();
            assert!(object.members().count() < 2, "{text}");
            let mut members = object.members();
            while members.next().is_some() {}
            assert!(members.next().is_none(), "{text}");
        }
    }
}
