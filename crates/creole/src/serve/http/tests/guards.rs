//! Host, origin, path, method and caller are checked in this order on every path.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use http::Method;

use crate::auth::Principal;
use crate::internal::http::{Admission, Authenticate, RequestHead};
use crate::serve::http::tests::support::{
    Echo, TestHttpServer, post, start, start_guarded, status, with,
};
use crate::serve::http::{
    Drain, HttpLimits, Listener, Network, OriginGuard, PeerAddress, Route, Router,
};

async fn ask(server: &TestHttpServer, line: &str, headers: &str) -> String {
    server.exchange(format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")).await
}

#[tokio::test]
async fn a_foreign_host_is_refused_on_every_path() {
    let server = start(HttpLimits::default()).await;
    let port = server.address.port();
    for path in ["/mcp", "/other", "/health", "/ready", "/nowhere"] {
        for host in [
            "Host: evil.example\r\n".to_owned(),
            "Host: localhost.evil.com\r\n".to_owned(),
            "Host: 127.0.0.1.nip.io\r\n".to_owned(),
            "Host: localhost.\r\n".to_owned(),
            "Host: user@localhost\r\n".to_owned(),
            "Host: localhost\r\nHost: localhost\r\n".to_owned(),
            "Host:\r\n".to_owned(),
            String::new(),
        ] {
            let response = ask(&server, &format!("GET {path}"), &host).await;
            assert_eq!(status(&response), 403, "{path} {host:?}\n{response}");
        }
    }
    for host in [format!("LOCALHOST:{port}"), "[::1]".into(), format!("127.0.0.1:{port}")] {
        let response = ask(&server, "GET /health", &format!("Host: {host}\r\n")).await;
        assert_eq!(status(&response), 200, "{host}");
    }
    assert_eq!(server.echo.seen(), [""; 0]);
    server.stop().await;
}

/// Load balancers name the address of a server, or no host.
#[tokio::test]
async fn health_checks_of_a_server_with_a_name_may_name_any_host_or_none() {
    let mut guard = OriginGuard::loopback();
    guard.allow_host("mcp.example.com").unwrap();
    let server = start_guarded(guard).await;
    for path in ["/health", "/ready"] {
        for host in ["Host: 10.1.2.3:8080\r\n", "Host: mcp.example.com\r\n", ""] {
            let response = ask(&server, &format!("GET {path}"), host).await;
            assert_eq!(status(&response), 200, "{path} {host:?}\n{response}");
        }
        let old = server.exchange(format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        assert_eq!(status(&old), 200, "{path}\n{old}");
        for host in ["Host: localhost\r\nHost: localhost\r\n", "Host: user@localhost\r\n"] {
            let response = ask(&server, &format!("GET {path}"), host).await;
            assert_eq!(status(&response), 403, "{path} {host:?}\n{response}");
        }
    }
    for path in ["/mcp", "/health/", "/nowhere"] {
        let response = ask(&server, &format!("GET {path}"), "Host: 10.1.2.3\r\n").await;
        assert_eq!(status(&response), 403, "{path}\n{response}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_target_that_names_another_host_is_refused_and_the_same_is_not() {
    let server = start(HttpLimits::default()).await;
    let host = "Host: localhost\r\n";
    for (target, expected) in [
        ("http://localhost/mcp", 200),
        ("http://LOCALHOST/mcp", 200),
        ("http://evil.example/mcp", 403),
        ("http://localhost:1/mcp", 403),
        ("http://x@localhost/mcp", 403),
        ("http://localhost/nowhere", 404),
    ] {
        let response = ask(&server, &format!("GET {target}"), host).await;
        assert_eq!(status(&response), expected, "{target}\n{response}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_foreign_origin_is_refused_on_every_path_without_information() {
    let server = start(HttpLimits::default()).await;
    for path in ["/mcp", "/other", "/health", "/ready", "/nowhere"] {
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost.evil",
            "http://localhost:6274",
            "HTTP://LOCALHOST",
            "garbage",
            "http://localhost\r\nOrigin: http://localhost",
        ] {
            for method in ["POST", "OPTIONS"] {
                let headers = format!(
                    "Host: localhost\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n"
                );
                let response = ask(&server, &format!("{method} {path}"), &headers).await;
                assert_eq!(status(&response), 403, "{path} {origin}\n{response}");
                assert!(!response.to_ascii_lowercase().contains("access-control"), "{response}");
            }
        }
    }
    assert_eq!(server.echo.seen(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn an_allowed_page_may_ask_what_it_may_do_and_read_the_answers() {
    let server = start(HttpLimits::default()).await;
    let origin = "Host: localhost:6274\r\nOrigin: http://localhost:6274\r\n";
    let asked = format!(
        "{origin}Access-Control-Request-Method: POST\r\n\
         Access-Control-Request-Headers: content-type, MCP-Protocol-Version, mcp-param-x, cookie\r\n"
    );
    // A preflight has no credentials, so it gets its response before authentication.
    for path in ["/mcp", "/other"] {
        let response = ask(&server, &format!("OPTIONS {path}"), &asked).await.to_ascii_lowercase();
        assert_eq!(status(&response), 204, "{response}");
        for line in [
            "access-control-allow-origin: http://localhost:6274\r\n",
            "access-control-allow-methods: post, get\r\n",
            "access-control-allow-headers: content-type, mcp-protocol-version, mcp-param-x\r\n",
            "vary: origin\r\n",
        ] {
            assert!(response.contains(line), "{line}{response}");
        }
        assert!(!response.contains("credentials") && !response.contains('*'), "{response}");
    }
    let response = ask(&server, "GET /mcp", origin).await.to_ascii_lowercase();
    assert!(
        response.contains("access-control-allow-origin: http://localhost:6274\r\n"),
        "{response}"
    );
    assert_eq!(server.echo.seen(), ["GET"]);
    let response = ask(&server, "OPTIONS /mcp", "Host: localhost\r\n").await;
    assert_eq!(status(&response), 405);
    server.stop().await;
}

#[tokio::test]
async fn only_the_path_itself_leads_to_the_endpoint() {
    let server = start(HttpLimits::default()).await;
    for path in [
        "//mcp",
        "/mcp/",
        "/mcp%2f",
        "/%6dcp",
        "/MCP",
        "/./mcp",
        "/x/../mcp",
        "/mcp;x",
        "/mcp%00",
        "/",
        "/health/",
        "*",
    ] {
        let response = ask(&server, &format!("POST {path}"), "Host: localhost\r\n").await;
        assert!([400, 404].contains(&status(&response)), "{path}\n{response}");
    }
    let response = ask(&server, "GET /mcp?x=y", "Host: localhost\r\n").await;
    assert_eq!(status(&response), 200, "{response}");
    assert_eq!(server.echo.seen(), ["GET"]);
    server.stop().await;
}

#[tokio::test]
async fn the_order_of_checks_is_host_origin_path_method_caller() {
    let server = start(HttpLimits::default()).await;
    let cases = [
        ("PUT /nowhere", "Host: evil\r\nOrigin: http://evil\r\n", 403),
        ("PUT /nowhere", "Host: localhost\r\nOrigin: http://evil\r\n", 403),
        ("PUT /nowhere", "Host: localhost\r\n", 404),
        ("PUT /other", "Host: localhost\r\n", 405),
        ("TRACE /other", "Host: localhost\r\n", 405),
        ("CONNECT /other", "Host: localhost\r\n", 405),
        ("POST /other", "Host: localhost\r\n", 401),
        ("POST /other", "Host: localhost\r\nAuthorization: no\r\n", 401),
        ("POST /other", "Host: localhost\r\nAuthorization: yes\r\nAuthorization: yes\r\n", 400),
        ("POST /other", "Host: localhost\r\nX-Forwarded-For: 127.0.0.1\r\nX-User: root\r\n", 401),
        ("POST /other", "Host: localhost\r\nAuthorization: yes\r\n", 200),
        ("PUT /health", "Host: localhost\r\n", 405),
        ("HEAD /health", "Host: localhost\r\n", 200),
        ("GET /ready", "Host: localhost\r\n", 200),
    ];
    for (line, headers, expected) in cases {
        let response = ask(&server, line, headers).await;
        assert_eq!(status(&response), expected, "{line} {headers:?}\n{response}");
        if expected == 405 {
            assert!(response.to_ascii_lowercase().contains("\r\nallow: "), "{response}");
        }
    }
    assert_eq!(server.echo.seen(), ["POST"]);
    server.stop().await;
}

#[tokio::test]
async fn a_caller_who_is_turned_away_may_try_again_on_the_same_connection() {
    let server = start(HttpLimits::default()).await;
    let refused = "POST /other HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi";
    let granted = "POST /other HTTP/1.1\r\nHost: localhost\r\nAuthorization: yes\r\n\
                   Connection: close\r\nContent-Length: 2\r\n\r\nhi";
    let response = server.exchange(format!("{refused}{granted}")).await;
    assert!(response.contains("401") && response.contains("200 OK"), "{response}");
    assert_eq!(status(&server.ask(post("x")).await), 200);
    server.stop().await;
}

/// Records the addresses of requests, and admits all.
#[derive(Default)]
struct Noting(Mutex<Vec<IpAddr>>);

impl Authenticate for Noting {
    fn admit<'a>(&'a self, head: &'a mut RequestHead, peer: PeerAddress) -> Admission<'a> {
        assert_eq!(head.client, Some(peer.0.ip()));
        self.0.lock().unwrap().push(peer.0.ip());
        Admission::Now(Ok(Principal::local()))
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_client_is_whom_it_tells_and_otherwise_whoever_connects() {
    let request = with("X-Forwarded-For: 203.0.113.9, 198.51.100.7\r\n", "who");
    for (trusted, expected) in [("127.0.0.0/8", "198.51.100.7"), ("10.0.0.0/8", "127.0.0.1")] {
        let listener =
            Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
        let (address, drain, gate) =
            (listener.address().unwrap(), Drain::new(), Arc::new(Noting::default()));
        let network: Network = trusted.parse().unwrap();
        let route = Route::new("/mcp", &[Method::POST], Echo::default()).authenticate(gate.clone());
        let router = Router::new(OriginGuard::loopback(), drain.clone())
            .proxies([network].into_iter().collect())
            .route(route);
        let ended = tokio::spawn(listener.serve(router));
        let server = TestHttpServer { address, echo: Echo::default(), drain, ended };
        assert_eq!(status(&server.ask(&request).await), 200);
        // hyper reads this one.
        let last = request.replace("HTTP/1.1", "HTTP/1.0");
        assert_eq!(status(&server.ask(last).await), 200);
        let expected: IpAddr = expected.parse().unwrap();
        assert_eq!(*gate.0.lock().unwrap(), [expected, expected], "{trusted}");
        server.stop().await;
    }
}
