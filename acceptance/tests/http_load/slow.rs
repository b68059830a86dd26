//! Tests of clients that send too slowly or do not read.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use creole_acceptance::load::{
    Call, Client, Connection, Era, History, HttpLimitSettings, HttpServer, Pool, Requests,
    SeededRandom,
};
use creole_test_wait::{delay, eventually};
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::{MEBIBYTE, PATIENCE, affordable, turn};

/// The number of descriptors that a server may still hold after its clients closed: it notices the end of a connection
/// later.
const STRAGGLERS: usize = 10;

/// A client beside the slow ones that calls continuously.
struct Canary {
    is_over: Arc<AtomicBool>,
    calls: JoinHandle<(Vec<Call>, Duration)>,
}

impl Canary {
    fn start(server: SocketAddr) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let calls = tokio::spawn(async move {
            let pool = Arc::new(Pool::new(server, 1));
            let client = Client::connect(&pool, Era::Legacy).await.expect("a handshake");
            let mut random = SeededRandom::new(SeededRandom::seed(), 0);
            let (mut calls, mut max_duration) = (Vec::new(), Duration::ZERO);
            while !told.load(Ordering::Relaxed) {
                let started = Instant::now();
                calls.push(client.echo(0, calls.len() + 1, random.nonce()).await);
                max_duration = max_duration.max(started.elapsed());
                delay(Duration::from_millis(10)).await;
            }
            (calls, max_duration)
        });
        Self { is_over, calls }
    }

    /// Stops it and asserts that all of its calls got their responses.
    async fn assert_answered(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let (calls, max_duration) = self.calls.await.unwrap();
        let count = calls.len();
        println!("the canary called {count} times and waited for {max_duration:.1?} at most");
        let mut history = History::default();
        history.add(calls);
        history.assert_right(count);
        assert!(count > 0, "the canary never got a response");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_that_never_end_are_cut_off_while_others_are_served() {
    const SLOW: u64 = 4000;
    let _turn = turn().await;
    let count = affordable(SLOW);
    let server = HttpServer::start(HttpLimitSettings {
        header_timeout_seconds: Some(2),
        connections: Some(2 * SLOW),
        ..HttpLimitSettings::default()
    });
    let canary = Canary::start(server.address());
    let before = server.weight();
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        tasks.spawn(drip_headers(server.address()));
    }
    let spared = count_spared(tasks).await;
    let after = server.weight();
    println!(
        "{count} connections never ended their headers, {spared} of them still open after {:.1} s; {} MiB more",
        started.elapsed().as_secs_f64(),
        after.growth_since(before) / MEBIBYTE,
    );
    canary.assert_answered().await;
    assert_eq!(spared, 0, "clients that were not disconnected within {PATIENCE:?}");
    assert_let_go(&server, before.descriptors).await;
}

/// Waits for all clients, each of which returns whether the server disconnected it. Returns the number of those that it
/// did not.
async fn count_spared(mut tasks: JoinSet<bool>) -> usize {
    let mut spared = 0;
    while let Some(is_cut_off) = tasks.join_next().await {
        spared += usize::from(!is_cut_off.unwrap());
    }
    spared
}

/// Sends a header now and then, and never the empty line, until the server closes the connection. Returns whether it
/// did.
async fn drip_headers(server: SocketAddr) -> bool {
    let mut connection = Connection::open(server).await.expect("a connection");
    let begin = format!("POST /mcp HTTP/1.1\r\nHost: {server}\r\n");
    let cut_off = async {
        let mut sent = connection.send(begin.as_bytes()).await;
        while sent.is_ok() {
            if timeout(Duration::from_millis(300), connection.closed()).await.is_ok() {
                return;
            }
            sent = connection.send(b"X-Slow: yes\r\n").await;
        }
    };
    timeout(PATIENCE, cut_off).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_clients_that_do_not_read_are_cut_off_and_cost_little() {
    const SLOW: u64 = 500;
    const MOST_MEMORY: u64 = 300 * MEBIBYTE;
    let _turn = turn().await;
    let count = affordable(SLOW);
    let server = HttpServer::start(HttpLimitSettings {
        write_timeout_seconds: Some(3),
        ..HttpLimitSettings::default()
    });
    let canary = Canary::start(server.address());
    let before = server.weight();
    let started = Instant::now();
    let sent = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        tasks.spawn(ask_and_do_not_read(server.address(), Arc::clone(&sent)));
    }
    let spared = count_spared(tasks).await;
    let after = server.weight();
    println!(
        "{count} clients sent {} MiB, read nothing, {spared} of them still open after {:.1} s; at most \
         {} MiB of memory",
        sent.load(Ordering::Relaxed) / MEBIBYTE,
        started.elapsed().as_secs_f64(),
        after.peak / MEBIBYTE,
    );
    canary.assert_answered().await;
    assert_eq!(spared, 0, "clients that were not disconnected within {PATIENCE:?}");
    assert_let_go(&server, before.descriptors).await;
    assert!(after.peak < MOST_MEMORY, "{before:?} {after:?}");
}

/// Sends calls without reading a response until the server closes the connection. Returns whether it did.
///
/// The responses fill the kernel's buffers of the connection, some megabytes. Then the server cannot write any more. It
/// must neither collect responses nor wait forever.
async fn ask_and_do_not_read(server: SocketAddr, asked: Arc<AtomicU64>) -> bool {
    let connection = Connection::open_narrow(server, 4096).await.expect("a connection");
    let message = "x".repeat(64 * 1024);
    let requests = Requests::new(server, Era::Modern);
    let call = requests.call(&json!(1), "echo", &json!({"message": message}));
    let cut_off = async {
        let mut position = 0;
        loop {
            match connection.send_some(&call[position..]) {
                Ok(Some(count)) => {
                    asked.fetch_add(count as u64, Ordering::Relaxed);
                    position = (position + count) % call.len();
                }
                Ok(None) => delay(Duration::from_millis(50)).await,
                Err(_) => return,
            }
        }
    };
    timeout(PATIENCE, cut_off).await.is_ok()
}

/// Waits until the server has no more descriptors than before, except the canary's and stragglers.
async fn assert_let_go(server: &HttpServer, before: usize) {
    let now = || server.weight().descriptors;
    let left = || format!("{} descriptors, {before} before: {}", now(), server.log());
    eventually(left, || now() <= before + STRAGGLERS).await;
}
