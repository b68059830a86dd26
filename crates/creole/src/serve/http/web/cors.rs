//! CORS: the headers that let pages of allowed origins read responses.
//!
//! The origin is always named and never `*`, and browser credentials are never allowed: callers authenticate by a
//! header that a page has to add on purpose.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::serve::http::web::request::RequestHeaders;

/// The request headers that pages may send.
const ALLOWED_HEADERS: &[&str] = &[
    "accept",
    "authorization",
    "content-type",
    "dpop",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];
/// Headers with this prefix carry arguments, under names that tools choose.
const ALLOWED_HEADER_PREFIX: &str = "mcp-param-";
/// The response headers that pages may read.
const EXPOSED_HEADERS: &str =
    "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after, dpop-nonce";
/// How long browsers may cache the response to a preflight, in seconds.
const MAX_AGE_SECONDS: &str = "600";

/// Whether a request is a CORS preflight.
pub(crate) fn is_preflight(method: &Method, headers: &RequestHeaders) -> bool {
    method == Method::OPTIONS && headers.contains(ACCESS_CONTROL_REQUEST_METHOD.as_str())
}

/// The response to a preflight from this origin.
pub(crate) fn preflight<B: From<Bytes>>(
    origin: &HeaderValue,
    asked: &RequestHeaders,
    methods: &HeaderValue,
) -> Response<B> {
    let mut response = Response::new(B::from(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods.clone());
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_SECONDS));
    if let Some(allowed) = allowed_headers(asked) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    allow(origin, headers);
    response
}

/// Lets a page of this origin read the response.
pub(crate) fn allow(origin: &HeaderValue, headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// The requested headers that a page may send.
fn allowed_headers(headers: &RequestHeaders) -> Option<HeaderValue> {
    let asked = std::str::from_utf8(headers.get(ACCESS_CONTROL_REQUEST_HEADERS.as_str())?).ok()?;
    let known = |name: &&str| {
        let begins = |start: &str| {
            name.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
        };
        ALLOWED_HEADERS.iter().any(|sent| name.eq_ignore_ascii_case(sent))
            || begins(ALLOWED_HEADER_PREFIX)
    };
    let allowed: Vec<&str> = asked.split(',').map(str::trim).filter(known).collect();
    HeaderValue::try_from(allowed.join(", ")).ok()
}
