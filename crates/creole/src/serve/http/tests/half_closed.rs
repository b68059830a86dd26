//! A client that closes its sending side and still reads gets its response; a disconnect is detected.

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::serve::http::HttpLimits;
use crate::serve::http::tests::support::{
    PATIENCE, TestHttpServer, post, start, status, to_end, with,
};

/// Sends all of this, and the end.
async fn sent(server: &TestHttpServer, bytes: &str) -> TcpStream {
    let mut stream = server.connect().await;
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    stream
}

/// A request that only hyper reads.
fn chunked(headers: &str, body: &str) -> String {
    let (head, length) = ("POST /mcp HTTP/1.1\r\nHost: localhost\r\n", body.len());
    format!("{head}{headers}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n")
}

/// The final response, behind interim responses.
fn last(answer: &str) -> &str {
    let mut rest = answer;
    while let Some(behind) = rest.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n") {
        rest = behind;
    }
    rest
}

#[tokio::test]
async fn every_request_is_answered_although_its_client_has_closed_its_side() {
    let server = start(HttpLimits::default()).await;
    let get = |rest: &str| format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{rest}\r\n");
    let requests = [
        get("Connection: close\r\n"),
        get(""),
        get("").replace("HTTP/1.1", "HTTP/1.0"),
        post("hello"),
        with("Connection: close\r\n", "hello"),
        chunked("", "hello"),
        with("X-Do: large\r\n", "hello"),
        format!("{}{}", post("one"), get("")),
    ];
    for request in requests {
        // The race does not occur each time.
        for _ in 0..20 {
            let response = to_end(&mut sent(&server, &request).await).await;
            assert_eq!(status(last(&response)), 200, "{request}\n{response:.300}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn a_slow_response_reaches_a_client_that_closed_its_write_side() {
    let server = start(HttpLimits::default()).await;
    for request in [
        with("X-Do: wait\r\n", "waits"),
        with("X-Do: wait\r\nConnection: close\r\n", "waits"),
        chunked("X-Do: wait\r\n", "waits"),
    ] {
        let mut stream = sent(&server, &request).await;
        // An interim response shows that the end was seen.
        let mut first = [0; 12];
        let read = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first);
        timeout(PATIENCE, read).await.expect("something is written").unwrap();
        assert_eq!(&first, b"HTTP/1.1 100");
        server.echo.release.notify_one();
        let rest = to_end(&mut stream).await;
        let response = format!("HTTP/1.1 100{rest}");
        assert_eq!(status(last(&response)), 200, "{request}\n{response}");
        assert!(response.contains("waits"), "{response}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_interim_answer() {
    let server = start(HttpLimits::default()).await;
    let request = with("X-Do: wait\r\n", "waits").replace("HTTP/1.1", "HTTP/1.0");
    let mut stream = sent(&server, &request).await;
    while server.echo.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    server.echo.release.notify_one();
    let response = to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.0 200"), "{response}");
    server.stop().await;
}

#[tokio::test]
async fn a_stream_continues_for_a_client_that_closed_its_write_side() {
    let server = start(HttpLimits::default()).await;
    for request in [with("X-Do: last\r\n", "listen"), chunked("X-Do: last\r\n", "listen")] {
        let mut stream = sent(&server, &request).await;
        let sender = server.echo.begun().await;
        for part in ["data: one\n\n", "data: two\n\n"] {
            sender.send(Bytes::from_static(part.as_bytes())).await.unwrap();
        }
        drop(sender);
        let response = to_end(&mut stream).await;
        let answer = last(&response);
        assert_eq!(status(answer), 200, "{answer}");
        assert!(answer.contains("data: one\n\n") && answer.contains("data: two\n\n"), "{answer}");
        assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_disconnects_is_detected_in_every_state() {
    let server = start(HttpLimits::default()).await;
    for request in [with("X-Do: wait\r\n", "waits"), chunked("X-Do: wait\r\n", "waits")] {
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        drop(stream);
        timeout(PATIENCE, server.echo.gone.notified()).await.expect("it is noticed");
    }
    for request in [with("X-Do: last\r\n", "listen"), chunked("X-Do: last\r\n", "listen")] {
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let sender = server.echo.begun().await;
        drop(stream);
        timeout(PATIENCE, sender.closed()).await.expect("it is noticed");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_ends_early_is_refused() {
    let server = start(HttpLimits::default()).await;
    for whole in [post("hello"), chunked("", "hello")] {
        let request = &whole[..whole.len() - 1];
        let response = to_end(&mut sent(&server, request).await).await;
        assert_eq!(status(&response), 400, "{request}\n{response}");
    }
    assert_eq!(server.echo.seen(), [""; 0]);
    server.stop().await;
}
