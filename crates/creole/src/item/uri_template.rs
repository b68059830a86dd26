//! Matches a URI against a template in linear time, without regular expressions.

use std::collections::BTreeMap;

/// A parsed template: literals and variables.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UriTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplatePart {
    Literal(String),
    /// `{name}`: one part of a URI, or with `{+name}` any rest.
    Variable {
        name: String,
        allows_slashes: bool,
    },
}

/// Maximum length of a URI that is matched.
const MAX_URI_BYTES: usize = 8192;

impl UriTemplate {
    pub(crate) fn new(template: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((name, tail)) = after.split_once('}') else { break };
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            let slashes = name.starts_with('+');
            parts.push(TemplatePart::Variable {
                name: name.trim_start_matches('+').to_owned(),
                allows_slashes: slashes,
            });
            rest = tail;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        Self { parts }
    }

    /// The variables' decoded values, if the URI matches this template.
    pub(crate) fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let mut values = BTreeMap::new();
        let mut rest = uri;
        for (position, part) in self.parts.iter().enumerate() {
            match part {
                TemplatePart::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                TemplatePart::Variable { name, allows_slashes: slashes } => {
                    let end = self.value_end(position, rest)?;
                    let (value, tail) = rest.split_at(end);
                    if value.is_empty() || (!slashes && value.contains('/')) {
                        return None;
                    }
                    values.insert(name.clone(), percent_decode(value)?);
                    rest = tail;
                }
            }
        }
        rest.is_empty().then_some(values)
    }

    /// A value ends where the following literal first occurs, or with the URI.
    fn value_end(&self, position: usize, rest: &str) -> Option<usize> {
        match self.parts.get(position + 1) {
            Some(TemplatePart::Literal(next)) => rest.find(next.as_str()),
            _ => Some(rest.len()),
        }
    }
}

/// Decodes percent-encoding; `None` if it is invalid or not UTF-8.
fn percent_decode(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2)?;
        // The standard library would also parse `+f`.
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|item| u8::try_from(item).ok());
        bytes.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(template: &str, uri: &str, name: &str) -> Option<String> {
        UriTemplate::new(template).matches(uri)?.remove(name)
    }

    #[test]
    fn a_variable_is_one_part_of_a_uri() {
        assert_eq!(value("task://{id}", "task://a%20b", "id").as_deref(), Some("a b"));
        assert_eq!(value("task://{id}", "task://a/b", "id"), None);
        assert_eq!(value("t://{a}/x/{b}", "t://1/x/2", "b").as_deref(), Some("2"));
        assert_eq!(value("t://{a}/x", "t:///x", "a"), None);
    }

    #[test]
    fn a_plus_matches_any_rest() {
        assert_eq!(value("file:///{+path}", "file:///a/b", "path").as_deref(), Some("a/b"));
    }

    #[test]
    fn broken_encodings_and_endless_uris_match_nothing() {
        assert_eq!(value("t://{a}", "t://%f", "a"), None);
        assert_eq!(value("t://{a}", "t://%ff", "a"), None);
        assert_eq!(value("t://{a}", "t://%+f", "a"), None);
        assert_eq!(value("t://{a}", &format!("t://{}", "x".repeat(100_000)), "a"), None);
    }
}
