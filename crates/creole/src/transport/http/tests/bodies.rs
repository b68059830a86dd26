//! Bodies are read as far as their limits go, and no further.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::super::Limits;
use super::super::body::BodyLimits;
use super::support::{Echo, one, post, start, start_with, status, to_end};

const MEBIBYTE: usize = 1024 * 1024;
const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";

#[tokio::test]
async fn the_largest_body_is_read_and_one_byte_more_is_refused_unread() {
    let server = start(Limits::default()).await;
    let answer = server.ask(post(&"x".repeat(MEBIBYTE))).await;
    assert_eq!(status(&answer), 200);
    // Not one byte of the body is sent: the answer comes all the same, and then the end.
    let answer = server.exchange(format!("{HEAD}Content-Length: {}\r\n\r\n", MEBIBYTE + 1)).await;
    assert_eq!(status(&answer), 413, "{answer}");
    assert!(answer.contains("1048576"), "{answer}");
    assert_eq!(server.echo.seen().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_on_reads_the_refusal_nevertheless() {
    let server = start(Limits::default()).await;
    let mut stream = server.connect().await;
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", 10 * MEBIBYTE);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; 300_000]).await.unwrap();
    let answer = to_end(&mut stream).await;
    assert_eq!(status(&answer), 413, "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn chunks_are_counted_as_they_come() {
    let server = start(Limits::default()).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    let answer = server.ask(format!("{head}{}0\r\n\r\n", chunk.repeat(16))).await;
    assert_eq!(status(&answer), 200);
    let answer = server.exchange(format!("{head}{}1\r\nx\r\n", chunk.repeat(16))).await;
    assert_eq!(status(&answer), 413, "{answer}");
    assert_eq!(server.echo.seen().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_waits_for_permission_gets_it_or_the_refusal() {
    let server = start(Limits::default()).await;
    let expect = format!("{HEAD}Expect: 100-continue\r\n");
    let mut stream = server.connect().await;
    stream.write_all(format!("{expect}Content-Length: 2\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 100);
    stream.write_all(b"hi").await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 200);
    let answer = server.exchange(format!("{expect}Content-Length: 99999999\r\n\r\n")).await;
    assert_eq!(status(&answer), 413);
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_given_up() {
    let brisk = Duration::from_millis(100);
    let limits = BodyLimits { total: brisk * 50, grace: brisk, ..BodyLimits::default() };
    let server = start_with(Limits::default(), Echo { limits, ..Echo::default() }, None).await;
    let answer = server.exchange(format!("{HEAD}Content-Length: 1000\r\n\r\nabc")).await;
    assert_eq!(status(&answer), 408, "{answer}");
    assert_eq!(server.echo.seen(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn however_fast_it_comes_a_body_has_only_so_much_time() {
    let total = Duration::from_millis(200);
    let limits = BodyLimits { total, rate: 1, grace: total, ..BodyLimits::default() };
    let server = start_with(Limits::default(), Echo { limits, ..Echo::default() }, None).await;
    let mut stream = server.connect().await;
    stream.write_all(format!("{HEAD}Content-Length: 1000\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(&[b'x'; 999]).await.unwrap();
    assert_eq!(status(&to_end(&mut stream).await), 408);
    server.stop().await;
}
