//! The head of a server's response.

use creole_proto::http::mcp_headers::SESSION_ID_HEADER;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};

/// The relevant fields of a response's head.
#[derive(Clone, Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) kind: ResponseKind,
    /// The session that it names.
    pub(crate) session: Option<HeaderValue>,
    /// The seconds of `Retry-After`. A date is ignored: it does not justify a calendar.
    pub(crate) retry_after: Option<u64>,
    /// The values of `WWW-Authenticate`.
    pub(crate) challenges: Vec<String>,
    /// The value of `DPoP-Nonce`.
    pub(crate) dpop_nonce: Option<String>,
}

/// The kind of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    Json,
    Events,
    Other,
}

impl ResponseHead {
    /// Reads these headers; of repeated ones the first counts.
    pub(crate) fn new<'a>(
        status: StatusCode,
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let (mut kind, mut session, mut retry_after) = (None, None, None);
        let (mut challenges, mut dpop_nonce) = (Vec::new(), None);
        for (name, value) in headers {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is(CONTENT_TYPE.as_str()) {
                kind = kind.or_else(|| Some(ResponseKind::from_media_type(value)));
            } else if is(SESSION_ID_HEADER) {
                session = session.or_else(|| HeaderValue::from_bytes(value).ok());
            } else if is(RETRY_AFTER.as_str()) {
                let seconds =
                    str::from_utf8(value).ok().and_then(|value| value.trim().parse().ok());
                retry_after = retry_after.or(seconds);
            } else if is(WWW_AUTHENTICATE.as_str()) {
                challenges.push(String::from_utf8_lossy(value).into_owned());
            } else if is("dpop-nonce") {
                dpop_nonce = str::from_utf8(value).ok().map(str::to_owned);
            }
        }
        let kind = kind.unwrap_or(ResponseKind::Other);
        Self { status, kind, session, retry_after, challenges, dpop_nonce }
    }

    /// The same for headers in a map.
    pub(crate) fn from_headers(status: StatusCode, headers: &HeaderMap) -> Self {
        Self::new(status, headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
    }
}

impl ResponseKind {
    /// The kind for a media type.
    fn from_media_type(value: &[u8]) -> Self {
        let media = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if media.eq_ignore_ascii_case(b"application/json") {
            Self::Json
        } else if media.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_equal_headers_counts_and_the_media_type_has_no_parameters() {
        let head = |rows: &[(&'static str, &'static str)]| {
            let headers = rows.iter().map(|(name, value)| (*name, value.as_bytes()));
            ResponseHead::new(StatusCode::OK, headers)
        };
        let found = head(&[
            ("Content-Type", "Application/JSON; charset=utf-8"),
            ("content-type", "text/event-stream"),
            ("Mcp-Session-Id", "a"),
            ("mcp-session-id", "b"),
            ("retry-after", " 7 "),
        ]);
        assert_eq!(found.kind, ResponseKind::Json);
        assert_eq!((found.session.unwrap(), found.retry_after), ("a".parse().unwrap(), Some(7)));
        assert_eq!(head(&[("content-type", "text/event-stream")]).kind, ResponseKind::Events);
        assert_eq!(head(&[("content-type", "text/html")]).kind, ResponseKind::Other);
        assert_eq!(head(&[]).kind, ResponseKind::Other);
    }
}
