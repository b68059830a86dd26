//! Canonical JSON: one text for each value, so that digests do not depend on the spelling.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use super::number;
use super::object::value_end;
use super::text::{quote, unquote};

/// The canonical form of validated JSON, after RFC 8785.
///
/// Keys are sorted by UTF-16 code units, strings have only the necessary escapes, whitespace is removed, and `1`, `1.0`
/// and `1e0` are one number. Unlike RFC 8785, digits are not rounded to a double: integers beyond 2^53 keep theirs,
/// from 22 digits on before an exponent. The conversion takes one pass without recursion.
pub fn canonical(text: &str) -> String {
    let mut writer = CanonicalWriter { out: Vec::with_capacity(text.len()), open: Vec::new() };
    let mut offset = 0;
    while let Some(&byte) = text.as_bytes().get(offset) {
        let end = match byte {
            b'{' | b'[' | b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => offset + 1,
            _ => value_end(text, offset).unwrap_or(text.len()),
        };
        writer.token(&text[offset..end]);
        offset = end;
    }
    // Whole tokens of a `str` are always UTF-8.
    String::from_utf8(writer.out).unwrap_or_default()
}

struct CanonicalWriter<'a> {
    out: Vec<u8>,
    open: Vec<OpenContainer<'a>>,
}

/// A container whose end has not been read.
enum OpenContainer<'a> {
    Array,
    Object(Vec<WrittenMember<'a>>),
}

/// A member in the output, without the comma around it.
struct WrittenMember<'a> {
    key: Cow<'a, str>,
    start: usize,
    end: usize,
}

impl<'a> CanonicalWriter<'a> {
    fn token(&mut self, token: &'a str) {
        match token.as_bytes().first() {
            Some(b' ' | b'\t' | b'\n' | b'\r') | None => return,
            Some(b'{') => self.open.push(OpenContainer::Object(Vec::new())),
            Some(b'[') => self.open.push(OpenContainer::Array),
            Some(b'}' | b']') => self.close(),
            Some(b',') => self.end_member(),
            Some(b'"') => return self.string(token),
            Some(b'-' | b'0'..=b'9') => return number::push_canonical_number(&mut self.out, token),
            _ => {}
        }
        self.out.extend_from_slice(token.as_bytes());
    }

    fn string(&mut self, token: &'a str) {
        let start = self.out.len();
        let value = unquote(token).unwrap_or(Cow::Borrowed(token));
        quote(&mut self.out, &value);
        // A string at the start of the object or after a comma is a key.
        if let Some(OpenContainer::Object(members)) = self.open.last_mut()
            && matches!(self.out.get(start.wrapping_sub(1)), Some(b'{' | b','))
        {
            members.push(WrittenMember { key: value, start, end: start });
        }
    }

    fn end_member(&mut self) {
        if let Some(OpenContainer::Object(members)) = self.open.last_mut()
            && let Some(member) = members.last_mut()
        {
            member.end = self.out.len();
        }
    }

    fn close(&mut self) {
        self.end_member();
        if let Some(OpenContainer::Object(mut members)) = self.open.pop()
            && !members.is_sorted_by(|a, b| utf16_order(a, b).is_le())
        {
            let start = members[0].start;
            members.sort_by(utf16_order);
            self.reorder(start, &members);
        }
    }

    fn reorder(&mut self, start: usize, members: &[WrittenMember<'_>]) {
        let parts: Vec<_> =
            members.iter().map(|member| &self.out[member.start..member.end]).collect();
        let sorted = parts.join(&b',');
        self.out.truncate(start);
        self.out.extend_from_slice(&sorted);
    }
}

fn utf16_order(a: &WrittenMember<'_>, b: &WrittenMember<'_>) -> core::cmp::Ordering {
    a.key.encode_utf16().cmp(b.key.encode_utf16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_at_every_level_and_whitespace_is_gone() {
        let text = "{ \"b\" : [ { \"d\":1, \"c\" : {} } , [ ] ],\n\"a\":null , \"aa\":true}";
        assert_eq!(canonical(text), r#"{"a":null,"aa":true,"b":[{"c":{},"d":1},[]]}"#);
    }

    #[test]
    fn keys_are_sorted_by_utf16_code_units_as_in_rfc_8785() {
        let text = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        let sorted = "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}";
        assert_eq!(canonical(text), sorted);
    }

    #[test]
    fn strings_carry_only_the_escapes_they_need() {
        let text = r#"["\u0061\/\u000a\u001F\"\\", "{,:\u007d"]"#;
        assert_eq!(canonical(text), r#"["a/\n\u001f\"\\","{,:}"]"#);
    }

    #[test]
    fn a_string_value_after_a_key_is_not_taken_for_a_key() {
        assert_eq!(
            canonical(r#"{"b":"a","a":",{","c":["z","y"]}"#),
            r#"{"a":",{","b":"a","c":["z","y"]}"#
        );
    }

    #[test]
    fn numbers_are_normalised_and_large_integers_kept() {
        assert_eq!(canonical("[1.0,1e0,-0,9007199254740993]"), "[1,1,0,9007199254740993]");
    }

    #[test]
    fn scalars_are_canonical_too() {
        assert_eq!(canonical(" true\n"), "true");
        assert_eq!(canonical("\"\\u0041\""), "\"A\"");
    }

    #[test]
    fn text_that_was_never_validated_does_no_harm() {
        for text in [
            "",
            "{",
            "}",
            "]]",
            "{]",
            "{\"",
            "{\"a",
            "{\"a\",\"b\"}",
            ",",
            "{,\"b\":1,\"a\"}",
            "é",
            "-",
        ] {
            canonical(text);
        }
    }
}
