//! Writes the head of a response in the form in which hyper writes heads.

use std::io::Write;

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::response::Parts;
use http::{StatusCode, Version};

use crate::serve::http::conn::http1::date;

/// How a body ends (RFC 9112, 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseFraming {
    /// After this many bytes.
    Length(u64),
    /// With an empty chunk.
    Chunks,
    /// With the connection, for clients of HTTP/1.0, which has no chunks.
    Close,
}

impl ResponseFraming {
    /// The framing of a body whose length may be known.
    pub(crate) fn of(version: Version, length: Option<u64>) -> Self {
        match length {
            Some(length) => Self::Length(length),
            None if version == Version::HTTP_10 => Self::Close,
            None => Self::Chunks,
        }
    }
}

/// Writes the head of a response; the last one of its connection has `Connection: close`.
pub(crate) fn write_head(
    out: &mut Vec<u8>,
    version: Version,
    parts: &Parts,
    framing: ResponseFraming,
    is_last: bool,
) {
    let minor = if version == Version::HTTP_10 { b"0" } else { b"1" };
    let reason = parts.status.canonical_reason().unwrap_or("unknown");
    let first = [b"HTTP/1.", &minor[..], b" ", parts.status.as_str().as_bytes(), b" "];
    first.iter().for_each(|piece| out.extend_from_slice(piece));
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in &parts.headers {
        if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, DATE].contains(name) {
            continue;
        }
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if is_last {
        out.extend_from_slice(b"connection: close\r\n");
    }
    match framing {
        // A response that has no body by its status has no length either (RFC 9110, 8.6).
        ResponseFraming::Length(0) if has_no_body(parts.status) => {}
        ResponseFraming::Length(length) => {
            // Writing to a vector cannot fail.
            let _ = write!(out, "content-length: {length}\r\n");
        }
        ResponseFraming::Chunks => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        ResponseFraming::Close => {}
    }
    date::write(out);
    out.extend_from_slice(b"\r\n");
}

fn has_no_body(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;

    fn head(version: Version, status: u16, framing: ResponseFraming, is_last: bool) -> String {
        let response = Response::builder()
            .status(status)
            .header("content-type", "text/event-stream")
            .header("connection", "keep-alive")
            .header("content-length", "5")
            .header("vary", "a")
            .header("vary", "b")
            .body(())
            .unwrap();
        let mut out = Vec::new();
        write_head(&mut out, version, &response.into_parts().0, framing, is_last);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_head_says_whether_it_is_the_last_and_how_its_body_ends() {
        let text = head(Version::HTTP_11, 200, ResponseFraming::of(Version::HTTP_11, None), true);
        let (first, date) = text.split_once("date: ").unwrap();
        assert_eq!(
            first,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nvary: a\r\nvary: b\r\n\
             connection: close\r\ntransfer-encoding: chunked\r\n"
        );
        assert!(date.ends_with(" GMT\r\n\r\n") && date.len() == 33, "{date:?}");
        let old = head(Version::HTTP_10, 200, ResponseFraming::of(Version::HTTP_10, None), true);
        assert!(old.starts_with("HTTP/1.0 200 OK\r\n"), "{old}");
        assert!(old.contains("connection: close\r\ndate: "), "{old}");
    }

    #[test]
    fn a_content_length_is_sent_unless_the_status_forbids_a_body() {
        let known = |length| ResponseFraming::of(Version::HTTP_11, Some(length));
        let sized = head(Version::HTTP_11, 404, known(12), false);
        assert!(sized.starts_with("HTTP/1.1 404 Not Found\r\n"), "{sized}");
        assert!(sized.contains("vary: b\r\ncontent-length: 12\r\ndate: "), "{sized}");
        assert!(head(Version::HTTP_11, 202, known(0), false).contains("content-length: 0\r\n"));
        assert!(!head(Version::HTTP_11, 204, known(0), false).contains("content-length"));
    }
}
