//! A server that drains lets calls finish, and loses no accepted request.

use std::time::Duration;

use creole_test_wait::{eventually, eventually_async};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::serve::http::tests::support::{PATIENCE, one, post, start, status, to_end, with};
use crate::serve::http::{DrainStage, HttpLimits};

#[tokio::test]
async fn a_call_that_runs_is_finished_and_nothing_new_is_accepted() {
    let server = start(HttpLimits::default()).await;
    let mut running = server.connect().await;
    running.write_all(with("X-Do: wait\r\n", "call").as_bytes()).await.unwrap();
    let mut probe = server.connect().await;
    let ready = b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
    probe.write_all(ready).await.unwrap();
    assert_eq!(status(&one(&mut probe).await), 200);
    eventually("the call arrives", || !server.echo.seen().is_empty()).await;
    server.drain.begin();
    probe.write_all(ready).await.unwrap();
    let response = to_end(&mut probe).await;
    assert_eq!(status(&response), 503, "{response}");
    assert!(response.to_ascii_lowercase().contains("connection: close"), "{response}");
    let refuses = async || TcpStream::connect(server.address).await.is_err();
    eventually_async("the listener closes", refuses).await;
    assert!(!server.ended.is_finished());
    server.echo.release.notify_one();
    let response = to_end(&mut running).await;
    assert_eq!(status(&response), 200, "{response}");
    timeout(PATIENCE, server.ended).await.unwrap().unwrap();
    assert_eq!(server.drain.stage(), DrainStage::Ended);
}

#[tokio::test]
async fn a_server_that_leaves_is_not_ready_and_still_accepts_and_serves() {
    let server = start(HttpLimits::default()).await;
    let mut idle = server.connect().await;
    idle.write_all(post("before").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut idle).await), 200);
    let drain = server.drain.clone();
    let leaving = tokio::spawn(async move { drain.begin_after(PATIENCE * 10).await });
    server.drain.wait_for(DrainStage::Leaving).await;
    let ready = server.exchange("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(status(&ready), 503, "{ready}");
    let health = server.exchange("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(status(&health), 200, "{health}");
    // A new connection, and one that was open before, are served once more.
    let fresh = server.exchange(&post("fresh")).await;
    idle.write_all(post("after").as_bytes()).await.unwrap();
    for response in [fresh, to_end(&mut idle).await] {
        assert_eq!(status(&response), 200, "{response}");
        assert!(response.to_ascii_lowercase().contains("connection: close"), "{response}");
    }
    assert_eq!(server.echo.seen(), ["before", "fresh", "after"]);
    // The end cuts the delay short.
    server.stop().await;
    leaving.await.unwrap();
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_shutdown() {
    let server = start(HttpLimits::default()).await;
    let mut used = server.connect().await;
    used.write_all(post("x").as_bytes()).await.unwrap();
    assert_eq!(status(&one(&mut used).await), 200);
    let mut unused = server.connect().await;
    server.drain.begin();
    assert_eq!(to_end(&mut used).await, "");
    assert_eq!(to_end(&mut unused).await, "");
    timeout(PATIENCE, server.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn calls_that_exceed_the_drain_time_are_cut_off() {
    let limits = HttpLimits { drain_timeout: Duration::from_millis(300), ..HttpLimits::default() };
    let server = start(limits).await;
    let mut running = server.connect().await;
    running.write_all(with("X-Do: wait\r\n", "call").as_bytes()).await.unwrap();
    eventually("the call arrives", || !server.echo.seen().is_empty()).await;
    server.drain.begin();
    timeout(PATIENCE, server.ended).await.unwrap().unwrap();
    assert_eq!(to_end(&mut running).await, "");
}

#[tokio::test]
async fn a_second_request_to_end_ends_at_once() {
    let server = start(HttpLimits::default()).await;
    let mut running = server.connect().await;
    running.write_all(with("X-Do: stream\r\n", "call").as_bytes()).await.unwrap();
    eventually("the call arrives", || !server.echo.seen().is_empty()).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_under_load() {
    let server = start(HttpLimits::default()).await;
    let clients: Vec<_> = (0..20).map(|_| tokio::spawn(hammer(server.address))).collect();
    eventually("calls run", || server.echo.seen().len() >= 200).await;
    server.drain.begin();
    let mut answered = 0;
    for client in clients {
        answered += timeout(PATIENCE, client).await.unwrap().unwrap();
    }
    timeout(PATIENCE, server.ended).await.unwrap().unwrap();
    assert_eq!(server.echo.seen().len(), answered, "every accepted call got its response");
}

/// Calls on one connection until the server announces that it closes; each call must get its response.
async fn hammer(address: std::net::SocketAddr) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    for count in 1.. {
        stream.write_all(post("call").as_bytes()).await.unwrap();
        let response = one(&mut stream).await;
        assert_eq!(status(&response), 200, "{response}");
        if response.to_ascii_lowercase().contains("connection: close") {
            return count;
        }
    }
    unreachable!("the server closes")
}
