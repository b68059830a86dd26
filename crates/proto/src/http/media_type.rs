//! Media types of requests and responses.

/// The media types that a client accepts (2025-11-25 basic/transports, sending messages to the server).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedMedia {
    /// One JSON document.
    pub json: bool,
    /// An event stream.
    pub events: bool,
}

/// Whether a body of this type is JSON in UTF-8. Forms and plain text are refused, because a web page may send them to
/// any server without a preflight request.
pub fn is_json_content_type(content_type: Option<&[u8]>) -> bool {
    if content_type == Some(JSON.as_bytes()) {
        return true;
    }
    let Some(text) = content_type.and_then(|value| core::str::from_utf8(value).ok()) else {
        return false;
    };
    let mut parts = text.split(';').map(str::trim);
    let is_type = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(JSON));
    is_type && parts.all(is_utf8_or_unknown)
}

/// Whether a parameter is UTF-8 or not a character set, in which case it is irrelevant to the bytes.
fn is_utf8_or_unknown(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return true };
    let value = value.trim().trim_matches('"');
    !name.trim().eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8")
}

/// The `Accept` header of nearly every client.
const COMMON_ACCEPT: &[u8] = b"application/json, text/event-stream";

/// The `Content-Type` header of nearly every client.
const JSON: &str = "application/json";

/// Parses `Accept`. A client without the header accepts everything (RFC 9110, 12.4.1).
pub fn parse_accept(accept: Option<&[u8]>) -> AcceptedMedia {
    let Some(accept) = accept else { return AcceptedMedia { json: true, events: true } };
    if accept == COMMON_ACCEPT {
        return AcceptedMedia { json: true, events: true };
    }
    let Ok(text) = core::str::from_utf8(accept) else {
        return AcceptedMedia { json: false, events: false };
    };
    let takes = |kind: &str| {
        let (family, _) = kind.split_once('/').unwrap_or((kind, ""));
        let weight = |range: &str| range_weight(text, range);
        let family = family_weight(text, family);
        // The most specific range decides (RFC 9110, 12.5.1).
        weight(kind).or(family).or_else(|| weight("*/*")).unwrap_or(false)
    };
    AcceptedMedia { json: takes(JSON), events: takes("text/event-stream") }
}

/// Whether this range is listed with a weight above zero; `None` if it is not listed.
fn range_weight(accept: &str, range: &str) -> Option<bool> {
    ranges(accept).find(|(listed, _)| listed.eq_ignore_ascii_case(range)).map(|(_, takes)| takes)
}

fn family_weight(accept: &str, family: &str) -> Option<bool> {
    let is_family = |listed: &str| {
        listed.strip_suffix("/*").is_some_and(|listed| listed.eq_ignore_ascii_case(family))
    };
    ranges(accept).find(|(listed, _)| is_family(listed)).map(|(_, takes)| takes)
}

fn ranges(accept: &str) -> impl Iterator<Item = (&str, bool)> {
    accept.split(',').map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let listed = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let refused =
            quality.is_some_and(|quality| quality.bytes().all(|b| b == b'0' || b == b'.'));
        (listed, !refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_json_in_utf8() {
        for good in ["application/json", "Application/JSON; charset=UTF-8", "application/json;v=1"]
        {
            assert!(is_json_content_type(Some(good.as_bytes())), "{good}");
        }
        let bad =
            ["text/plain", "application/json-rpc", "application/json;charset=utf-16", "", "json"];
        for bad in bad {
            assert!(!is_json_content_type(Some(bad.as_bytes())), "{bad}");
        }
        assert!(!is_json_content_type(None));
    }

    #[test]
    fn the_most_specific_range_decides_and_a_weight_of_nothing_refuses() {
        let rows = [
            (None, true, true),
            (Some("application/json, text/event-stream"), true, true),
            (Some("application/json"), true, false),
            (Some("text/event-stream"), false, true),
            (Some("*/*"), true, true),
            (Some("text/*"), false, true),
            (Some("*/*, text/event-stream;q=0"), true, false),
            (Some("application/json;q=0.0, */*"), false, true),
            (Some("application/json;q=0.5"), true, false),
            (Some("text/html"), false, false),
            (Some(""), false, false),
        ];
        for (accept, json, events) in rows {
            let found = parse_accept(accept.map(str::as_bytes));
            assert_eq!(found, AcceptedMedia { json, events }, "{accept:?}");
        }
    }
}
