//! Patterns for names and URIs, in which `*` matches any characters and `?` one character.

/// A set of names, given by patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamePatterns(Vec<String>);

impl NamePatterns {
    /// A set of these patterns.
    pub fn new<P: Into<String>>(patterns: impl IntoIterator<Item = P>) -> Self {
        Self(patterns.into_iter().map(Into::into).collect())
    }

    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The patterns.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// The patterns that match the name.
    pub fn matching(&self, name: &str) -> impl Iterator<Item = &str> {
        let fits = move |text: &&String| is_match(text.as_bytes(), name.as_bytes());
        self.0.iter().filter(fits).map(String::as_str)
    }

    /// Whether a pattern matches the name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| is_match(pattern.as_bytes(), name.as_bytes()))
    }
}

/// Compares without recursion: after a mismatch only the last star is tried again, so the work is bounded by
/// the product of both lengths.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut offset, mut index) = (0, 0);
    let mut star = None;
    while index < name.len() {
        match pattern.get(offset) {
            Some(b'*') => {
                star = Some((offset, index));
                offset += 1;
            }
            Some(b'?') => {
                offset += 1;
                index = next_char_start(name, index);
            }
            Some(byte) if *byte == name[index] => {
                offset += 1;
                index += 1;
            }
            _ => {
                let Some((starred, taken)) = star else { return false };
                star = Some((starred, taken + 1));
                (offset, index) = (starred + 1, taken + 1);
            }
        }
    }
    pattern[offset..].iter().all(|byte| *byte == b'*')
}

/// The start of the next character of UTF-8 text.
fn next_char_start(text: &[u8], index: usize) -> usize {
    let rest = text[index + 1..].iter().position(|byte| byte & 0xc0 != 0x80);
    rest.map_or(text.len(), |length| index + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_match_characters() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "a/b"),
            ("get_*", "get_"),
            ("get_*", "get_user"),
            ("*_user", "get_user_user"),
            ("a*b*c", "a-b-b-c"),
            ("file:///*.md", "file:///x/y.md"),
            ("g?t", "gét"),
            ("same", "same"),
        ] {
            assert!(NamePatterns::new([pattern]).contains(name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("get_*", "set_user"), ("a*b*c", "a-c-b"), ("g?t", "gt"), ("same", "Same")]
        {
            assert!(!NamePatterns::new([pattern]).contains(name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_little() {
        assert!(!NamePatterns::new(["*a".repeat(100)]).contains(&"b".repeat(10_000)));
    }
}
