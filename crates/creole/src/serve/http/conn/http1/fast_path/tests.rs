//! The fast path serves qualifying requests, and passes all others on with every byte.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use creole_test_wait::{delay, eventually, never_within};
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::serve::http::PeerAddress;
use crate::serve::http::tests::support::{Echo, PATIENCE, PieceBody, post, until, with};
use crate::serve::http::{Drain, HttpLimits, OriginGuard, Route};

type Spoken<T = DuplexStream> = JoinHandle<io::Result<FastPathEnd<T, PieceBody>>>;

/// The client's end of a connection, and the fast path on it.
fn speak() -> (DuplexStream, Echo, Spoken, Arc<AtomicBool>) {
    let (client, server) = duplex(64 * 1024);
    let (echo, serving, concluded) = speak_on(server);
    (client, echo, serving, concluded)
}

/// The fast path on this stream.
fn speak_on<T>(server: T) -> (Echo, Spoken<T>, Arc<AtomicBool>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let echo = Echo::default();
    let route = Route::new("/mcp", &[Method::POST, Method::GET], echo.clone());
    let router = Router::new(OriginGuard::loopback(), Drain::new()).route(route);
    let timeouts = ConnectionTimeouts::new(HttpLimits::default());
    let wire = ScreenedStream::new(server, Arc::clone(&timeouts));
    let peer = PeerAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))).into();
    let FastPath { serving: talk, is_shutting_down: concluded } =
        fast_path(wire, Arc::new(router), timeouts, peer);
    (echo, tokio::spawn(talk), concluded)
}

/// A stream that records the largest number of bytes that were initialized in a buffer before it was read into.
struct Prepared(DuplexStream, Arc<AtomicUsize>);

impl AsyncRead for Prepared {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.1.fetch_max(buffer.initialized().len(), Ordering::Relaxed);
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Prepared {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[tokio::test]
async fn a_body_that_arrives_byte_by_byte_has_no_buffers_zeroed() {
    let (mut client, server) = duplex(64 * 1024);
    let prepared = Arc::new(AtomicUsize::new(0));
    let (echo, _serving, _) = speak_on(Prepared(server, Arc::clone(&prepared)));
    let text = post(&"x".repeat(100_000));
    let (head, body) = text.split_at(text.find("\r\n\r\n").unwrap() + 4);
    client.write_all(head.as_bytes()).await.unwrap();
    // Each byte is read before the next one is written: the runtime has one thread.
    for byte in body.as_bytes()[..100].chunks(1) {
        client.write_all(byte).await.unwrap();
        tokio::task::yield_now().await;
    }
    client.write_all(&body.as_bytes()[100..]).await.unwrap();
    until(&mut client, "x\r\n0\r\n\r\n").await;
    assert_eq!(echo.seen().len(), 1);
    assert_eq!(prepared.load(Ordering::Relaxed), 0);
}

/// How the fast path ended.
async fn end(serving: Spoken) -> FastPathEnd<DuplexStream, PieceBody> {
    timeout(PATIENCE, serving).await.expect("an end").unwrap().unwrap()
}

/// Waits until a request has arrived.
async fn arrived(echo: &Echo) {
    eventually("the request arrives", || !echo.seen().is_empty()).await;
}

#[tokio::test]
async fn requests_are_answered_in_their_order_until_the_client_ends() {
    let (mut client, echo, serving, _) = speak();
    client.write_all(format!("{}{}", post("one"), post("two")).as_bytes()).await.unwrap();
    let both = until(&mut client, "two\r\n0\r\n\r\n").await;
    assert_eq!(both.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{both}");
    client.write_all(format!("\r\n{}", post("three")).as_bytes()).await.unwrap();
    until(&mut client, "three\r\n0\r\n\r\n").await;
    client.shutdown().await.unwrap();
    assert!(matches!(end(serving).await, FastPathEnd::Closed));
    assert_eq!(echo.seen(), ["one", "two", "three"]);
}

#[tokio::test]
async fn a_request_may_arrive_in_parts() {
    let (mut client, echo, serving, _) = speak();
    let text = post(&"x".repeat(100_000));
    let head = text.find("\r\n\r\n").unwrap() + 4;
    for part in [&text[..20], &text[20..head - 2], &text[head - 2..head], &text[head..head + 1]] {
        client.write_all(part.as_bytes()).await.unwrap();
        delay(Duration::from_millis(5)).await;
    }
    let rest = async {
        client.write_all(&text.as_bytes()[head + 1..]).await.unwrap();
        until(&mut client, "x\r\n0\r\n\r\n").await
    };
    let response = timeout(PATIENCE, rest).await.unwrap();
    assert!(response.len() > 100_000, "{}", response.len());
    client.write_all(post("next").as_bytes()).await.unwrap();
    until(&mut client, "next\r\n0\r\n\r\n").await;
    assert_eq!(echo.seen().len(), 2);
    drop(client);
    assert!(matches!(end(serving).await, FastPathEnd::Closed));
}

#[tokio::test]
async fn a_request_outside_of_the_fast_path_is_handed_over_with_all_following_bytes() {
    let get = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let chunked =
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let last = with("Connection: close, x\r\n", "last");
    let crumbs = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
    for other in [get, chunked, &last, crumbs] {
        let (mut client, echo, spoken, _) = speak();
        client.write_all(post("one").as_bytes()).await.unwrap();
        until(&mut client, "one\r\n0\r\n\r\n").await;
        let all = format!("{other}{}", if other == crumbs { "" } else { get });
        match other == crumbs {
            false => client.write_all(all.as_bytes()).await.unwrap(),
            true => {
                for byte in all.as_bytes().chunks(4) {
                    client.write_all(byte).await.unwrap();
                    delay(Duration::from_millis(2)).await;
                }
            }
        }
        let FastPathEnd::Fallback(mut wire) = end(spoken).await else {
            panic!("{other} is not plain")
        };
        client.shutdown().await.unwrap();
        let mut given = String::new();
        wire.read_to_string(&mut given).await.unwrap();
        assert_eq!(given, all);
        assert_eq!(echo.seen(), ["one"]);
    }
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_request() {
    let (mut client, echo, serving, _) = speak();
    client.write_all(with("X-Do: wait\r\n", "waits").as_bytes()).await.unwrap();
    arrived(&echo).await;
    drop(client);
    let ended = timeout(PATIENCE, serving).await.expect("it is noticed").unwrap();
    assert!(ended.is_err(), "the client has disconnected");
}

#[tokio::test]
async fn a_pipelined_request_is_answered_after_the_current_one() {
    let (mut client, echo, _serving, _) = speak();
    client.write_all(with("X-Do: wait\r\n", "one").as_bytes()).await.unwrap();
    client.write_all(post("two").as_bytes()).await.unwrap();
    arrived(&echo).await;
    let time = Duration::from_millis(20);
    never_within(time, "the second request overtakes", || echo.seen() != ["one"]).await;
    echo.release.notify_one();
    let both = until(&mut client, "two\r\n0\r\n\r\n").await;
    assert_eq!(both.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{both}");
}

#[tokio::test]
async fn a_draining_connection_answers_the_running_request_and_announces_its_close() {
    let (mut client, echo, serving, concluded) = speak();
    client.write_all(with("X-Do: wait\r\n", "one").as_bytes()).await.unwrap();
    arrived(&echo).await;
    concluded.store(true, Ordering::Release);
    echo.release.notify_one();
    let response = until(&mut client, "one\r\n0\r\n\r\n").await;
    assert!(response.contains("connection: close\r\n"), "{response}");
    assert!(matches!(end(serving).await, FastPathEnd::Closed));
}
