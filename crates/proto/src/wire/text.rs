//! Conversion between JSON string tokens and their values, and of bytes to hexadecimal digits.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use memchr::memchr2;

use super::scan_error::ScanErrorKind;

/// The value of a JSON string token, quotes included; `None` if `raw` is not a single string token.
///
/// Only a token with escapes is copied.
pub fn unquote(raw: &str) -> Option<Cow<'_, str>> {
    let [b'"', body @ .., b'"'] = raw.as_bytes() else { return None };
    let is_plain = plain_run(body) == body.len();
    let body = raw.get(1..raw.len() - 1)?;
    if is_plain { Some(Cow::Borrowed(body)) } else { unescape(body).map(Cow::Owned) }
}

/// Appends `text` as a JSON string token, with only the escapes that JSON requires (RFC 8259, 7).
pub fn quote(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, tail) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let [byte, after @ ..] = tail else { break };
        push_escaped(out, *byte);
        rest = after;
    }
    out.push(b'"');
}

/// Validated JSON without line breaks, for a framing where a line break ends the message.
///
/// A JSON string cannot contain a raw CR or LF, so those found are whitespace and become spaces.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(['\n', '\r'], " "))
}

/// Validated JSON without whitespace between its tokens.
pub(super) fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    let mut quoted = false;
    for part in text.split_inclusive('"') {
        if quoted {
            compact.push_str(part);
            quoted = !ends_string(part);
        } else {
            part.split_ascii_whitespace().for_each(|word| compact.push_str(word));
            quoted = true;
        }
    }
    compact
}

/// Whether the quote at the end of a part of a string closes it: the number of backslashes before it is even.
fn ends_string(part: &str) -> bool {
    let inner = part.strip_suffix('"').unwrap_or(part);
    (inner.len() - inner.trim_end_matches('\\').len()).is_multiple_of(2)
}

/// Number of leading bytes that need no escape in a JSON string.
///
/// The run ends at a quote, a backslash, a control character or the end of `bytes`. Eight bytes are tested at a time:
/// short keys cost one step, and long texts pass at several bytes per cycle.
#[inline]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, after)) = rest.split_first_chunk() {
        let stops = mark_special_bytes(u64::from_le_bytes(*word));
        if stops != 0 {
            return bytes.len() - rest.len() + stops.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    bytes.len() - rest.len() + last_plain_run(rest)
}

/// The same for less than eight bytes. It is a separate function, since only the very end of a message needs it.
#[inline(never)]
fn last_plain_run(bytes: &[u8]) -> usize {
    let word = match (bytes.first_chunk(), bytes.last_chunk()) {
        // The overlapping bytes of the two halves give the same result.
        (Some(first), Some(last)) => {
            let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
            first | last << (8 * (bytes.len() - 4))
        }
        _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    // Missing bytes are zero, which ends the run.
    mark_special_bytes(word).trailing_zeros() as usize / 8
}

/// One backslash sequence of a JSON string.
pub(super) struct Escape {
    /// Its character.
    pub(super) value: char,
    /// Its length in bytes; a surrogate pair is one sequence of twelve.
    pub(super) length: usize,
}

impl Escape {
    /// Reads the sequence at the start of `bytes`, which is its backslash.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ScanErrorKind> {
        let [b'\\', kind, digits @ ..] = bytes else { return Err(BAD_ESCAPE) };
        let value = match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return Self::unicode(digits),
            _ => return Err(BAD_ESCAPE),
        };
        Ok(Self { value, length: 2 })
    }

    fn unicode(digits: &[u8]) -> Result<Self, ScanErrorKind> {
        let unit = hex4(digits).ok_or(BAD_ESCAPE)?;
        if let Some(value) = char::from_u32(u32::from(unit)) {
            return Ok(Self { value, length: 6 });
        }
        let [b'\\', b'u', second @ ..] = &digits[4..] else {
            return Err(ScanErrorKind::LoneSurrogate);
        };
        let pair = [unit, hex4(second).ok_or(BAD_ESCAPE)?];
        match char::decode_utf16(pair).next() {
            Some(Ok(value)) => Ok(Self { value, length: 12 }),
            _ => Err(ScanErrorKind::LoneSurrogate),
        }
    }
}

const BAD_ESCAPE: ScanErrorKind = ScanErrorKind::Syntax("expected a valid escape");

/// The value of a string token's body, or `None` if it is invalid.
pub(super) fn unescape(body: &str) -> Option<String> {
    let mut value = String::with_capacity(body.len());
    let mut rest = body;
    loop {
        let (plain, tail) = rest.split_at(plain_run(rest.as_bytes()));
        value.push_str(plain);
        if tail.is_empty() {
            return Some(value);
        }
        let escape = Escape::read(tail.as_bytes()).ok()?;
        value.push(escape.value);
        rest = &tail[escape.length..];
    }
}

fn hex4(digits: &[u8]) -> Option<u16> {
    digits.first_chunk::<4>()?.iter().try_fold(0, |unit: u16, &digit| {
        let nibble = char::from(digit).to_digit(16)?;
        Some(unit << 4 | nibble as u16)
    })
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let [high, low] = [byte >> 4, byte & 15].map(|nibble| HEX[usize::from(nibble)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Sets the high bit of each byte of `word` that is a control character, a quote or a backslash.
///
/// A borrow may also mark bytes above a marked one; the lowest mark is exact, and only that is used.
fn mark_special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
    (below(word, 0x20) | below(quote, 1) | below(backslash, 1)) & HIGH
}

/// The bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0x0f]);
    let mut text = String::with_capacity(bytes.len() * 2);
    text.extend(digits.map(|digit| DIGITS[usize::from(digit)]));
    text
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn a_token_without_escapes_is_borrowed() {
        assert!(matches!(unquote(r#""tools/call""#), Some(Cow::Borrowed("tools/call"))));
        assert!(matches!(unquote("\"\""), Some(Cow::Borrowed(""))));
    }

    #[test]
    fn whitespace_is_left_out_between_parts_and_kept_within_them() {
        let text = "{\n  \"a b\": \"c \\\" d\\\\\",\n  \"e\": [1, 2]\n}";
        assert_eq!(compact(text), r#"{"a b":"c \" d\\","e":[1,2]}"#);
    }

    #[test]
    fn every_escape_is_undone() {
        let value = unquote(r#""\"\\\/\b\f\n\r\t\u00e9\u0000\ud83d\ude00x""#);
        assert_eq!(value.as_deref(), Some("\"\\/\u{8}\u{c}\n\r\té\0😀x"));
    }

    #[test]
    fn a_value_that_is_not_one_string_token_is_refused() {
        let tokens =
            ["", "\"", "a", "1", "null", "\"a", "a\"", r#""a"b""#, r#""\""#, r#""\x""#, "\"\n\""];
        for raw in tokens.into_iter().chain([r#""\u12""#, r#""\ud800""#, r#""\udc00\ud800""#]) {
            assert_eq!(unquote(raw), None, "{raw}");
        }
    }

    #[test]
    fn quoting_escapes_only_the_characters_that_json_requires() {
        let mut out = Vec::new();
        quote(&mut out, "a\"\\\n\r\t\u{8}\u{c}\u{1f}\0/é😀\u{7f}");
        assert_eq!(
            out,
            r#""a\"\\\n\r\t\b\f\u001f\u0000/é😀"#.bytes().chain(*b"\x7f\"").collect::<Vec<_>>()
        );
    }

    #[test]
    fn line_breaks_become_spaces_only_when_present() {
        assert!(matches!(one_line("{\"a\":\"\\n\"}"), Cow::Borrowed(_)));
        assert_eq!(one_line("{\r\n\"a\": 1\n}"), "{  \"a\": 1 }");
    }

    #[test]
    fn a_plain_run_ends_exactly_at_the_first_stop() {
        for stop in (0..0x20).chain(*b"\"\\") {
            for index in 0..40 {
                let mut bytes = format!("{:é<30}", "").into_bytes();
                bytes[index] = stop;
                // A second special byte right after it must not change the result.
                bytes[index + 1] = b'!';
                assert_eq!(plain_run(&bytes), index, "{stop:#x} at {index}");
            }
        }
        for length in 0..8 {
            for (index, stop) in (0..length).zip((0..0x20).chain(*b"\"\\").cycle()) {
                let mut bytes = [b'a'; 8];
                bytes[index] = stop;
                assert_eq!(plain_run(&bytes[..length]), index, "{stop:#x} at {index} of {length}");
            }
            assert_eq!(plain_run(&[0xff; 8][..length]), length);
        }
        assert_eq!(plain_run(&[0x7f, 0x20, b'!', b'#', b'[', b']', 0x80, 0xff, 0xa2, 0xdc]), 10);
    }

    #[test]
    fn a_byte_is_two_digits() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
