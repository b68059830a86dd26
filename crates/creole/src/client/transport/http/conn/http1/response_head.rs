//! Parses the head of an HTTP/1 response: its fields, the framing of its body, and whether another request may follow.

use std::io;
use std::mem::MaybeUninit;

use http::StatusCode;
use httparse::{Header, ParserConfig, Status};

use crate::client::transport::http::conn::http1::BodyFraming;
use crate::client::transport::http::conn::response::ResponseHead;

/// Maximum number of headers of a response.
const MAX_HEADERS: usize = 100;

/// The parsed head of a response.
#[derive(Debug)]
pub(crate) struct ParsedHead {
    pub(crate) head: ResponseHead,
    pub(crate) framing: BodyFraming,
    /// Whether no other request can follow on its connection.
    pub(crate) is_last: bool,
}

/// The headers that determine the framing.
#[derive(Default)]
struct FramingHeaders {
    length: Option<u64>,
    is_chunked: bool,
    closes: bool,
}

/// Parses the head of a response and returns it with its length; `None` while it is incomplete. Interim responses are
/// skipped.
///
/// # Errors
/// When it is malformed, or its framing is contradictory.
pub(crate) fn parse_head(bytes: &[u8]) -> io::Result<Option<(ParsedHead, usize)>> {
    let mut skipped = 0;
    loop {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut []);
        let read = ParserConfig::default().parse_response_with_uninit_headers(
            &mut parsed,
            &bytes[skipped..],
            &mut headers,
        );
        let Status::Complete(length) = read.map_err(|_| malformed())? else { return Ok(None) };
        let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or_else(malformed)?;
        skipped += length;
        match status {
            // No request offers another protocol.
            StatusCode::SWITCHING_PROTOCOLS => return Err(malformed()),
            _ if status.is_informational() => {}
            _ => {
                let response = build_head(status, parsed.version == Some(1), parsed.headers)?;
                return Ok(Some((response, skipped)));
            }
        }
    }
}

fn build_head(
    status: StatusCode,
    is_current: bool,
    headers: &[Header<'_>],
) -> io::Result<ParsedHead> {
    let mut manner = FramingHeaders::default();
    for header in headers {
        manner.record_header(header).ok_or_else(malformed)?;
    }
    let has_none = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let rest = match manner {
        _ if has_none => BodyFraming::EMPTY,
        FramingHeaders { is_chunked: true, .. } if !is_current => return Err(malformed()),
        FramingHeaders { is_chunked: true, .. } => BodyFraming::CHUNKED,
        FramingHeaders { length: Some(length), .. } => BodyFraming::Length(length),
        _ => BodyFraming::UntilClosed,
    };
    // A response with both a length and chunks may be an attempt at smuggling (RFC 9112, 6.3).
    let is_doubtful = manner.is_chunked && manner.length.is_some();
    let is_last = manner.closes || !is_current || is_doubtful || rest == BodyFraming::UntilClosed;
    let head = ResponseHead::new(status, headers.iter().map(|header| (header.name, header.value)));
    Ok(ParsedHead { head, framing: rest, is_last })
}

impl FramingHeaders {
    /// Records a header that affects the framing; `None` if it is not supported.
    fn record_header(&mut self, header: &Header<'_>) -> Option<()> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let length = length(header.value)?;
            // A repeated length must be the same.
            (*self.length.get_or_insert(length) == length).then_some(())?;
        } else if is("transfer-encoding") {
            // No request accepts any other transfer coding.
            let is_known = header.value.trim_ascii().eq_ignore_ascii_case(b"chunked");
            (is_known && !self.is_chunked).then_some(())?;
            self.is_chunked = true;
        } else if is("connection") {
            let mut words = header.value.split(|byte| *byte == b',');
            self.closes |= words.any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"));
        }
        Some(())
    }
}

/// A length, which consists of digits only.
fn length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit);
    str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the head of the response is malformed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &str) -> Option<(BodyFraming, bool)> {
        let text = format!("HTTP/1.1 200 OK\r\n{headers}\r\nx");
        let (response, length) = parse_head(text.as_bytes()).ok()?.unwrap();
        assert_eq!(length, text.len() - 1);
        Some((response.framing, response.is_last))
    }

    #[test]
    fn the_headers_determine_the_end_of_a_body() {
        let rows = [
            ("Content-Length: 5\r\n", BodyFraming::Length(5), false),
            ("content-length: 5\r\nContent-Length: 5\r\n", BodyFraming::Length(5), false),
            ("Transfer-Encoding: Chunked\r\n", BodyFraming::CHUNKED, false),
            ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", BodyFraming::CHUNKED, true),
            ("Content-Length: 5\r\nConnection: x, Close\r\n", BodyFraming::Length(5), true),
            ("", BodyFraming::UntilClosed, true),
        ];
        for (headers, rest, is_last) in rows {
            assert_eq!(of(headers), Some((rest, is_last)), "{headers}");
        }
    }

    #[test]
    fn a_head_that_two_readers_could_read_differently_is_none() {
        let rows = [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length : 5\r\n",
            " a: b\r\n",
        ];
        for headers in rows {
            assert_eq!(of(headers), None, "{headers}");
        }
        let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(parse_head(old.as_bytes()).is_err());
        assert!(parse_head(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").is_err());
        assert!(parse_head(b"HTTP/2 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn interim_responses_are_skipped() {
        let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
        let whole = format!("{early}HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
        for end in 0..whole.len() {
            assert!(parse_head(&whole.as_bytes()[..end]).unwrap().is_none(), "{end}");
        }
        let (response, length) = parse_head(whole.as_bytes()).unwrap().unwrap();
        assert_eq!(
            (response.framing, response.is_last, length),
            (BodyFraming::EMPTY, false, whole.len())
        );
        let old = parse_head(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap().unwrap();
        assert!(old.0.is_last, "a connection of HTTP/1.0 carries one request");
    }
}
