//! An HTTP request to a server, and the template that requests of one kind share.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use creole_proto::http::mcp_headers::{
    LAST_EVENT_ID_HEADER, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER,
};
use creole_proto::http::request_headers::HeaderField;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Uri};
use http_body::{Frame, SizeHint};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The header names of the protocol.
pub(crate) const SESSION_NAME: HeaderName = HeaderName::from_static(SESSION_ID_HEADER);
pub(crate) const VERSION_NAME: HeaderName = HeaderName::from_static(PROTOCOL_VERSION_HEADER);
pub(crate) const LAST_EVENT_NAME: HeaderName = HeaderName::from_static(LAST_EVENT_ID_HEADER);

/// Headers in the order in which they are written, each once. There are few, so a linear search is faster than a map.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderList(Vec<(HeaderName, HeaderValue)>);

impl HeaderList {
    /// No headers, with capacity for those of most requests.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(8))
    }

    /// The headers of every POST.
    pub(crate) fn of_post() -> Self {
        let mut headers = Self::new();
        headers.set(CONTENT_TYPE, JSON);
        headers.set(ACCEPT, JSON_OR_EVENTS);
        headers
    }

    /// The headers of a request that only listens.
    pub(crate) fn of_listen() -> Self {
        let mut headers = Self::new();
        headers.set(ACCEPT, EVENTS);
        headers
    }

    /// Sets a header, and replaces one of the same name.
    pub(crate) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// Whether there is a header of this name.
    fn has(&self, name: &HeaderName) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// All headers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.0.iter()
    }
}

/// What requests need for a proxy that forwards them.
#[derive(Debug)]
pub(crate) struct ForwardProxy {
    /// The scheme and the host of the server.
    pub(crate) origin: String,
    /// The credentials for the proxy, which removes them before it forwards the request.
    pub(crate) authorization: Option<HeaderValue>,
}

/// The common start of requests of one kind, formatted once for all of them.
pub(crate) struct RequestTemplate {
    method: Method,
    path: PathAndQuery,
    headers: HeaderList,
    /// The start in HTTP/1.1 form.
    text: Vec<u8>,
}

impl RequestTemplate {
    /// A template with these headers; the host is always that of the address. A request that a proxy forwards names the
    /// server in its first line as well (RFC 9112, section 3.2.2).
    pub(crate) fn new(
        method: Method,
        path: PathAndQuery,
        mut headers: HeaderList,
        host: &HeaderValue,
        forwarded: Option<&ForwardProxy>,
    ) -> Arc<Self> {
        headers.0.retain(|(name, _)| *name != HOST);
        let mut text = Vec::with_capacity(512);
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| text.extend_from_slice(part));
        let origin = forwarded.map_or("", |forwarded| forwarded.origin.as_str());
        put(&[method.as_str().as_bytes(), b" ", origin.as_bytes(), path.as_str().as_bytes()]);
        put(&[b" HTTP/1.1\r\nhost: ", host.as_bytes(), b"\r\n"]);
        if let Some(shown) = forwarded.and_then(|forwarded| forwarded.authorization.as_ref()) {
            put(&[b"proxy-authorization: ", shown.as_bytes(), b"\r\n"]);
        }
        for (name, value) in headers.iter() {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        Arc::new(Self { method, path, headers, text })
    }

    /// A request from this template.
    pub(crate) fn request(
        self: &Arc<Self>,
        repeated: Vec<HeaderField>,
        body: Bytes,
    ) -> HttpRequest {
        HttpRequest { template: Arc::clone(self), authorization: None, mirrored: repeated, body }
    }
}

/// A request.
#[derive(Clone)]
pub(crate) struct HttpRequest {
    template: Arc<RequestTemplate>,
    /// The authorization, if the template has none.
    authorization: Option<HeaderValue>,
    /// The mirrored headers.
    mirrored: Vec<HeaderField>,
    /// The body; it may be empty.
    pub(crate) body: Bytes,
}

impl HttpRequest {
    /// The same request with this authorization.
    pub(crate) fn with_authorization(&self, authorization: &HeaderValue) -> Self {
        Self { authorization: Some(authorization.clone()), ..self.clone() }
    }

    /// The same request with one more header.
    pub(crate) fn with_field(mut self, name: &'static str, value: String) -> Self {
        self.mirrored.push((Cow::Borrowed(name), Cow::Owned(value)));
        self
    }

    /// Its method.
    pub(crate) fn method(&self) -> &Method {
        &self.template.method
    }

    /// Its request target.
    pub(crate) fn path(&self) -> &PathAndQuery {
        &self.template.path
    }

    /// Whether it has this header.
    pub(crate) fn has(&self, name: &HeaderName) -> bool {
        self.template.headers.has(name)
    }

    /// The mirrored headers that are valid and not set otherwise. The server rejects a request without a required one.
    fn sendable_mirrored(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.mirrored.iter().filter(|header| is_valid_header(header));
        let all = all.map(|(name, value)| (&**name, &**value));
        all.filter(|(name, _)| !self.template.headers.iter().any(|(known, _)| known == name))
    }

    /// Writes its head in HTTP/1.1 form, up to the empty line.
    pub(crate) fn write_head(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.template.text);
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| bytes.extend_from_slice(part));
        if let Some(shown) = &self.authorization {
            put(&[b"authorization: ", shown.as_bytes(), b"\r\n"]);
        }
        for (name, value) in self.sendable_mirrored() {
            put(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        if self.template.method == Method::POST || !self.body.is_empty() {
            // Writing into memory cannot fail.
            _ = write!(bytes, "content-length: {}\r\n", self.body.len());
        }
        bytes.extend_from_slice(b"\r\n");
    }

    /// The same for HTTP/2, where the target names the host.
    pub(crate) fn to_http2(&self, target: Uri) -> http::Request<RequestPayload> {
        let mut request = http::Request::new(RequestPayload::new(self.body.clone()));
        *request.method_mut() = self.template.method.clone();
        *request.uri_mut() = target;
        request.headers_mut().extend(self.template.headers.iter().cloned());
        if let Some(shown) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, shown.clone());
        }
        for (name, value) in self.sendable_mirrored() {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
                request.headers_mut().insert(name, value);
            }
        }
        request
    }
}

/// The body of a request, as one piece; it may be empty.
pub(crate) struct RequestPayload(Option<Bytes>);

impl RequestPayload {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for RequestPayload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Whether a header has a valid name and value; constants are valid.
fn is_valid_header((name, value): &HeaderField) -> bool {
    let is_name = match name {
        Cow::Borrowed(_) => true,
        Cow::Owned(name) => name.parse::<HeaderName>().is_ok(),
    };
    let is_value = match value {
        Cow::Borrowed(_) => true,
        Cow::Owned(value) => value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')),
    };
    is_name && is_value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_with_one_host_and_one_of_each_header() {
        let mut headers = HeaderList::new();
        headers.set(ACCEPT, HeaderValue::from_static("a"));
        headers.set(HOST, HeaderValue::from_static("evil"));
        headers.set(ACCEPT, HeaderValue::from_static("b"));
        headers.set(AUTHORIZATION, HeaderValue::from_static("c"));
        let path = PathAndQuery::from_static("/mcp?x=1");
        let body = Bytes::from_static(b"hello");
        let repeated =
            [("accept", "c"), ("mcp-method", "m"), ("a b", "c"), ("mcp-name", "n\r\nevil: 1")];
        let repeated =
            repeated.map(|(name, value)| (name.to_owned().into(), value.to_owned().into()));
        let host = HeaderValue::from_static("host:1");
        let start =
            |method| RequestTemplate::new(method, path.clone(), headers.clone(), &host, None);
        let request = start(Method::POST).request(repeated.into(), body);
        let head = |request: &HttpRequest| {
            let mut bytes = Vec::new();
            request.write_head(&mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            head(&request),
            "POST /mcp?x=1 HTTP/1.1\r\nhost: host:1\r\naccept: b\r\nauthorization: c\r\nmcp-method: m\r\ncontent-length: 5\r\n\r\n"
        );
        let beside = request.to_http2(Uri::from_static("https://host/mcp"));
        assert_eq!(beside.headers().len(), 3);
        let request = start(Method::GET).request(Vec::new(), Bytes::new());
        assert!(!head(&request).contains("content-length"));
        let authorization = Some(HeaderValue::from_static("p"));
        let forwarded = ForwardProxy { origin: "http://host:1".to_owned(), authorization };
        let start = RequestTemplate::new(
            Method::GET,
            path.clone(),
            HeaderList::new(),
            &host,
            Some(&forwarded),
        );
        let request = start.request(Vec::new(), Bytes::new());
        let expected =
            "GET http://host:1/mcp?x=1 HTTP/1.1\r\nhost: host:1\r\nproxy-authorization: p\r\n\r\n";
        assert_eq!(head(&request), expected);
        assert!(request.to_http2(Uri::from_static("https://host/mcp")).headers().is_empty());
    }
}
