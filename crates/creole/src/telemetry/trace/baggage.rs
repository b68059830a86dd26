//! Baggage (W3C Baggage): members that a client adds to a trace. An upstream gets only the members that its
//! configuration names.

/// The maximum length in bytes.
const MAX_LENGTH: usize = 8192;

/// The maximum number of members.
const MAX_MEMBERS: usize = 64;

/// Whether a text is valid baggage.
pub(super) fn is_baggage(text: &str) -> bool {
    text.len() <= MAX_LENGTH
        && text.split(',').count() <= MAX_MEMBERS
        && text.split(',').all(|member| is_member(trim(member)))
}

/// The members of valid baggage with these names, in their order.
pub(super) fn select_members(text: &str, names: &[Box<str>]) -> Option<String> {
    let is_named = |member: &&str| {
        let name = member.split('=').next().map(trim);
        name.is_some_and(|name| names.iter().any(|wanted| **wanted == *name))
    };
    let members: Vec<&str> = text.split(',').map(trim).filter(is_named).collect();
    (!members.is_empty()).then(|| members.join(","))
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Whether this is `key=value` with optional properties.
fn is_member(member: &str) -> bool {
    let mut parts = member.split(';').map(trim);
    let is_pair = |part: &str| {
        part.split_once('=').is_some_and(|(key, value)| is_key(trim(key)) && is_value(trim(value)))
    };
    parts.next().is_some_and(is_pair) && parts.all(|part| is_key(part) || is_pair(part))
}

/// Whether this is a token (RFC 9110, section 5.6.2).
fn is_key(key: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !key.is_empty() && key.bytes().all(is_token)
}

fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b'!'..=b'~') && !b"\",;\\".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baggage_has_its_form_and_its_limits() {
        let members = |count: usize| vec!["a=1"; count].join(",");
        for valid in ["a=1", "a = 1 , b=x%20y;p;q = 2", "a=b=c", "a=", &members(64)] {
            assert!(is_baggage(valid), "{valid}");
        }
        let long = format!("a={}", "x".repeat(8191));
        for invalid in ["", "a", "=1", "a=1,", "a=\"1\"", "a=\u{e9}", "a b=1", &members(65), &long]
        {
            assert!(!is_baggage(invalid), "{invalid}");
        }
    }

    #[test]
    fn only_named_members_are_selected() {
        let names = ["tenant".into(), "b".into()];
        let selected = select_members("secret=1, tenant = x;p, b=2,tenants=3", &names);
        assert_eq!(selected.as_deref(), Some("tenant = x;p,b=2"));
        assert_eq!(select_members("secret=1", &names), None);
    }
}
