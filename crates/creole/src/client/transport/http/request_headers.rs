//! The headers of a request to a server.

use creole_proto::http::mcp_headers::{
    LAST_EVENT_ID_HEADER, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER,
};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};

use crate::client::transport::http::conn::request::HeaderList;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The header names of the protocol.
pub(crate) const SESSION_NAME: HeaderName = HeaderName::from_static(SESSION_ID_HEADER);
pub(crate) const VERSION_NAME: HeaderName = HeaderName::from_static(PROTOCOL_VERSION_HEADER);
pub(crate) const LAST_EVENT_NAME: HeaderName = HeaderName::from_static(LAST_EVENT_ID_HEADER);

/// The headers of every POST.
pub(crate) fn post_headers() -> HeaderList {
    let mut head = HeaderList::new();
    head.set(CONTENT_TYPE, JSON);
    head.set(ACCEPT, JSON_OR_EVENTS);
    head
}

/// The headers of a request that only listens.
pub(crate) fn listen_headers() -> HeaderList {
    let mut head = HeaderList::new();
    head.set(ACCEPT, EVENTS);
    head
}
