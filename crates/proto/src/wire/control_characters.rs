//! Detects and escapes characters that are invisible or that change how the text around them is displayed.

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

/// Replaces each of these characters by an escape such as `\u{202e}`; the same text if there is none.
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

/// Replaces each of these characters in JSON text by a JSON escape, if JSON allows it unescaped.
pub fn escape_controls_in_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |character: char| !character.is_ascii() && is_control(character);
    if text.is_ascii() || !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_escaped(character) {
            // All of them are in the basic multilingual plane.
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
    fn json_stays_json_with_the_same_value() {
        let text = "{\"a\u{202e}\":\"\u{85}é\"}";
        let escaped = escape_controls_in_json(text);
        assert_eq!(escaped, "{\"a\\u202e\":\"\\u0085é\"}");
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&escaped), value(text));
    }

    #[test]
    fn control_characters_for_readers_are_escaped_and_the_rest_is_unchanged() {
        assert_eq!(escape_controls("plain é 漢"), "plain é 漢");
        assert_eq!(escape_controls("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
        assert_eq!(escape_controls("a\nb\u{1b}[1m\u{9b}"), "a\\nb\\u{1b}[1m\\u{9b}");
        assert_eq!(escape_controls("\u{200f}\u{61c}\u{2028}"), "\\u{200f}\\u{61c}\\u{2028}");
    }
}
