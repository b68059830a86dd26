//! The head of a response that is written without hyper, in the way that hyper writes heads.

use std::time::SystemTime;

use http::Version;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::response::Parts;
use httpdate::HttpDate;

/// The head of the last response of a connection, whose length nobody knows: it comes in chunks, which
/// HTTP/1.0 does not have, so there it ends with the connection (RFC 9112, 6.3 and 7.1).
pub(super) fn of_last(version: Version, parts: &Parts) -> Vec<u8> {
    let is_old = version == Version::HTTP_10;
    let reason = parts.status.canonical_reason().unwrap_or("unknown");
    let minor = if is_old { '0' } else { '1' };
    let mut head = format!("HTTP/1.{minor} {} {reason}\r\n", parts.status.as_u16()).into_bytes();
    for (name, value) in &parts.headers {
        if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, DATE].contains(name) {
            continue;
        }
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"connection: close\r\n");
    if !is_old {
        head.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    let date = HttpDate::from(SystemTime::now());
    head.extend_from_slice(format!("date: {date}\r\n\r\n").as_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;

    fn head(version: Version) -> String {
        let response = Response::builder()
            .status(200)
            .header("content-type", "text/event-stream")
            .header("connection", "keep-alive")
            .header("content-length", "5")
            .header("vary", "a")
            .header("vary", "b")
            .body(())
            .unwrap();
        String::from_utf8(of_last(version, &response.into_parts().0)).unwrap()
    }

    #[test]
    fn a_head_tells_that_it_is_the_last_and_how_its_body_ends() {
        let written = head(Version::HTTP_11);
        let (first, date) = written.split_once("date: ").unwrap();
        assert_eq!(
            first,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nvary: a\r\nvary: b\r\n\
             connection: close\r\ntransfer-encoding: chunked\r\n"
        );
        assert!(date.ends_with(" GMT\r\n\r\n") && date.len() == 33, "{date:?}");
        let old = head(Version::HTTP_10);
        assert!(old.starts_with("HTTP/1.0 200 OK\r\n"), "{old}");
        assert!(old.contains("connection: close\r\ndate: "), "{old}");
    }
}
