//! Tests against a server on an in-memory stream, which sends valid and invalid responses.

use std::time::Duration;

use creole_test_wait::delay;
use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;
use crate::client::transport::http::conn::request::{HeaderList, RequestTemplate};

fn request(body: impl Into<Bytes>) -> HttpRequest {
    let mut headers = HeaderList::new();
    headers.set(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let path = PathAndQuery::from_static("/mcp");
    let host = HeaderValue::from_static("host");
    RequestTemplate::new(Method::POST, path, headers, &host, None).request(Vec::new(), body.into())
}

impl CloseNotify for DuplexStream {}

fn pair() -> (Box<Http1Connection<DuplexStream>>, DuplexStream) {
    let (local, remote) = duplex(1024);
    (Http1Connection::from_stream(local), remote)
}

async fn whole(connection: &mut Http1Connection<DuplexStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while poll_fn(|context| connection.poll_append(context, &mut body)).await? {}
    Ok(body)
}

/// Reads a request whose body is `x` to its end.
async fn hear(server: &mut DuplexStream) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\nx") {
        assert!(server.read_buf(&mut bytes).await.unwrap() > 0);
    }
}

#[tokio::test]
async fn requests_are_sequential_and_responses_may_arrive_byte_by_byte() {
    let (mut connection, mut server) = pair();
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    ];
    let serving = tokio::spawn(async move {
        for answer in answers {
            hear(&mut server).await;
            for byte in answer.as_bytes() {
                server.write_all(&[*byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
        server
    });
    for _ in answers {
        assert!(connection.is_free() && connection.is_still_open());
        connection.send(&request("x")).await.unwrap();
        assert!(!connection.is_free());
        assert_eq!(whole(&mut connection).await.unwrap(), b"abc");
    }
    drop(serving.await.unwrap());
    assert!(
        connection.is_free() && !connection.is_still_open(),
        "the server closed the idle connection"
    );
}

#[tokio::test]
async fn after_an_ambiguous_response_no_request_follows() {
    let rows = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\n\r\na", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", false),
    ];
    for (answer, is_whole) in rows {
        let (mut connection, mut server) = pair();
        let serving = tokio::spawn(async move {
            hear(&mut server).await;
            server.write_all(answer.as_bytes()).await.unwrap();
        });
        connection.send(&request("x")).await.unwrap();
        let body = whole(&mut connection).await;
        assert_eq!(body.ok(), is_whole.then(|| b"a".to_vec()), "{answer}");
        assert!(!connection.is_free(), "{answer}");
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn an_error_says_whether_the_request_was_sent() {
    let (mut connection, server) = pair();
    drop(server);
    let (_, was_sent) = connection.send(&request("x")).await.unwrap_err();
    assert!(!was_sent);
    let (mut connection, mut server) = pair();
    let serving = tokio::spawn(async move { hear(&mut server).await });
    let (_, was_sent) = connection.send(&request("x")).await.unwrap_err();
    assert!(was_sent);
    serving.await.unwrap();
}

#[tokio::test]
async fn an_early_error_response_is_read_and_ends_the_connection() {
    let (mut connection, mut server) = pair();
    let serving = tokio::spawn(async move {
        let answer = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 1\r\n\r\na";
        server.write_all(answer.as_bytes()).await.unwrap();
        server
    });
    let head = connection.send(&request(vec![b'y'; 1 << 20])).await.unwrap();
    assert_eq!(head.status.as_u16(), 413);
    assert_eq!(whole(&mut connection).await.unwrap(), b"a");
    assert!(!connection.is_free());
    drop(serving.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn large_bodies_pass_in_both_directions_while_the_other_side_is_slow() {
    const SIZE: usize = 1 << 20;
    let (mut connection, mut server) = pair();
    let serving = tokio::spawn(async move {
        let mut bytes = Vec::new();
        // It starts to respond when it has read a part, and continues to read while its response is read.
        server.read_buf(&mut bytes).await.unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        server.write_all(head.as_bytes()).await.unwrap();
        delay(Duration::from_secs(1)).await;
        let (mut input, mut output) = tokio::io::split(server);
        let response = vec![b'z'; SIZE];
        let (read, result) =
            tokio::join!(input.read_buf_until(&mut bytes, SIZE), output.write_all(&response));
        result.unwrap();
        read
    });
    connection.send(&request(vec![b'y'; SIZE])).await.unwrap();
    assert_eq!(connection.length(), Some(SIZE as u64));
    assert_eq!(whole(&mut connection).await.unwrap(), vec![b'z'; SIZE]);
    assert!(connection.buffer.len() <= MAX_READ);
    assert!(serving.await.unwrap() >= SIZE);
}

/// Reads until this much was read.
trait ReadUntil {
    async fn read_buf_until(&mut self, bytes: &mut Vec<u8>, size: usize) -> usize;
}

impl<T: AsyncRead + Unpin> ReadUntil for T {
    async fn read_buf_until(&mut self, bytes: &mut Vec<u8>, size: usize) -> usize {
        while bytes.len() < size {
            assert!(self.read_buf(bytes).await.unwrap() > 0);
        }
        bytes.len()
    }
}

#[tokio::test]
async fn a_head_without_an_end_is_refused() {
    let (mut connection, mut server) = pair();
    let serving = tokio::spawn(async move {
        hear(&mut server).await;
        server.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        while server.write_all(b"a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n").await.is_ok()
        {
        }
    });
    let (error, was_sent) = connection.send(&request("x")).await.unwrap_err();
    assert!(was_sent && error.kind() == io::ErrorKind::InvalidData);
    drop(connection);
    serving.await.unwrap();
}
