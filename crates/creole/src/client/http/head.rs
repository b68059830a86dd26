//! The headers of a request to a server.

use std::borrow::Cow;

use creole_proto::http::head::{LAST_EVENT, METHOD, NAME, SESSION, VERSION};
use creole_proto::http::request::Header;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};

use super::request::Headers;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The names of headers that the protocol has.
pub(super) const SESSION_NAME: HeaderName = HeaderName::from_static(SESSION);
pub(super) const VERSION_NAME: HeaderName = HeaderName::from_static(VERSION);
pub(super) const LAST_EVENT_NAME: HeaderName = HeaderName::from_static(LAST_EVENT);

/// What every POST has.
pub(super) fn posting() -> Headers {
    let mut head = Headers::new();
    head.set(CONTENT_TYPE, JSON);
    head.set(ACCEPT, BOTH);
    head
}

/// What a request has that only listens.
pub(super) fn listening() -> Headers {
    let mut head = Headers::new();
    head.set(ACCEPT, EVENTS);
    head
}

/// Adds what the protocol has in headers. What cannot be in one is left out, and refused by the server.
pub(super) fn add(head: &mut Headers, headers: Vec<Header>) {
    for (name, value) in headers {
        let value = match value {
            Cow::Borrowed(value) => Ok(HeaderValue::from_static(value)),
            Cow::Owned(value) => HeaderValue::try_from(value),
        };
        if let (Some(name), Ok(value)) = (known(&name), value) {
            head.set(name, value);
        }
    }
}

/// The name of a header; those of every call are made once.
fn known(name: &str) -> Option<HeaderName> {
    const KNOWN: [HeaderName; 3] =
        [VERSION_NAME, HeaderName::from_static(METHOD), HeaderName::from_static(NAME)];
    let known = KNOWN.into_iter().find(|known| known == name);
    known.or_else(|| HeaderName::from_bytes(name.as_bytes()).ok())
}
