//! Characters that no reader sees, or that change how the text around them is read.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

/// Whether a character is a control character, a line separator, or one that changes the direction of text
/// (Unicode UAX 9, explicit directional formatting).
pub fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The text with an escape such as `\u{202e}` for each of these characters; the same text if there is none.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control()) {
        return Cow::Borrowed(text);
    }
    if !text.chars().any(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_control(character) {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// JSON text with a JSON escape for each of these characters that JSON lets stand as it is.
pub fn escape_controls_in_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |character: char| !character.is_ascii() && is_control(character);
    if text.is_ascii() || !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_escaped(character) {
            // None of them is beyond the first plane.
            true => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => out.push(character),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_and_means_the_same() {
        let text = "{\"a\u{202e}\":\"\u{85}é\"}";
        let escaped = escape_controls_in_json(text);
        assert_eq!(escaped, "{\"a\\u202e\":\"\\u0085é\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&escaped), value(text));
    }

    #[test]
    fn what_steers_a_reader_is_escaped_and_the_rest_stays() {
        assert_eq!(escape_controls("plain é 漢"), "plain é 漢");
        assert_eq!(escape_controls("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
        assert_eq!(escape_controls("a\nb\u{1b}[1m\u{9b}"), "a\\nb\\u{1b}[1m\\u{9b}");
        assert_eq!(escape_controls("\u{200f}\u{61c}\u{2028}"), "\\u{200f}\\u{61c}\\u{2028}");
    }
}
