//! The values of mirrored headers: plain text, or Base64 between markers if a header cannot carry the text
//! (2026-07-28 basic/transports/streamable-http, value encoding).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Decodes the value of a header. Returns `None` if it is not visible ASCII, or if the text between the markers is not
/// Base64 of UTF-8.
pub fn decode(value: &[u8]) -> Option<Cow<'_, str>> {
    let is_plain = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    let text = core::str::from_utf8(value).ok().filter(|_| value.iter().all(is_plain))?;
    let text = text.trim_matches([' ', '\t']);
    match text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) {
        None => Some(Cow::Borrowed(text)),
        Some(encoded) => String::from_utf8(from_base64(encoded.as_bytes())?).ok().map(Cow::Owned),
    }
}

/// Encodes a text as the value of a header: unchanged if that is safe.
pub fn encode(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_padded = text.starts_with(' ') || text.ends_with(' ');
    let is_marked = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    match is_plain && !is_padded && !is_marked {
        true => Cow::Borrowed(text),
        false => {
            let mut value = String::from(PREFIX);
            push_base64(&mut value, text.as_bytes());
            value.push_str(SUFFIX);
            Cow::Owned(value)
        }
    }
}

fn push_base64(out: &mut String, bytes: &[u8]) {
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        for position in 0..4 {
            let digit = bits >> (18 - 6 * position) & 63;
            match position <= group.len() {
                true => out.push(char::from(ALPHABET[digit as usize])),
                false => out.push('='),
            }
        }
    }
}

/// Decodes strictly: complete groups, correct padding and no remaining bits (RFC 4648, 3.5 and 4).
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let digits = &text[..text.len() - padding];
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
    for digit in digits {
        bits = bits << 6 | digit_value(*digit)?;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    (bits == 0).then_some(bytes)
}

fn digit_value(digit: u8) -> Option<u32> {
    Some(match digit {
        b'A'..=b'Z' => u32::from(digit - b'A'),
        b'a'..=b'z' => u32::from(digit - b'a') + 26,
        b'0'..=b'9' => u32::from(digit - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_written_as_it_writes_them() {
        let rows = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ];
        for (text, value) in rows {
            assert_eq!(encode(text), value);
            assert_eq!(decode(value.as_bytes()).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_value_that_resembles_the_markers_is_literal() {
        for text in ["SGVsbG8=", "=?base64?SGVsbG8=", "=?BASE64?SGVsbG8=?=", "", "=?base64"] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(text));
        }
        assert_eq!(decode(b" \tpadded by the line\t ").as_deref(), Some("padded by the line"));
    }

    #[test]
    fn malformed_values_are_absent() {
        let broken: [&[u8]; 8] = [
            b"=?base64?SGVsbG8?=",
            b"=?base64?SGVs!!!bG8=?=",
            b"=?base64?SGVsbG9=?=",
            b"=?base64?=SGVsbG8?=",
            b"=?base64?====?=",
            b"=?base64?//79?=",
            b"a\x00b",
            b"caf\xc3\xa9",
        ];
        for value in broken {
            assert_eq!(decode(value), None, "{}", String::from_utf8_lossy(value));
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_survives(text in ".*") {
            let value = encode(&text);
            assert!(value.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            assert_eq!(decode(value.as_bytes()).as_deref(), Some(&*text));
        }
    }
}
