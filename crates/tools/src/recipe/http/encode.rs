//! Encodes values so that they cannot leave their position: a path segment, a parameter, a header.

use std::fmt::Write;

use creole::ToolError;

use crate::recipe::argument::{ArgumentValues, invalid_argument};
use crate::recipe::template::{Template, TemplatePart};

/// A URL with its values; each is one path segment or one parameter, or a part of one.
pub(super) fn build_url(
    template: &Template,
    values: &ArgumentValues<'_>,
) -> Result<String, ToolError> {
    let mut url = String::new();
    let mut places = Vec::new();
    for part in template.parts() {
        match part {
            TemplatePart::Text(text) => url.push_str(text),
            TemplatePart::Argument(name) => {
                let value = values.to_text(name).unwrap_or_default();
                if !url.contains('?') {
                    check_segment(name, &value)?;
                    places.push((url.len(), name.as_str()));
                }
                percent_encode(&value, &mut url);
            }
        }
    }
    check_path(&url, &places)?;
    Ok(url)
}

/// Rejects a slash: servers differ on the meaning of an encoded one.
pub(crate) fn check_segment(name: &str, value: &str) -> Result<(), ToolError> {
    if value.is_empty() {
        return Err(invalid_argument(name, "must not be empty"));
    }
    if value.contains(['/', '\\']) || value.chars().any(char::is_control) {
        return Err(invalid_argument(
            name,
            "must not contain a slash, a backslash or a control character",
        ));
    }
    Ok(())
}

/// Rejects `.` and `..` segments, which would change the path, even if they are composed of several values. `places`
/// are the start positions of the values.
pub(crate) fn check_path(url: &str, places: &[(usize, &str)]) -> Result<(), ToolError> {
    let path = url.split('?').next().unwrap_or_default();
    let mut end = 0;
    for segment in path.split('/') {
        end += segment.len();
        if segment == "." || segment == ".." {
            let blamed = places.iter().rev().find(|(begin, _)| *begin <= end);
            let name = blamed.map_or("", |(_, name)| name);
            return Err(invalid_argument(name, "must not be `.` or `..`"));
        }
        end += 1;
    }
    Ok(())
}

/// Appends one query parameter.
pub(crate) fn push_parameter(name: &str, value: &str, query: &mut String) {
    if !query.is_empty() {
        query.push('&');
    }
    percent_encode(name, query);
    query.push('=');
    percent_encode(value, query);
}

/// Percent-encodes all characters except unreserved ones (RFC 3986, section 2.3).
pub(crate) fn percent_encode(text: &str, to: &mut String) {
    percent_encode_except(text, "", to);
}

/// The same, except for the characters in `staying`.
pub(crate) fn percent_encode_except(text: &str, staying: &str, to: &mut String) {
    let stays = |byte: &u8| b"-._~".contains(byte) || staying.as_bytes().contains(byte);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || stays(&byte) {
            to.push(char::from(byte));
        } else {
            let _ = write!(to, "%{byte:02X}");
        }
    }
}

/// Decodes percent-encoded text.
pub(crate) fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&first, tail)) = rest.split_first() {
        let pair = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::recipe::argument::ArgumentType;
    use crate::recipe::argument::tests::argument;

    fn filled(template: &str, brought: Value) -> Result<String, ToolError> {
        let arguments = [argument("a", ArgumentType::String), argument("b", ArgumentType::String)];
        build_url(&Template::parse(template).unwrap(), &ArgumentValues::new(&arguments, brought))
    }

    #[test]
    fn a_value_stays_in_its_segment() {
        let template = "https://host/users/{a}/posts";
        let rows = [
            ("a b", "a%20b"),
            ("a?x=1", "a%3Fx%3D1"),
            ("a#b", "a%23b"),
            ("%2f", "%252f"),
            ("%2e%2e", "%252e%252e"),
            ("a;b=c", "a%3Bb%3Dc"),
            ("@evil.com:1", "%40evil.com%3A1"),
            ("ü", "%C3%BC"),
            ("...", "..."),
        ];
        for (value, segment) in rows {
            let expected = format!("https://host/users/{segment}/posts");
            assert_eq!(filled(template, json!({ "a": value })).unwrap(), expected);
        }
        for value in ["", ".", "..", "../admin", "a/b", "..\\x", "/", "a\nb", "a\0"] {
            assert!(filled(template, json!({ "a": value })).is_err(), "{value:?}");
        }
    }

    #[test]
    fn dots_cannot_be_put_together() {
        assert!(filled("https://host/{a}{b}/x", json!({ "a": ".", "b": "." })).is_err());
        assert!(filled("https://host/.{a}", json!({ "a": "." })).is_err());
        assert!(filled("https://host/v{a}", json!({ "a": "." })).is_ok());
        let error =
            filled("https://host/{a}/{b}/x", json!({ "a": "fine", "b": ".." })).unwrap_err();
        assert!(format!("{error:?}").contains("`b` must not be"), "{error:?}");
    }

    #[test]
    fn a_value_stays_in_its_parameter() {
        let url =
            filled("https://host/s?q={a}&n=1", json!({ "a": "a&admin=1+ %00/../#x" })).unwrap();
        assert_eq!(url, "https://host/s?q=a%26admin%3D1%2B%20%2500%2F..%2F%23x&n=1");
        let mut query = String::new();
        push_parameter("q", "1&2", &mut query);
        push_parameter("n[]", "", &mut query);
        assert_eq!(query, "q=1%262&n%5B%5D=");
    }
}
