//! Streaming responses are written without hyper, in the form that hyper would use.

use std::time::Duration;

use bytes::Bytes;
use creole_test_wait::{delay, never_within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::Sender;
use tokio::time::timeout;

use crate::serve::http::HttpLimits;
use crate::serve::http::tests::support::{
    PATIENCE, TestHttpServer, one, post, start, status, to_end, until, with,
};

const SHORT: Duration = Duration::from_millis(300);

const CLOSES: &str = "connection: close\r\n";

/// A request with a streaming response.
fn lasting() -> String {
    with("X-Do: last\r\n", "listen")
}

/// Requests a streaming response.
async fn listen(server: &TestHttpServer) -> (TcpStream, Sender<Bytes>) {
    let mut stream = server.connect().await;
    stream.write_all(lasting().as_bytes()).await.unwrap();
    (stream, server.echo.begun().await)
}

async fn say(sender: &Sender<Bytes>, text: &'static str) {
    sender.send(Bytes::from_static(text.as_bytes())).await.unwrap();
}

async fn assert_given_up(sender: &Sender<Bytes>) {
    timeout(PATIENCE, sender.closed()).await.expect("the sender is closed");
}

#[tokio::test]
async fn the_head_is_sent_at_once_then_the_chunks_then_the_end() {
    let server = start(HttpLimits::default()).await;
    let (mut stream, sender) = listen(&server).await;
    let head = until(&mut stream, "GMT\r\n\r\n").await;
    let kind = "content-type: text/event-stream\r\n";
    let first = format!("HTTP/1.1 200 OK\r\n{kind}{CLOSES}transfer-encoding: chunked\r\ndate: ");
    assert!(head.starts_with(&first), "{head}");
    say(&sender, "one").await;
    assert_eq!(until(&mut stream, "one\r\n").await, "3\r\none\r\n");
    say(&sender, "and a longer part").await;
    drop(sender);
    assert_eq!(to_end(&mut stream).await, "11\r\nand a longer part\r\n0\r\n\r\n");
    server.stop().await;
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_the_parts_as_they_are() {
    let server = start(HttpLimits::default()).await;
    let mut stream = server.connect().await;
    let request = lasting().replace("HTTP/1.1", "HTTP/1.0");
    stream.write_all(request.as_bytes()).await.unwrap();
    let sender = server.echo.begun().await;
    say(&sender, "one").await;
    say(&sender, "two").await;
    drop(sender);
    let response = to_end(&mut stream).await;
    assert!(response.starts_with("HTTP/1.0 200 OK\r\n"), "{response}");
    assert!(response.contains(CLOSES) && !response.contains("chunked"), "{response}");
    assert!(response.ends_with("GMT\r\n\r\nonetwo"), "{response}");
    server.stop().await;
}

#[tokio::test]
async fn an_earlier_response_arrives_completely_and_later_requests_are_not_answered() {
    let server = start(HttpLimits::default()).await;
    let mut stream = server.connect().await;
    let large = with("X-Do: large\r\n", "before");
    let all = format!("{large}{}{}", lasting(), post("behind"));
    stream.write_all(all.as_bytes()).await.unwrap();
    let speak = async {
        let sender = server.echo.begun().await;
        say(&sender, "one").await;
    };
    let (response, ()) = tokio::join!(to_end(&mut stream), speak);
    let (large, last) = response.rsplit_once("HTTP/1.1 ").unwrap();
    assert_eq!(large.matches('x').count(), 8 << 20);
    assert!(large.ends_with("x\r\n0\r\n\r\n"));
    assert!(last.starts_with("200 OK\r\n") && last.contains(CLOSES), "{last:?}");
    assert!(last.ends_with("\r\n\r\n3\r\none\r\n0\r\n\r\n"), "{last:?}");
    assert_eq!(server.echo.seen(), ["before", "listen"]);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let server = start(HttpLimits::default()).await;
    let (stream, sender) = listen(&server).await;
    drop(stream);
    assert_given_up(&sender).await;
    server.stop().await;
}

#[tokio::test]
async fn a_sending_client_is_read_for_a_limited_time() {
    let server = start(HttpLimits::default()).await;
    let (mut stream, sender) = listen(&server).await;
    stream.write_all(post("more").as_bytes()).await.unwrap();
    say(&sender, "one").await;
    until(&mut stream, "one\r\n").await;
    let behind = post("behind").repeat(10_000);
    // The connection may be cut in the middle.
    let _ = stream.write_all(behind.as_bytes()).await;
    assert_given_up(&sender).await;
    assert_eq!(server.echo.seen(), ["listen"]);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_an_idle_stream_is_not() {
    let limits = HttpLimits {
        header_timeout: SHORT,
        idle_timeout: SHORT,
        write_timeout: SHORT,
        ..HttpLimits::default()
    };
    let server = start(limits).await;
    let (mut silent, sender) = listen(&server).await;
    let mut stalled = server.connect().await;
    stalled.write_all(with("X-Do: last and stream\r\n", "x").as_bytes()).await.unwrap();
    delay(SHORT * 4).await;
    let mut rest = Vec::new();
    let read = timeout(PATIENCE, stalled.read_to_end(&mut rest)).await.expect("it was cut");
    assert!(read.is_err() || !rest.ends_with(b"0\r\n\r\n"), "{}", rest.len());
    say(&sender, "one").await;
    until(&mut silent, "\r\n\r\n3\r\none\r\n").await;
    server.stop().await;
}

#[tokio::test]
async fn the_end_of_the_server_waits_for_the_end_of_the_answer() {
    let server = start(HttpLimits::default()).await;
    let (mut stream, sender) = listen(&server).await;
    server.drain.begin();
    never_within(SHORT, "the server ends before the answer", || server.ended.is_finished()).await;
    say(&sender, "goodbye").await;
    drop(sender);
    let response = to_end(&mut stream).await;
    assert!(response.ends_with("7\r\ngoodbye\r\n0\r\n\r\n"), "{response}");
    timeout(PATIENCE, server.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_cut_when_the_server_does() {
    let limits = HttpLimits { drain_timeout: SHORT, ..HttpLimits::default() };
    let server = start(limits).await;
    let (mut stream, sender) = listen(&server).await;
    server.drain.begin();
    assert_given_up(&sender).await;
    assert!(!to_end(&mut stream).await.contains("0\r\n\r\n"));
    timeout(PATIENCE, server.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn hyper_answers_a_client_that_waits_for_permission() {
    let server = start(HttpLimits::default()).await;
    let mut stream = server.connect().await;
    let request = with("X-Do: last\r\nExpect: 100-continue\r\n", "listen");
    stream.write_all(request.as_bytes()).await.unwrap();
    drop(server.echo.begun().await);
    let response = until(&mut stream, "\r\n\r\n0\r\n\r\n").await;
    assert!(response.contains("HTTP/1.1 200 OK\r\n") && !response.contains(CLOSES), "{response}");
    stream.write_all(post("next").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 200);
    server.stop().await;
}
