//! HTTP/2 on the same port, with the same checks.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use creole_test_wait::{delay, eventually, never_within};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::timeout;

use crate::serve::http::HttpLimits;
use crate::serve::http::mcp::response::McpBody;
use crate::serve::http::tests::support::{PATIENCE, TestHttpServer, start};

async fn client(server: &TestHttpServer) -> SendRequest<McpBody> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(16_384).initial_connection_window_size(1 << 20);
    let io = TokioIo::new(server.connect().await);
    let (sender, connection) = builder.handshake(io).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn request(uri: &str, todo: &str, body: &str) -> Request<McpBody> {
    let body = McpBody::from(Bytes::from(body.to_owned()));
    Request::post(uri).header("x-do", todo).body(body).unwrap()
}

async fn ask(client: &mut SendRequest<McpBody>, request: Request<McpBody>) -> Response<Incoming> {
    timeout(PATIENCE, client.send_request(request)).await.expect("it answers").unwrap()
}

/// Reads a body to its end; returns its length and whether it broke off.
async fn drained(mut body: Incoming) -> (usize, bool) {
    let mut length = 0;
    loop {
        let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        match timeout(PATIENCE, frame).await.expect("it ends") {
            None => return (length, false),
            Some(Err(_)) => return (length, true),
            Some(Ok(frame)) => length += frame.data_ref().map_or(0, Bytes::len),
        }
    }
}

#[tokio::test]
async fn requests_are_answered_and_guarded_as_ever() {
    let server = start(HttpLimits::default()).await;
    let mut client = client(&server).await;
    for (uri, expected) in [
        ("http://localhost/mcp", 200),
        ("http://LOCALHOST:8080/mcp", 200),
        ("http://evil.example/mcp", 403),
        ("http://localhost/nowhere", 404),
        ("http://localhost/other", 401),
    ] {
        let response = ask(&mut client, request(uri, "", "hello")).await;
        assert_eq!(response.status().as_u16(), expected, "{uri}");
    }
    let mut two_hosts = request("http://localhost/mcp", "", "hello");
    two_hosts.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(ask(&mut client, two_hosts).await.status().as_u16(), 403);
    let mut many = request("http://localhost/mcp", "", "hello");
    for number in 0..120 {
        let name: http::HeaderName = format!("x-{number}").parse().unwrap();
        many.headers_mut().insert(name, "y".parse().unwrap());
    }
    assert_eq!(ask(&mut client, many).await.status().as_u16(), 431);
    let large = ask(&mut client, request("http://localhost/mcp", "large", "x")).await;
    assert_eq!(drained(large.into_body()).await, (8 << 20, false));
    server.stop().await;
}

#[tokio::test]
async fn only_the_unread_stream_is_reset() {
    let limits = HttpLimits { write_timeout: Duration::from_millis(300), ..HttpLimits::default() };
    let server = start(limits).await;
    let mut client = client(&server).await;
    let mut stalled = Vec::new();
    for _ in 0..20 {
        stalled.push(ask(&mut client, request("http://localhost/mcp", "large", "x")).await);
    }
    delay(limits.write_timeout * 4).await;
    let other = ask(&mut client, request("http://localhost/mcp", "", "other")).await;
    assert_eq!(drained(other.into_body()).await, (5, false), "the connection stays open");
    for response in stalled {
        let (length, broken) = drained(response.into_body()).await;
        assert!(broken && length < 1 << 20, "{length} {broken}");
    }
    server.stop().await;
}

#[tokio::test]
async fn calls_finish_when_the_server_ends() {
    let server = start(HttpLimits::default()).await;
    let mut client = client(&server).await;
    let call = client.send_request(request("http://localhost/mcp", "wait", "call"));
    let call = tokio::spawn(call);
    eventually("the call arrives", || !server.echo.seen().is_empty()).await;
    server.drain.begin();
    let time = Duration::from_millis(50);
    never_within(time, "the server ends before its call", || server.ended.is_finished()).await;
    server.echo.release.notify_one();
    let response = timeout(PATIENCE, call).await.unwrap().unwrap().unwrap();
    assert_eq!(drained(response.into_body()).await, (4, false));
    timeout(PATIENCE, server.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let limits = HttpLimits { idle_timeout: Duration::from_millis(300), ..HttpLimits::default() };
    let server = start(limits).await;
    let mut client = client(&server).await;
    let response = ask(&mut client, request("http://localhost/mcp", "", "x")).await;
    assert_eq!(drained(response.into_body()).await, (1, false));
    eventually("it is closed", || client.is_closed()).await;
    server.stop().await;
}
