//! Rows about oversized bodies, request smuggling and unsupported methods (A35, A36, A51, A53).

use creole_acceptance::http::{Connection, Request};

use crate::bench::{Bench, META};
use crate::{Era, Expected, row};

/// The maximum length of a body.
const LONGEST: usize = 1 << 20;

/// The maximum growth of memory for a rejected body, in bytes.
const MOST_GROWTH: u64 = 12 << 20;

/// A call, padded with spaces to a length.
fn padded(bench: &Bench, era: Era, length: usize) -> Request {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text",META}}"#;
    let meta = if era == Era::Alone { META } else { r#""_meta":{}"# };
    let mut body = call.replace("META", meta).into_bytes();
    body.resize(length, b' ');
    bench.post_bytes(era, &body)
}

#[test]
fn a_body_may_be_a_mebibyte_and_no_byte_more() {
    let bench = Bench::everything();
    for era in [Era::Alone, Era::Session] {
        let whole = padded(&bench, era, LONGEST);
        bench.check(vec![row("A35 the longest", whole, Expected::Result)]);
        let before = bench.server.weight();
        let longer = padded(&bench, era, LONGEST + 1).bytes(bench.server.address());
        let end = longer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        let mut connection = bench.connect();
        // Only the head: the response arrives although no byte of the body was sent.
        connection.write(&longer[..end]).unwrap();
        let response = connection.response().unwrap();
        assert_eq!(response.head.status, 413, "A35 {era:?}: {}", response.text());
        assert!(connection.is_ended(), "A35 {era:?}: the connection stays open");
        let grown = bench.server.weight().growth_since(before);
        assert!(grown < MOST_GROWTH, "A35: {grown} bytes");
        bench.canary("A35");
    }
}

#[test]
fn a_body_in_chunks_is_refused_when_it_is_too_long_and_not_later() {
    let bench = Bench::everything();
    for era in [Era::Alone, Era::Session] {
        let head = padded(&bench, era, 200).with("Transfer-Encoding", "chunked");
        let head = head.bytes(bench.server.address());
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        let before = bench.server.weight();
        let mut connection = bench.connect();
        connection.write(&head[..end]).unwrap();
        let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
        for _ in 0..LONGEST / 0x10000 {
            connection.write(&chunk).unwrap();
        }
        // One byte too many. The end of the body is never sent.
        connection.write(b"1\r\n \r\n").unwrap();
        let response = connection.response().unwrap();
        assert_eq!(response.head.status, 413, "A36 {era:?}: {}", response.text());
        assert!(connection.is_ended(), "A36 {era:?}: the connection stays open");
        let grown = bench.server.weight().growth_since(before);
        assert!(grown < MOST_GROWTH, "A36: {grown} bytes");
        bench.canary("A36");
    }
}

/// A call that creates a task, so that its execution can be detected.
fn task(text: &str) -> String {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_task","arguments":{"description":"TEXT"},META}}"#;
    call.replace("TEXT", text).replace("META", META)
}

/// The head of a request to the endpoint, without header fields about its body.
fn head(bench: &Bench) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: create_task\r\n",
        bench.server.address()
    )
}

/// A complete request to be smuggled behind another one.
fn hidden(bench: &Bench) -> String {
    let body = task("hidden");
    format!("{}Content-Length: {}\r\n\r\n{body}", head(bench), body.len())
}

#[test]
fn no_request_hides_in_another_one() {
    let bench = Bench::default();
    let (head, hidden) = (head(&bench), hidden(&bench));
    let body = task("open");
    let length = body.len();
    let chunk = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let long_extension = "x".repeat(1 << 20);
    let rows: Vec<(&str, String)> = vec![
        (
            "a length and chunks",
            format!("{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{hidden}"),
        ),
        (
            "two lengths",
            format!("{head}Content-Length: {length}\r\nContent-Length: 3\r\n\r\n{body}{hidden}"),
        ),
        ("two lengths in one", format!("{head}Content-Length: {length}, 3\r\n\r\n{body}{hidden}")),
        ("a length with a sign", format!("{head}Content-Length: +{length}\r\n\r\n{body}{hidden}")),
        ("a length that is none", format!("{head}Content-Length: 0x10\r\n\r\n{body}{hidden}")),
        (
            "a length that overflows",
            format!("{head}Content-Length: 99999999999999999999999\r\n\r\n{body}{hidden}"),
        ),
        ("another coding", format!("{head}Transfer-Encoding: xchunked\r\n\r\n{chunk}{hidden}")),
        (
            "a coding before chunked",
            format!("{head}Transfer-Encoding: gzip, chunked\r\n\r\n{chunk}{hidden}"),
        ),
        (
            "chunked twice",
            format!(
                "{head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}{hidden}"
            ),
        ),
        (
            "a space before the colon",
            format!("{head}Content-Length : {length}\r\n\r\n{body}{hidden}"),
        ),
        (
            "bare line feeds",
            format!("{head}Content-Length: {length}\r\n\r\n{body}").replace("\r\n", "\n") + &hidden,
        ),
        ("a NUL", format!("{head}X: a\0b\r\nContent-Length: {length}\r\n\r\n{body}{hidden}")),
        (
            "a folded line",
            format!("{head}X: a\r\n b\r\nContent-Length: {length}\r\n\r\n{body}{hidden}"),
        ),
        ("a carriage return alone", format!("{head}X: a\rContent-Length: 3\r\n\r\n{body}{hidden}")),
        (
            "a chunk's size with a sign",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n+{chunk}{hidden}"),
        ),
        (
            "a chunk's long extension",
            format!(
                "{head}Transfer-Encoding: chunked\r\n\r\n{length:x};{long_extension}\r\n{body}\r\n0\r\n\r\n{hidden}"
            ),
        ),
    ];
    for (name, bytes) in rows {
        let mut connection = bench.connect();
        connection.write(bytes.as_bytes()).unwrap();
        assert_refused(name, &mut connection);
        bench.canary(name);
    }
    let listed = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_tasks","arguments":{},META}}"#;
    let listed = bench.send(&bench.post(Era::Alone, listed));
    assert!(!listed.text().contains("hidden"), "A51: {}", listed.text());
    bench.weigh();
}

/// Asserts that the server sends one response, 400 or a status for excessive length, and closes the connection.
#[track_caller]
fn assert_refused(name: &str, connection: &mut Connection) {
    match connection.response() {
        Ok(response) => {
            let status = response.head.status;
            assert!(matches!(status, 400 | 413 | 431), "A51 {name}: {status} {}", response.text());
        }
        // An oversized request may be cut off before the response can be read.
        Err(error) => assert!(name.contains("long"), "A51 {name}: {error}"),
    }
    assert!(connection.is_ended(), "A51 {name}: the connection stays open");
}

#[test]
fn the_target_may_not_name_another_host() {
    let bench = Bench::everything();
    let address = bench.server.address();
    for target in ["http://evil.example/mcp", "http://evil.example:80/health"] {
        let request = Request::new("GET", target).with("Host", &address.to_string());
        let status = bench.send(&request).head.status;
        assert!(matches!(status, 400 | 403), "A51 {target}: {status}");
        bench.canary("A51");
    }
}

#[test]
fn other_methods_are_not_allowed() {
    let bench = Bench::everything();
    for method in ["PUT", "PATCH", "TRACE", "OPTIONS", "HEAD", "PROPFIND"] {
        let mut connection = bench.connect();
        connection.write(&Request::new(method, "/mcp").bytes(bench.server.address())).unwrap();
        let head = connection.head().unwrap();
        assert_eq!(head.status, 405, "A53 {method}");
        let allowed = head.field("allow").unwrap_or_default();
        for name in ["GET", "POST", "DELETE"] {
            assert!(allowed.contains(name), "A53 {method}: {allowed}");
        }
        bench.canary("A53");
    }
    let events = |request: Request| request.with("Accept", "text/event-stream");
    bench.check(vec![
        row("A53", events(Request::new("GET", "/mcp")), Expected::Status(400)),
        row("A53", Request::get("no-such-session"), Expected::Status(404)),
        row("A53", Request::new("DELETE", "/mcp"), Expected::Status(400)),
        row("A53", Request::delete("no-such-session"), Expected::Status(404)),
        row(
            "A53",
            Request::get(&bench.session).replacing("Accept", "application/json"),
            Expected::Status(406),
        ),
        row("path", Request::new("POST", "/mcp/"), Expected::Status(404)),
        row("path", Request::new("POST", "/MCP"), Expected::Status(404)),
        row("path", Request::new("POST", "//mcp"), Expected::Status(404)),
        row("path", Request::new("GET", "/"), Expected::Status(404)),
        row(
            "target",
            Request::new("GET", &format!("/mcp?{}", "x".repeat(9000))),
            Expected::Status(414),
        ),
        row(
            "head",
            Request::new("GET", "/mcp").with("X", &"x".repeat(40_000)),
            Expected::Status(431),
        ),
    ]);
    let many = (0..120).map(|number| (format!("X-{number}"), "1".to_owned()));
    bench.check(vec![row(
        "fields",
        Request::new("GET", "/mcp").with_all(many),
        Expected::Status(431),
    )]);
}
