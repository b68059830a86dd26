//! `…` and `${name}`: wildcards inside expected strings, and names inside sent lines.

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) const ANY: &str = "…";

/// The captured values by name, each as JSON text.
#[derive(Clone, Debug, Default)]
pub(super) struct Captures(BTreeMap<String, String>);

impl Captures {
    /// Captures the value, or returns whether it equals the known one.
    pub(super) fn bind(&mut self, name: &str, json: &str) -> bool {
        match self.0.get(name) {
            Some(known) => known == json,
            None => self.0.insert(name.to_owned(), json.to_owned()).is_none(),
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        let json = self.0.get(name)?;
        Some(serde_json::from_str::<String>(json).unwrap_or_else(|_| json.clone()))
    }
}

/// The name, when the whole string is `${name}`.
pub(super) fn whole_name(pattern: &str) -> Option<&str> {
    name_at(pattern).filter(|name| name.len() + 3 == pattern.len())
}

/// Whether the string matches the pattern. Captures the names in it.
pub(super) fn matches(pattern: &str, got: &str, captures: &mut Captures) -> bool {
    let mut trial = captures.clone();
    let fits = walk(&pieces(pattern), got, &mut trial);
    if fits {
        *captures = trial;
    }
    fits
}

/// The line to send. The error names a value that was not captured.
pub(super) fn substitute(line: &str, captures: &Captures) -> Result<String, String> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(offset) = rest.find("${") {
        let Some(name) = name_at(&rest[offset..]) else {
            out.push_str(&rest[..offset + 2]);
            rest = &rest[offset + 2..];
            continue;
        };
        let json = captures.0.get(name).ok_or_else(|| name.to_owned())?;
        out.push_str(&rest[..offset]);
        rest = &rest[offset + name.len() + 3..];
        let quoted = out.ends_with('"') && !out.ends_with("\\\"") && rest.starts_with('"');
        if quoted {
            out.pop();
            out.push_str(json);
            rest = &rest[1..];
        } else {
            out.push_str(json.strip_prefix('"').and_then(|j| j.strip_suffix('"')).unwrap_or(json));
        }
    }
    out.push_str(rest);
    Ok(out)
}

enum Piece<'a> {
    Literal(&'a str),
    Anything,
    Name(&'a str),
}

fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let (mut literal, mut offset) = (0, 0);
    while let Some(character) = pattern[offset..].chars().next() {
        let (piece, length) = match name_at(&pattern[offset..]) {
            Some(name) => (Piece::Name(name), name.len() + 3),
            None if pattern[offset..].starts_with(ANY) => (Piece::Anything, ANY.len()),
            None => {
                offset += character.len_utf8();
                continue;
            }
        };
        out.push(Piece::Literal(&pattern[literal..offset]));
        out.push(piece);
        offset += length;
        literal = offset;
    }
    out.push(Piece::Literal(&pattern[literal..]));
    out
}

/// The name of a `${name}` that starts the text.
fn name_at(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix("${")?.split_once('}')?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

fn walk(pieces: &[Piece<'_>], got: &str, captures: &mut Captures) -> bool {
    let Some((first, rest)) = pieces.split_first() else {
        return got.is_empty();
    };
    let known = match first {
        Piece::Literal(text) => Some((*text).to_owned()),
        Piece::Name(name) => captures.text(name),
        Piece::Anything => None,
    };
    if let Some(text) = known {
        return got.strip_prefix(text.as_str()).is_some_and(|left| walk(rest, left, captures));
    }
    let ends = got.char_indices().map(|(offset, _)| offset).chain([got.len()]);
    match first {
        Piece::Name(name) => ends.skip(1).any(|end| {
            let (taken, left) = got.split_at(end);
            captures.0.insert((*name).to_owned(), Value::from(taken).to_string());
            let fits = walk(rest, left, captures);
            if !fits {
                captures.0.remove(*name);
            }
            fits
        }),
        _ => ends.into_iter().any(|end| walk(rest, &got[end..], captures)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, got: &str) -> bool {
        matches(pattern, got, &mut Captures::default())
    }

    #[test]
    fn a_string_without_wildcards_matches_only_itself() {
        assert!(fits("Parse error", "Parse error"));
        assert!(!fits("Parse error", "Parse error."));
    }

    #[test]
    fn an_ellipsis_matches_any_text_and_none() {
        assert!(fits("Invalid request: …", "Invalid request: no method"));
        assert!(fits("Invalid request: …", "Invalid request: "));
        assert!(fits("…b…d", "abcbd"));
        assert!(!fits("…b…d", "abcde"));
    }

    #[test]
    fn a_name_remembers_the_text_between_its_neighbours() {
        let mut captures = Captures::default();
        assert!(matches(r#"{"id":"task_${id}","…}"#, r#"{"id":"task_é1","x":2}"#, &mut captures));
        assert_eq!(captures.text("id").as_deref(), Some("é1"));
    }

    #[test]
    fn a_name_is_never_empty() {
        assert!(!fits("task_${id}", "task_"));
    }

    #[test]
    fn a_known_name_must_stand_for_the_same_text() {
        let mut captures = Captures::default();
        assert!(matches("task_${id}", "task_7", &mut captures));
        assert!(matches("not found: task_${id}", "not found: task_7", &mut captures));
        assert!(!matches("not found: task_${id}", "not found: task_8", &mut captures));
    }

    #[test]
    fn a_failed_match_remembers_nothing() {
        let mut captures = Captures::default();
        assert!(!matches("a${x}b", "a1c", &mut captures));
        assert_eq!(captures.text("x"), None);
    }

    #[test]
    fn a_sent_string_that_is_only_a_name_becomes_the_value_of_whatever_type() {
        let mut captures = Captures::default();
        assert!(captures.bind("number", "7") && captures.bind("text", "\"7\""));
        let sent = substitute(r#"{"id":"${number}","cursor":"${text}"}"#, &captures);
        assert_eq!(sent.as_deref(), Ok(r#"{"id":7,"cursor":"7"}"#));
    }

    #[test]
    fn a_name_inside_a_longer_sent_string_becomes_its_text() {
        let mut captures = Captures::default();
        assert!(captures.bind("id", "\"a\\nb\""));
        assert_eq!(
            substitute(r#"{"id":"task_${id}"}"#, &captures).unwrap(),
            r#"{"id":"task_a\nb"}"#
        );
        assert_eq!(
            substitute(r#""{\"id\":\"${id}\"}""#, &captures).unwrap(),
            r#""{\"id\":\"a\nb\"}""#
        );
    }

    #[test]
    fn a_name_that_was_never_captured_cannot_be_sent() {
        assert_eq!(substitute("${nobody}", &Captures::default()), Err("nobody".to_owned()));
        assert_eq!(substitute("${NOT A NAME}", &Captures::default()).unwrap(), "${NOT A NAME}");
    }
}
