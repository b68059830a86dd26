//! Patterns for paths, matched in linear time per path segment.

use std::fmt;

/// Maximum length of a pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 256;

/// A pattern for paths: `*` matches any text within one name, `?` one character, `**` any number of folders. A pattern
/// without a slash matches names at any depth, one with a slash matches paths from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<String>,
}

/// An error in a pattern, and its correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub &'static str);

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When it could never match, or uses syntax of other pattern languages.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() || text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError("a pattern must have 1 to 256 bytes"));
        }
        if text.contains(['[', ']', '{', '}', '\\', '!']) || text.contains(char::is_control) {
            return Err(PatternError(
                "only `*`, `?` and `**` are supported in a pattern; write several patterns instead",
            ));
        }
        let inner = text.strip_prefix('/').unwrap_or(text);
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
        for part in &parts {
            match part.as_str() {
                "" | "." | ".." => {
                    return Err(PatternError(
                        "a pattern is relative to the folder and must not leave it",
                    ));
                }
                "**" => {}
                part if part.contains("**") => {
                    return Err(PatternError("`**` must be a whole path segment"));
                }
                _ => {}
            }
        }
        if !inner.contains('/') && !text.starts_with('/') {
            parts.insert(0, "**".to_owned());
        }
        Ok(Self { parts })
    }

    /// Whether it matches this path.
    pub fn matches(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        let pattern: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        is_match(
            &pattern,
            &names,
            |part| *part == "**",
            |part, name| {
                let (part, name): (Vec<char>, Vec<char>) =
                    (part.chars().collect(), name.chars().collect());
                is_match(
                    &part,
                    &name,
                    |sign| *sign == '*',
                    |sign, character| *sign == '?' || sign == character,
                )
            },
        )
    }
}

/// Whether items match a pattern in which some signs match any number of items and the others one each. Backtracking is
/// limited to the last such sign, so the time is at most proportional to the product of both lengths.
pub(crate) fn is_match<T>(
    pattern: &[T],
    items: &[T],
    is_any: impl Fn(&T) -> bool,
    is_one: impl Fn(&T, &T) -> bool,
) -> bool {
    let (mut offset, mut item) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while item < items.len() {
        match pattern.get(offset) {
            Some(sign) if is_any(sign) => {
                retry = Some((offset, item));
                offset += 1;
            }
            Some(sign) if is_one(sign, &items[item]) => (offset, item) = (offset + 1, item + 1),
            _ => match &mut retry {
                Some((any, taken)) => {
                    *taken += 1;
                    (offset, item) = (*any + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[offset..].iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_about_names_or_about_paths() {
        let matches = |pattern: &str, path: &str| Pattern::new(pattern).unwrap().matches(path);
        for (pattern, path) in [
            ("*.md", "a.md"),
            ("*.md", "a/b/c.md"),
            ("node_modules", "a/node_modules"),
            ("guide/*.md", "guide/a.md"),
            ("guide/**", "guide/a/b"),
            ("guide/**/z.md", "guide/z.md"),
            ("**/x/*", "a/b/x/c"),
            ("/top.md", "top.md"),
            ("drafts/", "a/drafts"),
            ("?.txt", "ä.txt"),
            ("a*b*c", "aXbXbXc"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.md", "a.mdx"),
            ("guide/*.md", "guide/a/b.md"),
            ("guide/*.md", "x/guide/a.md"),
            ("/top.md", "a/top.md"),
            ("?.txt", "ab.txt"),
            ("a*b", "a/b"),
            ("a", "b"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn unsupported_pattern_syntax_is_refused() {
        for invalid in ["", "a/../b", "..", "a//b", "{a,b}", "[ab]", "!a", "a\\b", "a**", "a\nb"] {
            assert!(Pattern::new(invalid).is_err(), "{invalid}");
        }
        assert!(Pattern::new(&"a".repeat(MAX_PATTERN_BYTES + 1)).is_err());
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = Pattern::new(&"*a".repeat(100)).unwrap();
        assert!(!pattern.matches(&"a".repeat(4000).replace("aaaa", "aaab")));
        let deep = Pattern::new("**/a/".repeat(40).trim_end_matches('/')).unwrap();
        assert!(!deep.matches(&format!("{}b", "a/".repeat(1000))));
    }
}
