//! Bodies are read up to their limits, and no further.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::budget::Budget;
use crate::serve::http::HttpLimits;
use crate::serve::http::tests::support::{
    Echo, PATIENCE, one, post, start, start_with, status, to_end,
};
use crate::serve::http::web::body::BodyLimits;

const MEBIBYTE: usize = 1024 * 1024;
const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";

#[tokio::test]
async fn the_largest_body_is_read_and_one_byte_more_is_refused_unread() {
    let server = start(HttpLimits::default()).await;
    let response = server.ask(post(&"x".repeat(MEBIBYTE))).await;
    assert_eq!(status(&response), 200);
    // No byte of the body is sent: the response comes all the same, and then the connection closes.
    let response = server.exchange(format!("{HEAD}Content-Length: {}\r\n\r\n", MEBIBYTE + 1)).await;
    assert_eq!(status(&response), 413, "{response}");
    assert!(response.contains("1048576"), "{response}");
    assert_eq!(server.echo.seen().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_on_reads_the_refusal_nevertheless() {
    let server = start(HttpLimits::default()).await;
    let mut stream = server.connect().await;
    let head = format!("{HEAD}Content-Length: {}\r\n\r\n", 10 * MEBIBYTE);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; 300_000]).await.unwrap();
    let response = to_end(&mut stream).await;
    assert_eq!(status(&response), 413, "{response}");
    server.stop().await;
}

#[tokio::test]
async fn chunks_are_counted_as_they_arrive() {
    let server = start(HttpLimits::default()).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    let response = server.ask(format!("{head}{}0\r\n\r\n", chunk.repeat(16))).await;
    assert_eq!(status(&response), 200);
    let response = server.exchange(format!("{head}{}1\r\nx\r\n", chunk.repeat(16))).await;
    assert_eq!(status(&response), 413, "{response}");
    assert_eq!(server.echo.seen().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_waits_for_permission_gets_it_or_the_refusal() {
    let server = start(HttpLimits::default()).await;
    let expect = format!("{HEAD}Expect: 100-continue\r\n");
    let mut stream = server.connect().await;
    stream.write_all(format!("{expect}Content-Length: 2\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 100);
    stream.write_all(b"hi").await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 200);
    let response = server.exchange(format!("{expect}Content-Length: 99999999\r\n\r\n")).await;
    assert_eq!(status(&response), 413);
    server.stop().await;
}

#[tokio::test]
async fn a_slow_body_times_out() {
    let brisk = Duration::from_millis(100);
    let limits = BodyLimits { total: brisk * 50, grace: brisk, ..BodyLimits::default() };
    let server = start_with(HttpLimits::default(), Echo { limits, ..Echo::default() }, None).await;
    let response = server.exchange(format!("{HEAD}Content-Length: 1000\r\n\r\nabc")).await;
    assert_eq!(status(&response), 408, "{response}");
    assert_eq!(server.echo.seen(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn a_body_has_a_total_time_limit() {
    let total = Duration::from_millis(200);
    let limits = BodyLimits { total, rate: 1, grace: total, ..BodyLimits::default() };
    let server = start_with(HttpLimits::default(), Echo { limits, ..Echo::default() }, None).await;
    let mut stream = server.connect().await;
    stream.write_all(format!("{HEAD}Content-Length: 1000\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(&[b'x'; 999]).await.unwrap();
    assert_eq!(status(&to_end(&mut stream).await), 408);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_its_body_first_reads_the_error_about_memory() {
    let echo = Echo { budget: Budget::new(0), ..Echo::default() };
    let server = start_with(HttpLimits::default(), echo, None).await;
    // With a short send queue, all of it is sent only if the server reads it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(16 * 1024).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    stream.write_all(post(&"x".repeat(MEBIBYTE)).as_bytes()).await.unwrap();
    let response = to_end(&mut stream).await;
    assert_eq!(status(&response), 503, "{response}");
    assert!(response.contains("retry-after: 5\r\n"), "{response}");
    server.stop().await;
}

#[tokio::test]
async fn bodies_have_a_shared_memory_limit_and_further_ones_get_retry_after() {
    let budget = Budget::new(MEBIBYTE);
    let echo = Echo { budget: budget.clone(), ..Echo::default() };
    let server = start_with(HttpLimits::default(), echo, None).await;
    let large = post(&"x".repeat(500_000));
    let (most, last) = large.split_at(large.len() - 1);
    let mut slow = server.connect().await;
    slow.write_all(most.as_bytes()).await.unwrap();
    let held = async {
        while budget.used() < 499_999 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, held).await.expect("the received bytes are counted");
    assert!(
        budget.used() <= 500_000,
        "the reservation exceeds the announced length: {}",
        budget.used()
    );
    for framing in ["Content-Length: 500000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n7a120\r\n"]
    {
        let mut second = server.connect().await;
        let request = format!("{HEAD}{framing}{}", "x".repeat(500_000));
        // It is rejected before its end.
        let _ = second.write_all(request.as_bytes()).await;
        let response = to_end(&mut second).await;
        assert_eq!(status(&response), 503, "{response}");
        assert!(response.contains("retry-after: 5\r\n"), "{response}");
    }
    assert_eq!(
        status(&server.ask(post(&"x".repeat(8 * 1024))).await),
        200,
        "small bodies are accepted"
    );
    slow.write_all(last.as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut slow).await), 200);
    assert_eq!(status(&server.ask(&large).await), 200);
    drop(slow);
    let given_back = async {
        while budget.used() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, given_back).await.expect("the budget is free again");
    server.stop().await;
}
