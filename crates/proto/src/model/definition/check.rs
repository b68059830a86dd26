//! Checks an upstream's definition, so that an invalid one never appears in a list. Clients reject the whole list
//! otherwise.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::Definition;
use super::rules::{AbsentPolicy, ICONS, MemberRule, MemberShape, members_of};
use crate::model::ListKind;
use crate::wire::{
    Object, ScanLimits, elements, is_control, is_nested_deeper_than, unquote, write_foreign_member,
};

/// Maximum nesting depth of an item. With the three levels of the list around it, clients still accept the message.
const MAX_ITEM_DEPTH: usize = 125;

/// Maximum length of an invalid name that is repeated.
const MAX_ECHO_CHARS: usize = 64;

/// An excluded item and the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExcludedItem {
    /// Its name or URI; its position in the list if it has none.
    pub name: String,
    /// The violated rule.
    pub reason: String,
}

impl fmt::Display for ExcludedItem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.name, self.reason)
    }
}

impl Definition {
    /// The definition of an upstream's item at this position of its list, if it follows the rules of its kind. Members
    /// that are null are removed.
    pub fn from_untrusted(kind: ListKind, item: &str, index: usize) -> Result<Self, ExcludedItem> {
        let excluded = |reason: String| {
            let name =
                Object::new(item).and_then(|object| object.string(kind.key()).ok().flatten());
            let name = name.filter(|name| !name.is_empty());
            let name = name.map(|name| name.chars().take(MAX_ECHO_CHARS).collect());
            ExcludedItem { name: name.unwrap_or_else(|| format!("item {}", index + 1)), reason }
        };
        if is_nested_deeper_than(item, MAX_ITEM_DEPTH) {
            let max = ScanLimits::default().max_depth;
            return Err(excluded(format!(
                "it is nested too deep: a list with it has more than {max} levels"
            )));
        }
        let conforming = normalize_item(kind, item).map_err(|error| excluded(error.to_string()))?;
        let found = Self::from_upstream(kind, &conforming, None);
        found.ok_or_else(|| excluded(format!("it has no `{}`", kind.key())))
    }
}

/// Whether a value is a list of icons that every client accepts (2025-11-25 schema, `Icon`).
pub(crate) fn is_icon_list(value: &str) -> bool {
    matches!(check(&ICONS, value), Ok(false))
}

/// A violated rule: the member and its required shape.
struct DefinitionError {
    path: String,
    problem: Cow<'static, str>,
}

impl DefinitionError {
    fn new(problem: impl Into<Cow<'static, str>>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    /// The same error, with this member in front of its path.
    fn within(mut self, member: &str) -> Self {
        self.path = match &*self.path {
            "" => member.to_string(),
            inner => format!("{member}.{inner}"),
        };
        self
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` {}", self.path, self.problem)
    }
}

/// The item in the required form: mostly its own text.
fn normalize_item(kind: ListKind, item: &str) -> Result<Cow<'_, str>, DefinitionError> {
    let Some(object) = Object::new(item) else { return Ok(Cow::Borrowed(item)) };
    let rules = members_of(kind);
    if !check_members(rules, object)? {
        return Ok(Cow::Borrowed(item));
    }
    let mut out = Vec::with_capacity(item.len());
    write_members(&mut out, rules, object);
    Ok(String::from_utf8(out).map_or(Cow::Borrowed(item), Cow::Owned))
}

/// Checks the members of an object. Returns whether a part of it must be rewritten.
fn check_members(rules: &[MemberRule], object: Object<'_>) -> Result<bool, DefinitionError> {
    let mut differs = false;
    let mut found = 0_u32;
    for (name, value) in object.members() {
        let Some(index) = rules.iter().position(|rule| rule.name == name) else { continue };
        let rule = &rules[index];
        if value == "null" {
            differs = true;
            continue;
        }
        found |= 1 << index;
        differs |= check(&rule.shape, value).map_err(|error| error.within(rule.name))?;
    }
    for (index, rule) in rules.iter().enumerate().filter(|(index, _)| found & (1 << index) == 0) {
        match rule.absent {
            AbsentPolicy::Allowed => {}
            AbsentPolicy::Refused => {
                return Err(DefinitionError::new("is missing").within(rules[index].name));
            }
            AbsentPolicy::DefaultsTo(_) => differs = true,
        }
    }
    Ok(differs)
}

/// Checks a value. Returns whether it must be rewritten.
fn check(shape: &MemberShape, value: &str) -> Result<bool, DefinitionError> {
    let is_right = match shape {
        MemberShape::Text => value.starts_with('"'),
        MemberShape::Name { max_chars: max_length } => {
            return check_name(value, *max_length).map(|()| false);
        }
        MemberShape::Boolean => matches!(value, "true" | "false"),
        MemberShape::Integer => number(value).is_some_and(|number| number % 1.0 == 0.0),
        MemberShape::UnitInterval => {
            number(value).is_some_and(|number| (0.0..=1.0).contains(&number))
        }
        MemberShape::Timestamp if value.starts_with('"') => {
            return Ok(!unquote(value).is_some_and(|text| is_timestamp(&text)));
        }
        MemberShape::Timestamp => false,
        MemberShape::OneOf(words) => unquote(value).is_some_and(|word| words.contains(&&*word)),
        MemberShape::Object => Object::new(value).is_some(),
        MemberShape::Schema => matches!(value, "true" | "false") || Object::new(value).is_some(),
        MemberShape::Members(rules) => match Object::new(value) {
            Some(object) => return check_members(rules, object),
            None => false,
        },
        MemberShape::Array(shape) => match elements(value) {
            Some(each) => return check_each(each.into_iter().enumerate(), shape),
            None => false,
        },
        MemberShape::Map(shape) => match Object::new(value) {
            Some(object) => return check_each(object.members(), shape),
            None => false,
        },
    };
    match is_right {
        true => Ok(false),
        false => Err(DefinitionError::new(format!("must be {}", describe_shape(shape)))),
    }
}

fn check_each<'a>(
    each: impl Iterator<Item = (impl ToString, &'a str)>,
    shape: &MemberShape,
) -> Result<bool, DefinitionError> {
    let mut differs = false;
    for (key, value) in each {
        differs |= check(shape, value).map_err(|error| error.within(&key.to_string()))?;
    }
    Ok(differs)
}

fn check_name(value: &str, max_length: usize) -> Result<(), DefinitionError> {
    let Some(name) = unquote(value) else { return Err(DefinitionError::new("must be a string")) };
    if let Some(control) = name.chars().find(|character| is_control(*character)) {
        let code = u32::from(control);
        return Err(DefinitionError::new(format!("has the control character U+{code:04X}")));
    }
    match name.chars().count() {
        0 => Err(DefinitionError::new("is empty")),
        length if length > max_length => {
            Err(DefinitionError::new(format!("has {length} characters; the limit is {max_length}")))
        }
        _ => Ok(()),
    }
}

/// A description of the required shape.
fn describe_shape(shape: &MemberShape) -> String {
    match shape {
        MemberShape::Text | MemberShape::Name { .. } | MemberShape::Timestamp => "a string".into(),
        MemberShape::Boolean => "true or false".into(),
        MemberShape::Integer => "an integer".into(),
        MemberShape::UnitInterval => "a number from 0 to 1".into(),
        MemberShape::OneOf(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            words.join(" or ")
        }
        MemberShape::Object | MemberShape::Members(_) | MemberShape::Map(_) => "an object".into(),
        MemberShape::Array(_) => "an array".into(),
        MemberShape::Schema => "a schema: an object, true or false".into(),
    }
}

/// Writes a checked object, without the members that count as absent and with the defaults.
fn write_members(out: &mut Vec<u8>, rules: &[MemberRule], object: Object<'_>) {
    out.push(b'{');
    for (name, value) in object.members() {
        match rules.iter().find(|rule| rule.name == name) {
            None => write_foreign_member(out, &name, value),
            Some(rule) if is_written(&rule.shape, value) => {
                let mut text = Vec::new();
                write(&mut text, &rule.shape, value);
                write_foreign_member(out, &name, core::str::from_utf8(&text).unwrap_or(value));
            }
            Some(_) => {}
        }
    }
    let is_absent = |rule: &&MemberRule| object.get(rule.name).is_none_or(|value| value == "null");
    for rule in rules.iter().filter(is_absent) {
        if let AbsentPolicy::DefaultsTo(value) = rule.absent {
            write_foreign_member(out, rule.name, value);
        }
    }
    out.push(b'}');
}

fn is_written(shape: &MemberShape, value: &str) -> bool {
    value != "null"
        && !(matches!(shape, MemberShape::Timestamp) && check(shape, value).unwrap_or(false))
}

fn write(out: &mut Vec<u8>, shape: &MemberShape, value: &str) {
    match (shape, Object::new(value), elements(value)) {
        (MemberShape::Members(rules), Some(object), _) => write_members(out, rules, object),
        (MemberShape::Array(shape), _, Some(each)) => {
            out.push(b'[');
            for (index, value) in each.into_iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(out, shape, value);
            }
            out.push(b']');
        }
        _ => out.extend_from_slice(value.as_bytes()),
    }
}

fn number(value: &str) -> Option<f64> {
    value
        .parse()
        .ok()
        .filter(|_| value.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']))
}

/// Whether a text is a date and time with an offset, such as `2026-07-28T12:00:00Z` (RFC 3339, 5.6).
fn is_timestamp(text: &str) -> bool {
    let (Some(date), Some(rest)) = (text.get(..19), text.get(19..)) else { return false };
    let is_date = date.bytes().zip("0000-00-00T00:00:00".bytes()).all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    let offset = match rest.strip_prefix('.') {
        None => rest,
        Some(fraction) => fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()),
    };
    let is_offset = match offset.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', rest @ ..] => {
            let form = b"00:00";
            rest.len() == form.len()
                && rest.iter().zip(form).all(|(byte, form)| match form {
                    b'0' => byte.is_ascii_digit(),
                    other => byte == other,
                })
        }
        _ => false,
    };
    is_date && is_offset && !rest.starts_with(".Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Revision;

    fn tool(members: &str) -> String {
        format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},{members}}}"#)
    }

    fn reason(kind: ListKind, item: &str) -> String {
        match Definition::from_untrusted(kind, item, 6) {
            Ok(definition) => panic!("{item} passed as {definition:?}"),
            Err(excluded) => excluded.to_string(),
        }
    }

    fn text(kind: ListKind, item: &str) -> String {
        let checked =
            Definition::from_untrusted(kind, item, 0).unwrap_or_else(|error| panic!("{error}"));
        checked.text(Revision::V2026_07_28.rules()).into()
    }

    #[test]
    fn a_tool_that_no_client_accepts_is_excluded_with_a_reason() {
        for schema in ["[]", "\"x\"", "5", "true"] {
            let item = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
            let expected = r#""t": `inputSchema` must be an object"#;
            assert_eq!(reason(ListKind::Tools, &item), expected);
        }
        for item in [r#"{"name":"t"}"#, r#"{"name":"t","inputSchema":null}"#] {
            assert_eq!(reason(ListKind::Tools, item), r#""t": `inputSchema` is missing"#);
        }
        let item = r#"{"name":"t","inputSchema":{"type":"array"}}"#;
        assert_eq!(reason(ListKind::Tools, item), r#""t": `inputSchema.type` must be "object""#);
        for (members, expected) in [
            (r#""description":5"#, "`description` must be a string"),
            (r#""annotations":"yes""#, "`annotations` must be an object"),
            (
                r#""annotations":{"readOnlyHint":1}"#,
                "`annotations.readOnlyHint` must be true or false",
            ),
            (r#""outputSchema":[]"#, "`outputSchema` must be an object"),
            (r#""icons":[{"src":1}]"#, "`icons.0.src` must be a string"),
            (r#""_meta":[]"#, "`_meta` must be an object"),
            (
                r#""execution":{"taskSupport":"x"}"#,
                r#"`execution.taskSupport` must be "forbidden" or "optional" or "required""#,
            ),
        ] {
            assert_eq!(reason(ListKind::Tools, &tool(members)), format!("\"t\": {expected}"));
        }
        assert_eq!(reason(ListKind::Tools, "[]"), r#""item 7": it has no `name`"#);
        assert_eq!(reason(ListKind::Tools, "{}"), r#""item 7": `name` is missing"#);
    }

    #[test]
    fn items_of_the_other_lists_are_checked_likewise() {
        for (kind, item, expected) in [
            (ListKind::Resources, r#"{"uri":"a:b"}"#, r#""a:b": `name` is missing"#),
            (
                ListKind::Resources,
                r#"{"uri":"a:b","name":"n","size":"5"}"#,
                r#""a:b": `size` must be an integer"#,
            ),
            (
                ListKind::Resources,
                r#"{"uri":"a:b","name":"n","annotations":{"priority":2}}"#,
                r#""a:b": `annotations.priority` must be a number from 0 to 1"#,
            ),
            (
                ListKind::Templates,
                r#"{"name":"n","uriTemplate":5}"#,
                r#""n": `uriTemplate` must be a string"#,
            ),
            (
                ListKind::Prompts,
                r#"{"name":"n","arguments":{}}"#,
                r#""n": `arguments` must be an array"#,
            ),
            (
                ListKind::Prompts,
                r#"{"name":"n","arguments":[{"name":5}]}"#,
                r#""n": `arguments.0.name` must be a string"#,
            ),
        ] {
            assert_eq!(reason(kind, item), expected);
        }
    }

    #[test]
    fn a_name_that_deceives_or_is_too_long_is_excluded() {
        let named =
            |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        let message = reason(ListKind::Tools, &named("a\u{202e}b"));
        assert_eq!(message, r#""a\u{202e}b": `name` has the control character U+202E"#);
        assert!(reason(ListKind::Tools, &named("a\\nb")).ends_with("U+000A"));
        assert!(Definition::from_untrusted(ListKind::Tools, &named(&"é".repeat(128)), 0).is_ok());
        let message = reason(ListKind::Tools, &named(&"é".repeat(129)));
        assert!(message.ends_with("`name` has 129 characters; the limit is 128"), "{message}");
        let long = "x".repeat(500);
        let resource = format!(r#"{{"uri":"a:{long}","name":"{long}"}}"#);
        assert!(Definition::from_untrusted(ListKind::Resources, &resource, 0).is_ok());
    }

    #[test]
    fn empty_fields_are_removed_and_implied_values_written() {
        let nulls = r#"{"name":"t","title":null,"inputSchema":{"properties":null,"x":null},"annotations":{"title":null,"y":1e400}}"#;
        let expected =
            r#"{"name":"t","inputSchema":{"x":null,"type":"object"},"annotations":{"y":1e400}}"#;
        assert_eq!(text(ListKind::Tools, nulls), expected);
        let prompt = r#"{"name":"p","arguments":[{"name":"a","description":null},{"name":"b"}]}"#;
        let expected = r#"{"name":"p","arguments":[{"name":"a"},{"name":"b"}]}"#;
        assert_eq!(text(ListKind::Prompts, prompt), expected);
        let dated = |date: &str| {
            format!(r#"{{"uri":"a:b","name":"n","annotations":{{"lastModified":"{date}"}}}}"#)
        };
        for good in ["2026-07-28T12:00:00Z", "2026-07-28T12:00:00.5+02:00"] {
            assert_eq!(text(ListKind::Resources, &dated(good)), dated(good));
        }
        for bad in ["yesterday", "2026-07-28", "2026-07-28T12:00:00", "2026-07-28T12:00:00.Z"] {
            let expected = r#"{"uri":"a:b","name":"n","annotations":{}}"#;
            assert_eq!(text(ListKind::Resources, &dated(bad)), expected);
        }
    }

    #[test]
    fn an_item_is_as_deep_as_a_list_of_it_may_be() {
        let nested = |depth: usize| {
            let (open, close) = ("{\"a\":".repeat(depth), "}".repeat(depth));
            format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"_meta":{open}1{close}}}"#)
        };
        assert!(
            Definition::from_untrusted(ListKind::Tools, &nested(MAX_ITEM_DEPTH - 1), 0).is_ok()
        );
        let message = reason(ListKind::Tools, &nested(MAX_ITEM_DEPTH));
        assert!(
            message.ends_with("it is nested too deep: a list with it has more than 128 levels"),
            "{message}"
        );
        reason(ListKind::Tools, &nested(50_000));
    }
}
