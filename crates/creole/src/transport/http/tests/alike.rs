//! Plain requests are answered without hyper, line for line as hyper answers them.

use tokio::io::AsyncWriteExt;

use super::super::Limits;
use super::support::{Running, one, post, start, status, with};

/// Not plain: the rest of its connection is hyper's.
const OTHER: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// What is answered to a request, and to a plain one behind it; behind a request that is not plain, if it is to be hyper
/// who answers. Dates are left out, and the order of headers has no meaning.
async fn answers(server: &Running, request: &str, by_hyper: bool) -> String {
    let mut stream = server.connect().await;
    if by_hyper {
        stream.write_all(OTHER.as_bytes()).await.unwrap();
        assert_eq!(status(&one(&mut stream).await), 200);
    }
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = one(&mut stream).await;
    // One who was told that it is the last may be gone already.
    let _ = stream.write_all(post("behind").as_bytes()).await;
    all.push_str(&one(&mut stream).await);
    let is_date = |line: &&str| line.starts_with("date: ");
    let mut lines: Vec<_> = all.split("\r\n").filter(|line| !is_date(line)).collect();
    lines.sort_by_key(|line| (!line.starts_with("HTTP/"), *line));
    lines.join("\r\n")
}

#[tokio::test]
async fn hyper_would_answer_the_same() {
    let server = start(Limits::default()).await;
    let to = |path: &str, headers: &str, body: &str| with(headers, body).replacen("/mcp", path, 1);
    let requests = [
        post("hello"),
        post(""),
        post(&"x".repeat(100_000)),
        with("Connection: keep-alive\r\n", "hello"),
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
