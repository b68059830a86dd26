//! What is sent to a server: one request of HTTP.

use std::io::Write as _;

use bytes::Bytes;
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
    /// All of it, or nothing.
    pub(super) body: Bytes,
}

impl Request {
    /// Writes its head as HTTP/1.1 has it, up to the empty line.
    pub(super) fn write_head(&self, host: &HeaderValue, bytes: &mut Vec<u8>) {
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| bytes.extend_from_slice(part));
        put(&[self.method.as_str().as_bytes(), b" ", self.path.as_str().as_bytes()]);
        put(&[b" HTTP/1.1\r\nhost: ", host.as_bytes(), b"\r\n"]);
        for (name, value) in self.headers.iter().filter(|(name, _)| *name != HOST) {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
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
        request
    }
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
        let mut request = Request { method: Method::POST, path, headers, body };
        let head = |request: &Request| {
            let mut bytes = Vec::new();
            request.write_head(&HeaderValue::from_static("host:1"), &mut bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            head(&request),
            "POST /mcp?x=1 HTTP/1.1\r\nhost: host:1\r\naccept: b\r\nauthorization: c\r\ncontent-length: 5\r\n\r\n"
        );
        let beside = request.beside(Uri::from_static("https://host/mcp"));
        assert_eq!(beside.headers().len(), 2);
        (request.method, request.body) = (Method::GET, Bytes::new());
        assert!(!head(&request).contains("content-length"));
    }
}
