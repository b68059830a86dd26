//! The headers of a request to a server.

use std::borrow::Cow;

use creole_proto::http::head::{METHOD, NAME, VERSION};
use creole_proto::http::request::Header;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// What every POST has.
pub(super) fn posting() -> HeaderMap {
    let mut head = HeaderMap::with_capacity(8);
    head.insert(CONTENT_TYPE, JSON);
    head.insert(ACCEPT, BOTH);
    head
}

/// What a request has that only listens.
pub(super) fn listening() -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, EVENTS)])
}

/// Adds what the protocol has in headers. What cannot be in one is left out, and refused by the server.
pub(super) fn add(head: &mut HeaderMap, headers: Vec<Header>) {
    for (name, value) in headers {
        let value = match value {
            Cow::Borrowed(value) => Ok(HeaderValue::from_static(value)),
            Cow::Owned(value) => HeaderValue::try_from(value),
        };
        if let (Some(name), Ok(value)) = (known(&name), value) {
            head.insert(name, value);
        }
    }
}

/// The name of a header; those of every call are made once.
fn known(name: &str) -> Option<HeaderName> {
    const KNOWN: [HeaderName; 3] = [
        HeaderName::from_static(VERSION),
        HeaderName::from_static(METHOD),
        HeaderName::from_static(NAME),
    ];
    let known = KNOWN.into_iter().find(|known| known == name);
    known.or_else(|| HeaderName::from_bytes(name.as_bytes()).ok())
}
