//! Resolves plain values to the readings on which YAML 1.1 and YAML 1.2 agree.

use crate::item::front_matter::Node;

/// Maximum number of digits that every parser keeps exactly.
const MAX_DIGITS: usize = 15;

/// The value of a plain scalar, or why parsers do not agree on it.
pub(crate) fn resolve(text: &str) -> Result<Node, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Node::Null),
        "true" | "True" | "TRUE" => return Ok(Node::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Node::Bool(false)),
        _ => {}
    }
    if is_yaml_1_1_bool(text) {
        return Err(format!("`{text}` is a boolean for some YAML readers and a string for others"));
    }
    if is_number(text) {
        let number = serde_json::from_str(text).map(Node::Number);
        return number.map_err(|_| format!("`{text}` is a number that JSON cannot represent"));
    }
    if looks_like_number(text) {
        return Err(format!("`{text}` is a number for some YAML readers and not for others"));
    }
    if is_time(text) {
        return Err(format!(
            "`{text}` is a date or time for some YAML readers and a string for others"
        ));
    }
    if matches!(text, "=" | "<<") {
        return Err(format!("`{text}` has a special meaning for some YAML readers"));
    }
    Ok(Node::Text(text.to_owned()))
}

fn is_yaml_1_1_bool(text: &str) -> bool {
    let words = ["yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"];
    words.contains(&text) || matches!(text, "y" | "Y" | "n" | "N")
}

/// A JSON number without an exponent, short enough to be kept exactly.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let all_digits =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let count = whole.len() + fraction.map_or(0, str::len);
    all_digits(whole)
        && fraction.is_none_or(all_digits)
        && (whole == "0" || !whole.starts_with('0'))
        && text != "-0"
        && count <= MAX_DIGITS
}

/// Whether any of the number notations matches.
fn looks_like_number(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(rest.to_ascii_lowercase().as_str(), ".inf" | ".nan") {
        return true;
    }
    let is_decimal = |part: &str| {
        part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'_'))
            && part.matches('.').count() <= 1
    };
    let in_base = |prefix: &str| {
        let digits = rest.strip_prefix(prefix);
        digits.is_some_and(|output| {
            output.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'_')
        })
    };
    let has_exponent = rest.split_once(['e', 'E']).is_some_and(|(number, exponent)| {
        is_decimal(number) && is_decimal(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
    });
    is_decimal(rest) || has_exponent || ["0x", "0o", "0b"].into_iter().any(in_base)
}

/// Dates, and sexagesimal numbers.
fn is_time(text: &str) -> bool {
    let digits = |part: &str, counts: &[usize]| {
        counts.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = text.splitn(3, '-');
    let date = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
    let day = date[2].split(['T', 't', ' ', '\t']).next().unwrap_or_default();
    let is_date = digits(date[0], &[4]) && digits(date[1], &[1, 2]) && digits(day, &[1, 2]);
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_sixty = rest.contains(':')
        && rest.starts_with(|first: char| first.is_ascii_digit())
        && rest.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'_' | b'.'));
    is_date || is_sixty
}
