//! Edits single members of JSON objects. Everything else keeps its exact text.

use creole_proto::model::Definition;
use creole_proto::revision::Rules;
use creole_proto::wire::{Object, quote};

/// The edit of a member.
pub(crate) enum Edit {
    /// The member stays.
    Keep,
    /// The member is removed.
    Drop,
    /// The member gets this value.
    Set(String),
}

/// The object with each of its members kept, removed or set. `None` if the text is not an object.
pub(crate) fn edit_members(
    text: &str,
    mut change: impl FnMut(&str, &str) -> Edit,
) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    for (key, value) in Object::new(text)?.members() {
        match change(&key, value) {
            Edit::Keep => push(&mut out, &key, value),
            Edit::Set(value) => push(&mut out, &key, &value),
            Edit::Drop => {}
        }
    }
    Some(close_object(out))
}

/// The object with this member set, whether it had one or not.
pub(crate) fn with_member(text: &str, key: &str, value: &str) -> Option<String> {
    let mut is_set = false;
    let changed = edit_members(text, |name, _| {
        let is_it = name == key;
        is_set |= is_it;
        if is_it { Edit::Set(value.to_owned()) } else { Edit::Keep }
    })?;
    if is_set {
        return Some(changed);
    }
    let mut out = changed.into_bytes();
    out.pop();
    out.drain(..usize::from(out.len() == 1));
    push(&mut out, key, value);
    Some(close_object(out))
}

/// A string as JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    quote(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// The text of a definition in the newest revision's shape.
pub fn newest_json(definition: &Definition) -> &str {
    definition.text(Rules::CANONICAL)
}

fn push(out: &mut Vec<u8>, key: &str, value: &str) {
    out.push(if out.is_empty() { b'{' } else { b',' });
    quote(out, key);
    out.push(b':');
    out.extend_from_slice(value.as_bytes());
}

fn close_object(mut out: Vec<u8>) -> String {
    if out.is_empty() {
        out.push(b'{');
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_kept_as_they_were_written() {
        let text = r#"{ "a": 1.0, "b" : {"c": 123456789012345678901234567890}, "d":"\u0061" }"#;
        let changed = edit_members(text, |key, _| match key {
            "a" => Edit::Drop,
            "d" => Edit::Set("true".to_owned()),
            _ => Edit::Keep,
        });
        let expected = r#"{"b":{"c": 123456789012345678901234567890},"d":true}"#;
        assert_eq!(changed.unwrap(), expected);
        assert_eq!(edit_members("[]", |_, _| Edit::Keep), None);
    }

    #[test]
    fn a_member_is_replaced_or_added() {
        assert_eq!(with_member("{}", "a", "1").unwrap(), r#"{"a":1}"#);
        assert_eq!(with_member(r#"{"a":0,"b":2}"#, "a", "1").unwrap(), r#"{"a":1,"b":2}"#);
        assert_eq!(with_member(r#"{"b":2}"#, "a\n", "1").unwrap(), r#"{"b":2,"a\n":1}"#);
    }
}
