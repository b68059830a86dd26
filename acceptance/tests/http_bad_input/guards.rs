//! Rows about hosts and origins, which a web page on the same machine may forge (D20, D21, D24).

use creole_acceptance::http::Request;

use crate::Era;
use crate::bench::Bench;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}"#;

/// The same request for each path, with its status when it is admitted.
fn everywhere(bench: &Bench) -> Vec<(Request, u16)> {
    let health = Request::new("GET", "/health");
    let nothing = Request::new("GET", "/no/such/path");
    vec![
        (bench.post(Era::Alone, LIST), 200),
        (bench.post(Era::Session, LIST), 200),
        (health, 200),
        (nothing, 404),
    ]
}

#[test]
fn only_names_of_this_machine_are_answered() {
    let bench = Bench::everything();
    let port = bench.server.address().port();
    let invalid = [
        "evil.example",
        "localhost.evil.com",
        "127.0.0.1.nip.io",
        "user@localhost",
        "user:localhost@evil.example",
        "localhost:80:80",
        "0.0.0.0",
        "127.0.0.2",
        "localhost evil.example",
        "",
    ];
    let good = [
        format!("LOCALHOST:{port}"),
        format!("[::1]:{port}"),
        "[::1]".to_owned(),
        format!("127.0.0.1:{port}"),
        "localhost".to_owned(),
    ];
    for (request, right) in everywhere(&bench) {
        for host in invalid {
            let status = bench.send(&request.clone().with("Host", host)).head.status;
            assert!(matches!(status, 400 | 403), "D20 {host:?}: {status}");
        }
        let twice = request.clone().with("Host", "localhost").with("Host", "evil.example");
        let status = bench.send(&twice).head.status;
        assert!(matches!(status, 400 | 403), "D20 two: {status}");
        for host in &good {
            let status = bench.send(&request.clone().with("Host", host)).head.status;
            assert_eq!(status, right, "D20 {host:?}");
        }
    }
    let mut connection = bench.connect();
    connection.write(b"GET /health HTTP/1.1\r\n\r\n").unwrap();
    let status = connection.response().unwrap().head.status;
    assert!(matches!(status, 400 | 403), "D20 none: {status}");
    bench.canary("D20");
}

#[test]
fn only_pages_of_this_server_may_call() {
    let bench = Bench::everything();
    let port = bench.server.address().port();
    let neighbour = format!("http://localhost:{}", port ^ 1);
    let invalid = [
        neighbour.as_str(),
        "http://localhost",
        "http://evil.example",
        "null",
        "http://localhost.evil",
        "http://127.0.0.1.nip.io",
        "HTTP://LOCALHOST",
        "localhost",
        "http://",
        "file://",
        "http://user@localhost",
        "http://localhost/",
        "garbage \u{7f}",
        "",
    ];
    for (request, right) in everywhere(&bench) {
        for origin in invalid {
            let response = bench.send(&request.clone().with("Origin", origin));
            let status = response.head.status;
            assert!(matches!(status, 400 | 403), "D21 {origin:?}: {status} {}", response.text());
            assert_eq!(response.head.field("access-control-allow-origin"), None, "{origin:?}");
        }
        let same = format!("http://localhost:{port}");
        let twice = request.clone().with("Origin", &same).with("Origin", &same);
        assert_eq!(bench.send(&twice).head.status, 403, "D21 two");
        let response = bench.send(&request.clone().with("Origin", &same));
        assert_eq!(response.head.status, right, "D21 the same: {}", response.text());
        assert_eq!(response.head.field("access-control-allow-origin"), Some(same.as_str()));
        assert_eq!(response.head.field("access-control-allow-credentials"), None);
        assert_eq!(bench.send(&request).head.status, right, "D21 none");
    }
    bench.canary("D21");
}

#[test]
fn a_browser_that_asks_first_is_told_no() {
    let bench = Bench::everything();
    let port = bench.server.address().port();
    let ask = Request::new("OPTIONS", "/mcp")
        .with("Access-Control-Request-Method", "POST")
        .with("Access-Control-Request-Headers", "content-type, mcp-method, x-other");
    let invalid = bench.send(&ask.clone().with("Origin", "https://evil.example"));
    assert_eq!(invalid.head.status, 403, "D24");
    assert_eq!(invalid.head.field("access-control-allow-origin"), None, "D24");
    let same = format!("http://127.0.0.1:{port}");
    let good = bench.send(&ask.with("Origin", &same));
    assert_eq!(good.head.status, 204, "D24");
    assert_eq!(good.head.field("access-control-allow-origin"), Some(same.as_str()), "D24");
    assert_eq!(good.head.field("access-control-allow-credentials"), None, "D24");
    let allowed = good.head.field("access-control-allow-headers").unwrap_or_default();
    assert!(allowed.contains("mcp-method") && !allowed.contains("x-other"), "D24: {allowed}");
    bench.canary("D24");
}
