//! The times of a line that is not parsed. Parsing a line costs many times as much.

use memchr::memmem::Finder;

/// The member of a line with its time.
const KEY: &[u8] = b"\"time\":";

/// Finds the texts that may be the time of a line. Members of the same name inside of arguments are found too.
pub(super) struct TimeTexts {
    key: Finder<'static>,
}

impl TimeTexts {
    pub(super) fn new() -> Self {
        Self { key: Finder::new(KEY) }
    }

    /// Whether the time of a line may satisfy a condition. Without a time that is found here, it may.
    pub(super) fn may_include(&self, line: &[u8], condition: impl Fn(&[u8]) -> bool) -> bool {
        let mut is_found = false;
        for at in self.key.find_iter(line) {
            match text_at(line, at) {
                Some(text) if !condition(text) => is_found = true,
                _ => return true,
            }
        }
        !is_found
    }

    /// The last text. It is the time of the line, because the members of a written line are sorted by name, and the
    /// members with objects come first.
    pub(super) fn last<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        self.key.find_iter(line).last().and_then(|at| text_at(line, at))
    }
}

/// The string after the key at this offset, if it is one without escapes.
fn text_at(line: &[u8], key: usize) -> Option<&[u8]> {
    let value = line[key + KEY.len()..].trim_ascii_start().strip_prefix(b"\"")?;
    let text = &value[..memchr::memchr(b'"', value)?];
    (!text.contains(&b'\\')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_found_without_parsing() {
        let times = TimeTexts::new();
        let is_2026 = |line: &str| times.may_include(line.as_bytes(), |time| time == b"2026");
        assert!(is_2026(r#"{"time":"2026"}"#));
        assert!(is_2026(r#"{"time": "2026", "v": 1}"#));
        assert!(is_2026(r#"{"arguments":{"time":"2025"},"time":"2026"}"#));
        assert!(is_2026(r#"{"arguments":{"time":"2026"},"time":"2025"}"#), "it may");
        assert!(is_2026(r#"{"time":"20\u00326"}"#) && is_2026(r#"{"time":7}"#), "unknown");
        assert!(is_2026(r#"{"time" : "2025"}"#) && is_2026("{}") && is_2026(r#"{"time":"2025"#));
        assert!(!is_2026(r#"{"time":"2025"}"#));
        assert!(!is_2026(r#"{"arguments":{"time":"2024"},"time":"2025"}"#));
    }

    #[test]
    fn the_last_time_is_that_of_the_line() {
        let times = TimeTexts::new();
        let last = |line: &'static str| times.last(line.as_bytes());
        assert_eq!(last(r#"{"arguments":{"time":"x"},"time":"2026","v":1}"#), Some(&b"2026"[..]));
        assert_eq!(last(r#"{"time":""}"#), Some(&b""[..]));
        assert_eq!(last("not a line"), None);
    }
}
