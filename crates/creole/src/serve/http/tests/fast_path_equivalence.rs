//! The fast path responds line for line as hyper does, whatever the framing of a request.

mod framings;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::serve::http::conn::connection;
use crate::serve::http::conn::connection::ConnectionParts;
use crate::serve::http::conn::hyper_connections::HyperBuilders;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::tests::fast_path_equivalence::framings::{FramingCase, all};
use crate::serve::http::tests::support::{
    Echo, PATIENCE, TestHttpServer, one, post, start, status, with,
};
use crate::serve::http::{Drain, HttpLimits, OriginGuard, PeerAddress, Route, Router};

/// Not for the fast path: hyper serves the rest of the connection.
const OTHER: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The minimum number of framings.
const FRAMINGS: usize = 138;

/// The responses to a request and to a simple one behind it; with `by_hyper`, both follow a request that moves the
/// connection to hyper. Dates are removed, and headers are sorted.
async fn answers(server: &TestHttpServer, request: &str, by_hyper: bool) -> String {
    let mut stream = server.connect().await;
    if by_hyper {
        stream.write_all(OTHER.as_bytes()).await.unwrap();
        assert_eq!(status(&one(&mut stream).await), 200);
    }
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = one(&mut stream).await;
    // The server may have closed the connection after a last response.
    let _ = stream.write_all(post("behind").as_bytes()).await;
    all.push_str(&one(&mut stream).await);
    sorted(&all)
}

/// The lines of responses, normalized.
fn sorted(all: &str) -> String {
    let is_date = |line: &&str| line.starts_with("date: ");
    let mut lines: Vec<_> = all.split("\r\n").filter(|line| !is_date(line)).collect();
    lines.sort_by_key(|line| (!line.starts_with("HTTP/"), *line));
    lines.join("\r\n")
}

#[tokio::test]
async fn hyper_would_answer_the_same() {
    let server = start(HttpLimits::default()).await;
    let to = |path: &str, headers: &str, body: &str| with(headers, body).replacen("/mcp", path, 1);
    let requests = [
        post("hello"),
        post(""),
        post(&"x".repeat(100_000)),
        with("Connection: keep-alive\r\n", "hello"),
        with("Connection: close\r\n", "hello"),
        with("X-Do: panic\r\n", "hello"),
        with("X-Do: large\r\n", "hello"),
        with("Origin: http://localhost\r\n", "hello"),
        with("Origin: http://evil.example\r\n", "hello"),
        with("Host: evil.example\r\n", "hello"),
        to("/nowhere", "", "hello"),
        to("/other", "", "hello"),
        to("/other", "Authorization: yes\r\n", "hello"),
        to("/other", "Authorization: yes\r\nAuthorization: yes\r\n", "hello"),
        to("/health", "", "hello"),
        to("/mcp?query=%20", "", "hello"),
        to(&format!("/mcp?{}", "q".repeat(9_000)), "", "hello"),
        with(&"X: y\r\n".repeat(40), "hello"),
        with(&"X: y\r\n".repeat(60), "hello"),
    ];
    for request in &requests {
        let plain = answers(&server, request, false).await;
        let by_hyper = answers(&server, request, true).await;
        let shown = &request[..request.len().min(200)];
        assert!(plain.starts_with("HTTP/1.1 "), "{shown}\n{plain}");
        assert_eq!(plain.len(), by_hyper.len(), "{shown}");
        assert!(plain == by_hyper, "{shown}\n{plain:.500}\n{by_hyper:.500}");
    }
    server.stop().await;
}

/// The outcome of some bytes and the end behind them: the responses, and the bodies that arrived. At most `step` bytes
/// arrive at once.
async fn outcome(bytes: &[u8], by_hyper: bool, step: usize) -> (String, Vec<String>) {
    let (client, server) = duplex(step);
    let (echo, drain, limits) = (Echo::default(), Drain::new(), HttpLimits::default());
    let route = Route::new("/mcp", &[Method::POST, Method::GET], echo.clone());
    let served = ConnectionParts {
        router: Arc::new(Router::new(OriginGuard::loopback(), drain.clone()).route(route)),
        protocol: Arc::new(HyperBuilders::new(&limits)),
        peer: PeerAddress(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))).into(),
        timeouts: ConnectionTimeouts::new(limits),
        drain: drain.watch(),
        slot: Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap().into(),
    };
    let serving = tokio::spawn(connection::serve(server, served));
    let (mut reader, mut writer) = split(client);
    let mut first = Vec::new();
    if by_hyper {
        writer.write_all(OTHER.as_bytes()).await.unwrap();
        while !first.ends_with(b"healthy\n") {
            assert_ne!(
                reader.read_buf(&mut first).await.unwrap(),
                0,
                "the request gets a response"
            );
        }
    }
    let mut answered = Vec::new();
    let writing = async {
        // After a rejection the server need not read the rest.
        let _ = writer.write_all(bytes).await;
        let _ = writer.shutdown().await;
    };
    let reading = async { drop(reader.read_to_end(&mut answered).await) };
    let both = async { tokio::join!(writing, reading) };
    timeout(PATIENCE, both).await.expect("the server answers and closes");
    timeout(PATIENCE, serving).await.expect("the connection ends").unwrap();
    (String::from_utf8_lossy(&answered).into_owned(), echo.seen())
}

/// The statuses of responses.
fn statuses(answered: &str) -> Vec<u16> {
    let lines = answered.split("HTTP/1.").skip(1);
    lines.map(|line| line.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0)).collect()
}

/// The difference in the responses to a framing, if any.
async fn wrong(framing: &FramingCase) -> Option<String> {
    let FramingCase { bytes, expected } = framing;
    let whole = outcome(bytes, false, 1 << 22).await;
    let mut problem = String::new();
    if statuses(&whole.0) != *expected {
        problem = format!("{:?} instead of {expected:?}; ", statuses(&whole.0));
    }
    let steps = if bytes.len() < 1000 { &[1, 7, 1 << 22][..] } else { &[5000, 1 << 22] };
    for (by_hyper, step) in steps.iter().flat_map(|step| [(false, *step), (true, *step)]) {
        let (answered, seen) = outcome(bytes, by_hyper, step).await;
        if sorted(&answered) != sorted(&whole.0) || seen != whole.1 {
            let (answered, other) = (statuses(&answered), statuses(&whole.0));
            problem += &format!("by hyper {by_hyper}, step {step}: {answered:?} and {other:?}; ");
        }
    }
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    (!problem.is_empty()).then(|| format!("{shown:?} ({}): {problem}", bytes.len()))
}

#[tokio::test]
async fn every_framing_is_answered_the_same_by_both_readers_however_it_is_cut() {
    let framings = all();
    assert!(framings.len() >= FRAMINGS, "{}", framings.len());
    let mut all_wrong = Vec::new();
    for framing in &framings {
        all_wrong.extend(wrong(framing).await);
    }
    assert!(all_wrong.is_empty(), "{}\n{}", all_wrong.len(), all_wrong.join("\n"));
}

#[tokio::test]
async fn a_request_may_be_cut_at_every_byte() {
    let chunked = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;x\r\nabc\r\n0\r\nX: y\r\n\r\n";
    let get = "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for text in [format!("{}{}", post("one"), post("two")), format!("{chunked}{get}")] {
        let whole = outcome(text.as_bytes(), false, text.len()).await;
        assert_eq!(statuses(&whole.0), [200, 200], "{whole:?}");
        for cut in 1..text.len() {
            for by_hyper in [false, true] {
                let (answered, seen) = outcome(text.as_bytes(), by_hyper, cut).await;
                assert_eq!((sorted(&answered), &seen), (sorted(&whole.0), &whole.1), "{cut}");
            }
        }
    }
}
