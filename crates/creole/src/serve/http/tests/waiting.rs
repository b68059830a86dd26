//! Connections that keep the server waiting are closed in time, and others are not.

use std::time::Duration;

use creole_test_wait::delay;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::serve::http::HttpLimits;
use crate::serve::http::tests::support::{PATIENCE, one, post, start, status, to_end, with};

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(600);

fn unhurried() -> HttpLimits {
    HttpLimits {
        header_timeout: LONG,
        idle_timeout: LONG,
        write_timeout: LONG,
        ..HttpLimits::default()
    }
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let server = start(HttpLimits { header_timeout: SHORT, ..unhurried() }).await;
    assert_eq!(to_end(&mut server.connect().await).await, "");
    server.stop().await;
}

#[tokio::test]
async fn heads_that_trickle_are_closed_while_others_are_served() {
    let server = start(HttpLimits { header_timeout: SHORT, ..unhurried() }).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = server.connect().await;
        slow.push(tokio::spawn(async move {
            let trickle = async {
                for byte in b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: "
                    .iter()
                    .chain([b'y'].iter().cycle())
                {
                    if stream.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                    delay(SHORT / 10).await;
                }
            };
            timeout(PATIENCE, trickle).await.expect("the server closes");
        }));
    }
    for _ in 0..20 {
        assert_eq!(status(&server.ask(post("canary")).await), 200);
    }
    for task in slow {
        task.await.unwrap();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_second_head_that_trickles_is_closed_too() {
    let server = start(HttpLimits { header_timeout: SHORT, ..unhurried() }).await;
    let mut stream = server.connect().await;
    stream.write_all(post("first").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 200);
    stream.write_all(b"POST").await.unwrap();
    assert_eq!(to_end(&mut stream).await, "");
    server.stop().await;
}

#[tokio::test]
async fn a_connection_may_be_idle_between_requests_for_a_limited_time() {
    let limits = HttpLimits { header_timeout: SHORT, idle_timeout: SHORT * 6, ..unhurried() };
    let server = start(limits).await;
    let mut stream = server.connect().await;
    stream.write_all(post("first").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 200);
    delay(SHORT * 2).await;
    stream.write_all(post("second").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut stream).await), 200);
    assert_eq!(to_end(&mut stream).await, "");
    assert_eq!(server.echo.seen(), ["first", "second"]);
    server.stop().await;
}

#[tokio::test]
async fn a_long_call_is_neither_slow_nor_idle() {
    let limits = HttpLimits { header_timeout: SHORT, idle_timeout: SHORT, ..unhurried() };
    let server = start(limits).await;
    let mut stream = server.connect().await;
    stream.write_all(with("X-Do: wait\r\n", "long").as_bytes()).await.unwrap();
    delay(SHORT * 4).await;
    server.echo.release.notify_one();
    assert_eq!(status(&one(&mut stream).await), 200);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_closed_and_one_that_reads_is_not() {
    let server = start(HttpLimits { write_timeout: SHORT * 3, ..unhurried() }).await;
    for todo in ["large", "stream"] {
        let mut stalled = server.connect().await;
        let request = with(&format!("X-Do: {todo}\r\n"), "x");
        stalled.write_all(request.as_bytes()).await.unwrap();
        // Earlier output still arrives; then the connection turns out to be cut.
        delay(SHORT * 10).await;
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, stalled.read_to_end(&mut rest)).await.expect("it was cut");
        assert!(read.is_err() || rest.len() < 8 << 20, "{}", rest.len());
    }
    let mut reader = server.connect().await;
    reader.write_all(with("X-Do: large\r\nConnection: close\r\n", "x").as_bytes()).await.unwrap();
    let mut total = 0;
    // Slow enough to take longer in total than the write timeout.
    let mut piece = vec![0; 256 << 10];
    while total < 8 << 20 {
        delay(SHORT / 6).await;
        let count = timeout(PATIENCE, reader.read(&mut piece)).await.unwrap().unwrap();
        assert_ne!(count, 0, "the connection was cut after {total} bytes");
        total += count;
    }
    server.stop().await;
}

#[tokio::test]
async fn above_the_limit_connections_wait_for_a_slot() {
    let server = start(HttpLimits { connections: 2, ..unhurried() }).await;
    let first = server.connect().await;
    let _second = server.connect().await;
    let mut third = server.connect().await;
    third.write_all(post("third").as_bytes()).await.unwrap();
    let mut byte = [0];
    assert!(
        timeout(SHORT, third.read(&mut byte)).await.is_err(),
        "the connection limit is reached"
    );
    drop(first);
    assert_eq!(timeout(PATIENCE, third.read(&mut byte)).await.unwrap().unwrap(), 1);
    server.stop().await;
}
