//! What is sent to a server: one request of HTTP.

use std::borrow::Cow;
use std::io::Write as _;

use bytes::Bytes;
use creole_proto::http::request::Header;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, Uri};

use super::wire::Payload;

/// Headers in the order in which they are written, each once. They are a few, so looking at each is faster than a map.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers(Vec<(HeaderName, HeaderValue)>);

impl Headers {
    /// No headers, with room for those that most requests have.
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(8))
    }

    /// Sets a header, which takes the place of one with that name.
    pub(super) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// Whether there is one with this name.
    pub(super) fn has(&self, name: &HeaderName) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Each of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        self.0.iter()
    }
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: PathAndQuery,
    pub(super) headers: Headers,
    /// What the protocol repeats in headers.
    pub(super) repeated: Vec<Header>,
    /// All of it, or nothing.
    pub(super) body: Bytes,
}

impl Request {
    /// The same request with what the protocol has in headers.
    pub(super) fn repeating(self, repeated: Vec<Header>) -> Self {
        Self { repeated, ..self }
    }

    /// Those of them that can be sent and were not set otherwise. What is left out the server refuses.
    fn repeated(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.repeated.iter().filter(|header| can_be_sent(header));
        let all = all.map(|(name, value)| (&**name, &**value));
        all.filter(|(name, _)| !self.headers.iter().any(|(known, _)| known == name))
    }

    /// Writes its head as HTTP/1.1 has it, up to the empty line.
    pub(super) fn write_head(&self, host: &HeaderValue, bytes: &mut Vec<u8>) {
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| bytes.extend_from_slice(part));
        put(&[self.method.as_str().as_bytes(), b" ", self.path.as_str().as_bytes()]);
        put(&[b" HTTP/1.1\r\nhost: ", host.as_bytes(), b"\r\n"]);
        for (name, value) in self.headers.iter().filter(|(name, _)| *name != HOST) {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        for (name, value) in self.repeated() {
            put(&[name.as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        if self.method == Method::POST || !self.body.is_empty() {
            // Writing into memory cannot fail.
            _ = write!(bytes, "content-length: {}\r\n", self.body.len());
        }
        bytes.extend_from_slice(b"\r\n");
    }

    /// The same as HTTP/2 has it, where the target names the host.
    pub(super) fn beside(&self, target: Uri) -> http::Request<Payload> {
        let mut request = http::Request::new(Payload::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = target;
        let headers = self.headers.iter().filter(|(name, _)| *name != HOST);
        request.headers_mut().extend(headers.cloned());
        for (name, value) in self.repeated() {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
                request.headers_mut().insert(name, value);
            }
        }
        request
    }
}

/// Whether a header has a name and a value that a header may have; those that are constants do.
fn can_be_sent((name, value): &Header) -> bool {
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
    use http::header::{ACCEPT, AUTHORIZATION};

    #[test]
    fn a_request_is_written_with_one_host_and_one_of_each_header() {
        let mut headers = Headers::new();
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
        let request = Request { method: Method::POST, path, headers, repeated: Vec::new(), body };
        let mut request = request.repeating(repeated.into());
        let head = |request: &Request| {
            let mut bytes = Vec::new();
            request.write_head(&HeaderValue::from_static("host:1"), &mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            head(&request),
            "POST /mcp?x=1 HTTP/1.1\r\nhost: host:1\r\naccept: b\r\nauthorization: c\r\nmcp-method: m\r\ncontent-length: 5\r\n\r\n"
        );
        let beside = request.beside(Uri::from_static("https://host/mcp"));
        assert_eq!(beside.headers().len(), 3);
        (request.method, request.body) = (Method::GET, Bytes::new());
        assert!(!head(&request).contains("content-length"));
    }
}
