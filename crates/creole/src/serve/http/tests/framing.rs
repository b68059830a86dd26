//! Requests that two parsers could read differently are rejected, and nothing behind them is executed.

use crate::serve::http::HttpLimits;
use crate::serve::http::tests::support::{post, start, status, with};

const HOST: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";

#[tokio::test]
async fn an_ambiguous_request_is_refused_and_the_connection_closed() {
    let server = start(HttpLimits::default()).await;
    let smuggled = post("smuggled");
    let cases = [
        format!("{HOST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{HOST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
        format!("{HOST}Content-Length: 0\r\nContent-Length: 44\r\n\r\n"),
        format!("{HOST}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd"),
        format!("{HOST}Content-Length: 4, 4\r\n\r\nabcd"),
        format!("{HOST}Content-Length: +4\r\n\r\nabcd"),
        format!("{HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        format!("{HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        format!("{HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
        format!("{HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        format!("{HOST}Content-Length : 4\r\n\r\nabcd"),
        format!("{HOST}X : y\r\n\r\n"),
        format!("{HOST}X: a\r\n folded\r\n\r\n"),
        format!("{HOST}X: a\r\n\tContent-Length: 4\r\n\r\nabcd"),
        format!("{HOST}X: a\0b\r\n\r\n"),
        format!("{HOST}X\0: b\r\n\r\n"),
        format!("{HOST}X: a\rb\r\n\r\n"),
        format!("{HOST}X: y\n\r\n"),
        format!("{HOST}X: y\r\n\n"),
        "POST /mcp HTTP/1.1\nHost: localhost\n\n".to_owned(),
        "POST /mcp HTTP/1.1\r\nHost: localhost\nContent-Length: 4\r\n\r\nabcd".to_owned(),
        "POST  /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "POST /mcp HTTP/1.1 \r\nHost: localhost\r\n\r\n".to_owned(),
        "POST /m cp HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        "POST /mcp HTTP/3.0\r\nHost: localhost\r\n\r\n".to_owned(),
        "POST /mcp\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{2}\r\n\r\n".to_owned(),
    ];
    for case in &cases {
        let response = server.exchange(format!("{case}{smuggled}")).await;
        assert_eq!(status(&response), 400, "{case:?}\n{response}");
        assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{case:?}\n{response}");
        assert_eq!(server.echo.seen(), [""; 0], "{case:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_chunked_body_is_refused_and_following_bytes_are_not_executed() {
    let server = start(HttpLimits::default()).await;
    let long = format!("3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(1 << 20));
    for body in ["3\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "x\r\n\r\n", "-1\r\n\r\n", &long]
    {
        let bytes = format!("{HOST}Transfer-Encoding: chunked\r\n\r\n{body}{}", post("smuggled"));
        let response = server.exchange(bytes).await;
        let shown = &body[..body.len().min(40)];
        assert_eq!(status(&response), 400, "{shown:?}\n{response}");
        assert_eq!(server.echo.seen(), [""; 0], "{shown:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_second_request_does_not_affect_the_first() {
    let server = start(HttpLimits::default()).await;
    let bad = format!("{HOST}Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd");
    let response = server.exchange(format!("{}{bad}{}", post("first"), post("third"))).await;
    assert_eq!(status(&response), 200);
    assert!(response.contains("first") && response.contains("HTTP/1.1 400"), "{response}");
    assert_eq!(server.echo.seen(), ["first"]);
    server.stop().await;
}

#[tokio::test]
async fn plain_requests_share_a_connection() {
    let server = start(HttpLimits::default()).await;
    let chunked = format!("{HOST}Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n");
    let last = with("Connection: close\r\n", "three");
    let response = server.exchange(format!("{}{chunked}\r\n{last}", post("one"))).await;
    assert_eq!(response.matches("HTTP/1.1 200").count(), 3, "{response}");
    assert_eq!(server.echo.seen(), ["one", "two", "three"]);
    server.stop().await;
}

#[tokio::test]
async fn heads_and_targets_have_their_size() {
    let server = start(HttpLimits::default()).await;
    let fields = |count: usize| (0..count).map(|n| format!("X-{n}: y\r\n")).collect::<String>();
    let value = |length: usize| format!("X: {}\r\n", "v".repeat(length));
    let cases = [
        (fields(90), 200),
        (fields(101), 431),
        (value(30_000), 200),
        (value(33_000), 431),
        (value(400_000), 431),
    ];
    for (headers, expected) in &cases {
        let response = server.exchange(with(&format!("{headers}Connection: close\r\n"), "x")).await;
        assert_eq!(status(&response), *expected, "{} bytes\n{response}", headers.len());
    }
    for (length, expected) in [(8_000, 200), (8_200, 414), (20_000, 414)] {
        let query = "q".repeat(length);
        let response = server
            .exchange(format!(
                "GET /mcp?{query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            ))
            .await;
        assert_eq!(status(&response), expected, "{length}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_breaks_the_endpoint_is_answered_and_the_next_one_too() {
    let server = start(HttpLimits::default()).await;
    let response = server.ask(with("X-Do: panic\r\n", "boom")).await;
    assert_eq!(status(&response), 500, "{response}");
    assert_eq!(status(&server.ask(post("fine")).await), 200);
    server.stop().await;
}

#[tokio::test]
async fn clients_that_leave_in_the_middle_do_no_harm() {
    let server = start(HttpLimits::default()).await;
    let whole = post("whole");
    for cut in [1, 10, 40, whole.len() - 1] {
        let mut stream = server.connect().await;
        tokio::io::AsyncWriteExt::write_all(&mut stream, &whole.as_bytes()[..cut]).await.unwrap();
        drop(stream);
    }
    assert_eq!(status(&server.ask(post("still here")).await), 200);
    assert_eq!(server.echo.seen(), ["still here"]);
    server.stop().await;
}
