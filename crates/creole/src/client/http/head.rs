//! The headers of a request to a server.

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
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes())
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            head.insert(name, value);
        }
    }
}
