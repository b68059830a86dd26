//! Tests of accepted and rejected bytes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

/// Enough for all heads except those that must be too long.
const LONGEST_HEAD: usize = 32 * 1024;

/// The result of the guard, and whether it is between two requests afterwards.
fn seen(bytes: &[u8]) -> Result<bool, SmugglingErrorKind> {
    let mut guard = SmugglingGuard::new(LONGEST_HEAD);
    guard.check(bytes).map_err(|refused| refused.kind)?;
    Ok(guard.state == RequestState::BetweenRequests)
}

fn head(headers: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

#[test]
fn plain_requests_pass_one_after_the_other() {
    let post = head("Content-Length: 3\r\n") + "abc";
    let chunked =
        head("Transfer-Encoding: Chunked\r\n") + "3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n";
    let get = "\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let all = format!("{post}{get}{chunked}{get}{post}");
    assert_eq!(seen(all.as_bytes()), Ok(true));
    assert_eq!(seen(&all.as_bytes()[..all.len() - 1]), Ok(false));
}

#[test]
fn a_message_that_two_parsers_could_read_differently_is_refused() {
    let cases = [
        (
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            SmugglingErrorKind::LengthAndCoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            SmugglingErrorKind::LengthAndCoding,
        ),
        ("Content-Length: 3\r\nContent-Length: 3\r\n", SmugglingErrorKind::Length),
        ("Content-Length: 3\r\ncontent-length: 4\r\n", SmugglingErrorKind::Length),
        ("Content-Length: 3, 3\r\n", SmugglingErrorKind::Length),
        ("Content-Length: +3\r\n", SmugglingErrorKind::Length),
        ("Content-Length: 0x3\r\n", SmugglingErrorKind::Length),
        ("Content-Length:\r\n", SmugglingErrorKind::Length),
        ("Content-Length: 99999999999999999999\r\n", SmugglingErrorKind::Length),
        ("Content-Length : 3\r\nContent-Length: 3\r\n", SmugglingErrorKind::Length),
        ("Transfer-Encoding: xchunked\r\n", SmugglingErrorKind::Coding),
        ("Transfer-Encoding: gzip, chunked\r\n", SmugglingErrorKind::Coding),
        ("Transfer-Encoding: chunked, identity\r\n", SmugglingErrorKind::Coding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            SmugglingErrorKind::Coding,
        ),
        ("Transfer-Encoding:\r\n", SmugglingErrorKind::Coding),
        ("X: y\n", SmugglingErrorKind::BareLineFeed),
        ("X: y\r\n continued\r\n", SmugglingErrorKind::ContinuedHeader),
        ("X: y\r\n\tcontinued\r\n", SmugglingErrorKind::ContinuedHeader),
    ];
    for (headers, kind) in cases {
        assert_eq!(seen(head(headers).as_bytes()), Err(kind), "{headers:?}");
    }
    assert_eq!(seen(b"POST / HTTP/1.1\nHost: x\r\n\r\n"), Err(SmugglingErrorKind::BareLineFeed));
    let padded = format!("Content-Length: {}12\r\n", " ".repeat(MAX_LINE));
    assert_eq!(seen(head(&padded).as_bytes()), Err(SmugglingErrorKind::Length));
}

#[test]
fn a_chunk_has_a_size_and_an_end() {
    let chunked = head("Transfer-Encoding: chunked\r\n");
    for (body, kind) in [
        ("\r\n", SmugglingErrorKind::Chunk),
        ("x\r\n", SmugglingErrorKind::Chunk),
        ("-1\r\n", SmugglingErrorKind::Chunk),
        ("0x3\r\nabc\r\n", SmugglingErrorKind::Chunk),
        ("3\r\nabcd\r\n", SmugglingErrorKind::Chunk),
        ("3\r\nabc\n", SmugglingErrorKind::Chunk),
        ("1234567890123456\r\n", SmugglingErrorKind::Chunk),
        ("3\nabc\r\n", SmugglingErrorKind::BareLineFeed),
        ("3;x\nabc\r\n", SmugglingErrorKind::BareLineFeed),
        ("0\r\nX: y\n\r\n", SmugglingErrorKind::BareLineFeed),
    ] {
        assert_eq!(seen(format!("{chunked}{body}").as_bytes()), Err(kind), "{body:?}");
    }
}

#[test]
fn bytes_before_the_flaw_are_counted() {
    let first = head("Content-Length: 3\r\n") + "abc";
    let bytes = format!("{first}GET / HTTP/1.1\n");
    let refused = SmugglingGuard::new(LONGEST_HEAD).check(bytes.as_bytes()).unwrap_err();
    assert_eq!(refused.kind, SmugglingErrorKind::BareLineFeed);
    assert!((first.len()..bytes.len()).contains(&refused.at));
}

#[test]
fn the_other_protocol_passes_as_it_is() {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend_from_slice(b"\0\n\n\nContent-Length: x\r\n");
    assert!(seen(&bytes).is_ok());
}

#[test]
fn a_head_is_distinguished_from_a_body() {
    let mut guard = SmugglingGuard::new(LONGEST_HEAD);
    assert!(!guard.is_inside_head());
    guard.check(b"\r\n").unwrap();
    assert!(!guard.is_inside_head());
    guard.check(b"G").unwrap();
    assert!(guard.is_inside_head());
    guard.check(b"ET / HTTP/1.1\r\nContent-Length: 1\r").unwrap();
    assert!(guard.is_inside_head());
    guard.check(b"\n\r\n").unwrap();
    assert!(!guard.is_inside_head());
    guard.check(b"x").unwrap();
    assert!(!guard.is_inside_head());
}

/// Relevant lines, and parts of them.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = proptest::sample::select(
        &[
            "POST /mcp HTTP/1.1\r\n",
            "Host: localhost\r\n",
            "Content-Length: 3\r\n",
            "content-length:  12  \r\n",
            "Transfer-Encoding: chunked\r\n",
            "transfer-encoding: x\r\n",
            "\r\n",
            "\n",
            "3\r\nabc\r\n",
            "0\r\n",
            "abc",
            ";x=y",
            "                                                  ",
            "\t",
            "c",
            ":",
        ][..],
    );
    proptest::collection::vec(piece, 0..24).prop_map(|all| all.concat().into_bytes())
}

proptest! {
    /// The division into chunks does not change the result.
    #[test]
    fn any_cutting_of_the_bytes_gives_the_same_verdict(bytes in pieces(), splits in proptest::collection::vec(1..9_usize, 1..40)) {
        let whole = seen(&bytes);
        let mut guard = SmugglingGuard::new(LONGEST_HEAD);
        let mut rest = &bytes[..];
        let mut parts = Ok(());
        for cut in splits.iter().cycle() {
            if rest.is_empty() || parts.is_err() {
                break;
            }
            let (part, tail) = rest.split_at((*cut).min(rest.len()));
            parts = guard.check(part).map_err(|refused| refused.kind);
            rest = tail;
        }
        prop_assert_eq!(parts.map(|()| guard.state == RequestState::BetweenRequests), whole);
    }

    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = seen(&bytes);
    }
}

/// The number of accepted bytes, in chunks of this size, and the error of the rest.
fn passed(bytes: &[u8], max_length: usize, step: usize) -> (usize, Option<SmugglingErrorKind>) {
    let mut guard = SmugglingGuard::new(max_length);
    let mut passed = 0;
    for piece in bytes.chunks(step) {
        match guard.check(piece) {
            Ok(()) => passed += piece.len(),
            Err(refused) => return (passed + refused.at, Some(refused.kind)),
        }
    }
    (passed, None)
}

#[test]
fn a_head_may_be_as_long_as_its_limit_in_every_split() {
    let text = head("A: b\r\nContent-Length: 3\r\n");
    let all = format!("{text}abc{text}abc");
    let request_line = text.find("\r\n").unwrap();
    for step in 1..all.len() {
        assert_eq!(passed(all.as_bytes(), text.len(), step), (all.len(), None), "{step}");
        for max_length in 1..text.len() {
            let (offset, kind) = passed(all.as_bytes(), max_length, step);
            let is_first = max_length < request_line + 2;
            let expected = if is_first {
                SmugglingErrorKind::LongRequestLine
            } else {
                SmugglingErrorKind::LongHead
            };
            assert_eq!(kind, Some(expected), "{max_length} {step}");
            assert!(
                offset <= max_length && offset + 1 >= max_length,
                "{max_length} {step} {offset}"
            );
            assert_ne!(
                text.as_bytes()[offset - usize::from(offset > 0)],
                b'\r',
                "{max_length} {step}"
            );
        }
    }
}
