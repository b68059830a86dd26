//! Parses the head of a request that qualifies for the fast path: an HTTP/1.1 POST with a content length and no header
//! that needs special rules.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::Method;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HeaderName, TRANSFER_ENCODING, UPGRADE};
use httparse::{Header, Status};

use crate::serve::http::web::request::RequestHead;

/// Maximum number of headers on the fast path.
const MAX_HEADERS: usize = 48;

/// The kind of the bytes that start a connection or follow a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FastPathHead {
    /// The head of a qualifying request: where it ends, the length of its body, and whether it closes the connection.
    Request { end: usize, length: u64, closes: bool },
    /// A part of a head.
    Incomplete,
    /// Anything else, which hyper handles.
    Unsupported,
}

/// Parses the bytes that were read. The head of a qualifying request replaces the previous one and reuses its memory.
pub(crate) fn parse_head(bytes: &Bytes, head: &mut RequestHead) -> FastPathHead {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(Status::Complete(end)) => match take_head(bytes, &parsed, head) {
            Some((length, closes)) => FastPathHead::Request { end, length, closes },
            None => FastPathHead::Unsupported,
        },
        Ok(Status::Partial) => FastPathHead::Incomplete,
        Err(_) => FastPathHead::Unsupported,
    }
}

/// Takes a head if it qualifies; returns the length of its body, and whether it is the last request.
fn take_head(
    bytes: &Bytes,
    parsed: &httparse::Request<'_, '_>,
    head: &mut RequestHead,
) -> Option<(u64, bool)> {
    if (parsed.method, parsed.version) != (Some("POST"), Some(1)) {
        return None;
    }
    let target = parsed.path.filter(|target| target.starts_with('/'))?;
    if head.uri.path_and_query().is_none_or(|last| last.as_str() != target) {
        head.uri = target.parse().ok()?;
    }
    head.method = Method::POST;
    let lines = head.headers.set_raw(bytes.clone());
    let (mut length, mut closes) = (None, false);
    for Header { name, value } in parsed.headers.iter() {
        let is = |other: HeaderName| name.eq_ignore_ascii_case(other.as_str());
        if is(CONTENT_LENGTH) {
            let is_first = length.replace(parse_length(value)?).is_none();
            is_first.then_some(())?;
        }
        // These headers affect how requests are read.
        if is(CONNECTION) {
            let is_last = value.eq_ignore_ascii_case(b"close");
            (is_last || value.eq_ignore_ascii_case(b"keep-alive")).then_some(())?;
            closes |= is_last;
        }
        if is(TRANSFER_ENCODING) || is(EXPECT) || is(UPGRADE) {
            return None;
        }
        lines.add(name.as_bytes(), value);
    }
    Some((length?, closes))
}

/// A length, which consists of digits only.
fn parse_length(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (FastPathHead, RequestHead) {
        let mut head = RequestHead::default();
        let found = parse_head(&Bytes::copy_from_slice(text.as_bytes()), &mut head);
        (found, head)
    }

    fn with(lines: &str) -> String {
        format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n")
    }

    #[test]
    fn a_post_with_a_length_is_read() {
        let text =
            with("Content-Length: 4\r\nAccept: a\r\nAccept: b\r\nConnection: Keep-Alive\r\n");
        let (found, head) = found(&format!("{text}bodyPOST"));
        assert_eq!(found, FastPathHead::Request { end: text.len(), length: 4, closes: false });
        assert_eq!((head.method, head.uri.path()), (Method::POST, "/mcp"));
        assert_eq!(head.headers.get_all("accept").count(), 2);
        assert_eq!(head.headers.get("host"), Some(&b"localhost"[..]));
    }

    #[test]
    fn a_request_may_be_the_last_of_its_connection() {
        let text = with("Content-Length: 0\r\nConnection: Close\r\n");
        let last = FastPathHead::Request { end: text.len(), length: 0, closes: true };
        assert_eq!(found(&text).0, last);
    }

    #[test]
    fn nothing_of_a_request_is_left_in_the_next() {
        let (_, mut head) = found(&with("Content-Length: 4\r\nAuthorization: a\r\n"));
        let next = "POST /mcp?a HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
        let found = parse_head(&Bytes::from_static(next.as_bytes()), &mut head);
        assert_eq!(found, FastPathHead::Request { end: next.len(), length: 0, closes: false });
        assert_eq!((head.uri.query(), head.headers.count()), (Some("a"), 1));
    }

    #[test]
    fn anything_else_is_left_to_others() {
        for lines in [
            "",
            "Content-Length: 4\r\nContent-Length: 4\r\n",
            "Content-Length: +4\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 4\r\nExpect: 100-continue\r\n",
            "Content-Length: 4\r\nUpgrade: h2c\r\n",
            "Content-Length: 4\r\nConnection: upgrade\r\n",
            "Content-Length: 4\r\nConnection: keep-alive, close\r\n",
            "Content-Length: 4\r\nX: a\0b\r\n",
            "Content-Length : 4\r\n",
            &"X: y\r\n".repeat(60),
        ] {
            assert!(found(&with(lines)).0 == FastPathHead::Unsupported, "{lines:?}");
        }
        for first in
            ["GET / HTTP/1.1", "POST / HTTP/1.0", "POST http://a/ HTTP/1.1", "POST * HTTP/1.1"]
        {
            let text = format!("{first}\r\nContent-Length: 0\r\n\r\n");
            assert!(found(&text).0 == FastPathHead::Unsupported, "{first}");
        }
    }

    #[test]
    fn what_is_not_whole_may_become_a_request() {
        let text = with("Content-Length: 4\r\n");
        for cut in 1..text.len() {
            assert!(found(&text[..cut]).0 == FastPathHead::Incomplete, "{cut}");
        }
    }
}
