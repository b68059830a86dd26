//! Tests of HTTP servers that misbehave. Each test writes out the responses.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use creole::client::HttpAddress;
use creole::internal::client::{CallEvent, Connection, HttpServer, LegacySseServer};
use creole::proto::fault::FaultKind;
use creole::proto::operation::Event;
use creole::proto::revision::Era;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{LONG, call, fault, open, text, tool};

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    head: String,
    body: Value,
}

impl SeenRequest {
    pub(crate) fn is(&self, method: &str) -> bool {
        self.body["method"] == method
    }

    pub(crate) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(crate) fn is_get(&self) -> bool {
        self.head.starts_with("GET")
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines();
        lines.find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }
}

pub(crate) type ResponseScript = fn(&SeenRequest) -> String;

/// A server that sends the script's response to each request, each on its own connection, and closes it.
pub(crate) async fn serve(script: ResponseScript) -> (SocketAddr, Arc<Mutex<Vec<SeenRequest>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::<Mutex<Vec<SeenRequest>>>::default();
    let recorded = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let recorded = Arc::clone(&recorded);
            tokio::spawn(async move {
                let Some(request) = read(&mut stream).await else { return };
                recorded.lock().unwrap().push(request.clone());
                let response = script(&request);
                // The client may have disconnected.
                let _ = stream.write_all(response.as_bytes()).await;
                if response.ends_with("\n: stay\n\n") {
                    let _ = stream.read(&mut [0]).await;
                }
            });
        }
    });
    (address, seen)
}

async fn read(stream: &mut TcpStream) -> Option<SeenRequest> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |text| text.parse().unwrap()) {
            let body = serde_json::from_str(body).unwrap_or_default();
            return Some(SeenRequest { head: head.to_owned(), body });
        }
    }
}

pub(crate) fn status(line: &str, headers: &str) -> String {
    format!("HTTP/1.1 {line}\r\nConnection: close\r\n{headers}Content-Length: 0\r\n\r\n")
}

pub(crate) fn document(body: &Value, headers: &str) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn stream(events: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n{events}"
    )
}

fn event(id: &str, message: &Value) -> String {
    let id = if id.is_empty() { String::new() } else { format!("id: {id}\n") };
    format!("{id}data: {message}\n\n")
}

pub(crate) fn answer(request: &SeenRequest, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result})
}

pub(crate) fn said(request: &SeenRequest, text: &str) -> Value {
    answer(request, json!({"content": [{"type": "text", "text": text}]}))
}

fn progress(request: &SeenRequest) -> Value {
    let params =
        json!({"progressToken": request.body["params"]["_meta"]["progressToken"], "progress": 1});
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
}

/// The response to a request that opens a session of either era; `None` for other requests.
pub(crate) fn opening(request: &SeenRequest) -> Option<String> {
    let info = json!({"name": "scripted", "version": "1"});
    let capabilities = json!({"tools": {}});
    if request.is("initialize") {
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info});
        return Some(document(&answer(request, result), "Mcp-Session-Id: s1\r\n"));
    }
    if request.is("server/discover") {
        let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"});
        return Some(document(&answer(request, result), ""));
    }
    if request.is("notifications/initialized") {
        return Some(status("202 Accepted", ""));
    }
    let is_plain_get = request.is_get() && request.header("last-event-id").is_none();
    (is_plain_get || request.head.starts_with("DELETE"))
        .then(|| status("405 Method Not Allowed", ""))
}

async fn connect(script: ResponseScript, era: Era) -> (Connection, Arc<Mutex<Vec<SeenRequest>>>) {
    let (address, seen) = serve(script).await;
    let target = HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap();
    let target = target.header("Authorization", "Bearer secret").unwrap();
    (open(HttpServer::new(target), era).await.unwrap(), seen)
}

#[tokio::test]
async fn every_request_says_what_its_era_asks_for() {
    let script: ResponseScript =
        |request| opening(request).unwrap_or_else(|| document(&said(request, "ok"), ""));
    let (connection, seen) = connect(script, Era::Handshake).await;
    assert_eq!(text(call(&connection, tool("x", json!({}))).await), "ok");
    connection.close().await;
    let seen = seen.lock().unwrap().clone();
    for request in &seen {
        assert_eq!(request.header("authorization").as_deref(), Some("Bearer secret"));
        let is_first = request.is("initialize");
        assert_eq!(request.header("mcp-session-id").is_some(), !is_first, "{request:?}");
        assert_eq!(request.header("mcp-protocol-version").is_some(), !is_first, "{request:?}");
        assert_eq!(request.header("mcp-method"), None);
    }
    let place = |method: &str| seen.iter().position(|request| request.is(method)).unwrap();
    assert!(place("notifications/initialized") < place("tools/call"));
    assert!(seen.iter().any(|request| request.head.starts_with("DELETE /mcp")));

    let (connection, seen) = connect(script, Era::Stateless).await;
    assert_eq!(text(call(&connection, tool("x", json!({}))).await), "ok");
    connection.close().await;
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!(seen[1].header("mcp-protocol-version").as_deref(), Some("2026-07-28"));
    assert_eq!(seen[1].header("mcp-method").as_deref(), Some("tools/call"));
    assert_eq!(seen[1].header("mcp-name").as_deref(), Some("x"));
    assert_eq!(seen[1].header("mcp-session-id"), None);
}

#[tokio::test]
async fn a_status_becomes_a_named_fault_without_secrets() {
    let rows: [(&str, ResponseScript, &str); 6] = [
        (
            "unauthorized",
            |_| status("401 No", ""),
            "`web` refused these credentials (status 401); correct `headers`, `token_file` or `token_command` of this upstream, or `--header`",
        ),
        ("forbidden", |_| status("403 No", ""), "`web` denies access (status 403)"),
        (
            "rate_limited",
            |_| status("429 Slow", "Retry-After: 30\r\n"),
            "`web` reports that the rate limit is reached (status 429); try again in 30 s",
        ),
        (
            "unavailable",
            |_| status("503 Down", "Retry-After: 5\r\n"),
            "`web` is not available (status 503); try again in 5 s",
        ),
        (
            "redirected",
            |_| status("302 Found", "Location: http://evil.example/\r\n"),
            "`web` responded with a redirect, which is not followed (status 302)",
        ),
        ("refused", |_| status("400 Bad", ""), "`web` refuses the request (status 400)"),
    ];
    for era in [Era::Handshake, Era::Stateless] {
        for (reason, script, expected) in rows {
            let (address, _) = serve(script).await;
            let target = HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap();
            let target = target.header("Authorization", "Bearer secret").unwrap();
            let fault = open(HttpServer::new(target), era).await.unwrap_err();
            assert_eq!(fault.detail, expected);
            assert_eq!(fault.kind, FaultKind::BackendUnavailable);
            let data: Value = fault.data.unwrap().decode().unwrap();
            assert_eq!(data["reason"], reason);
            assert!(!data.to_string().contains("secret"));
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_before_its_answer_is_a_lost_call_and_its_progress_stays() {
    let script: ResponseScript =
        |request| opening(request).unwrap_or_else(|| stream(&event("", &progress(request))));
    for era in [Era::Handshake, Era::Stateless] {
        let (connection, seen) = connect(script, era).await;
        let mut progress = 0;
        let on_news = |news| {
            progress += usize::from(matches!(news, CallEvent::Event(Event::Progress { .. })));
        };
        let outcome = timeout(LONG, connection.call(tool("x", json!({})), on_news)).await.unwrap();
        assert_eq!(fault(outcome).detail, "`web` closed the stream before it responded");
        assert_eq!(progress, 1);
        let seen = seen.lock().unwrap();
        let calls = seen.iter().filter(|request| request.is("tools/call")).count();
        assert_eq!(calls, 1, "a call is never sent twice");
    }
}

#[tokio::test]
async fn a_stream_with_event_ids_is_taken_up_again_where_it_broke_off() {
    // The response comes on the second resumption; ids of calls are in the session's order.
    let script: ResponseScript = |request| {
        if let Some(opening) = opening(request) {
            return opening;
        }
        match request.header("last-event-id").as_deref() {
            None => stream(&format!("retry: 10\n{}", event("a1", &progress(request)))),
            Some("a1") => stream(": nothing\n\nid: a2\ndata:\n\n"),
            Some("a2") => {
                let result = json!({"content": [{"type": "text", "text": "resumed"}]});
                let id = request.header("x-call").unwrap_or_else(|| "2".to_owned());
                let id: Value = id.parse().unwrap();
                stream(&event("a3", &json!({"jsonrpc": "2.0", "id": id, "result": result})))
            }
            _ => status("400 Bad", ""),
        }
    };
    let (connection, seen) = connect(script, Era::Handshake).await;
    let mut call = connection.start_call(tool("x", json!({})));
    // The script needs the id of the request.
    assert_eq!(call.key().0, 2, "the second request of the session");
    let outcome = timeout(LONG, call.outcome(drop)).await.unwrap();
    assert_eq!(text(outcome), "resumed");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|request| request.is("tools/call")).count(), 1);
}

#[tokio::test]
async fn streams_of_the_stateless_era_are_never_taken_up_again() {
    let script: ResponseScript =
        |request| opening(request).unwrap_or_else(|| stream(&event("a1", &progress(request))));
    let (connection, seen) = connect(script, Era::Stateless).await;
    let outcome = call(&connection, tool("x", json!({}))).await;
    assert_eq!(fault(outcome).detail, "`web` closed the stream before it responded");
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_connection_that_was_closed_while_nobody_used_it_is_not_used_again() {
    let script: ResponseScript = |request| {
        let response = opening(request).unwrap_or_else(|| document(&said(request, "hi"), ""));
        // The response does not announce that the connection closes.
        response.replace("Connection: close\r\n", "")
    };
    let (connection, seen) = connect(script, Era::Handshake).await;
    for _ in 0..5 {
        assert_eq!(text(call(&connection, tool("t", json!({}))).await), "hi");
    }
    let calls = seen.lock().unwrap().iter().filter(|request| request.is("tools/call")).count();
    assert_eq!(calls, 5, "each request was sent once");
}

#[tokio::test]
async fn a_forgotten_session_is_told_apart_from_a_server_that_is_gone() {
    let script: ResponseScript =
        |request| opening(request).unwrap_or_else(|| status("404 Not Found", ""));
    let (connection, _) = connect(script, Era::Handshake).await;
    let fault = fault(call(&connection, tool("x", json!({}))).await);
    assert_eq!(fault.detail, "`web` no longer has the session");
    let closed = timeout(LONG, connection.wait_closed()).await.unwrap();
    assert!(closed.session_lost);
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_no_message_fails_its_call_only() {
    let script: ResponseScript = |request| {
        opening(request).unwrap_or_else(|| match request.body["params"]["name"].as_str().unwrap() {
            "long" => document(&said(request, &"x".repeat(100_000)), ""),
            "long stream" => stream(&event("", &said(request, &"x".repeat(100_000)))),
            "text" => "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\n\
                       Content-Length: 4\r\n\r\n<p/>"
                .to_owned(),
            "garbage" => stream("data: garbage\n\n"),
            "other" => document(&json!({"jsonrpc": "2.0", "id": 999, "result": {}}), ""),
            "accepted" => status("202 Accepted", ""),
            _ => document(&said(request, "ok"), ""),
        })
    };
    for era in [Era::Handshake, Era::Stateless] {
        let (address, _) = serve(script).await;
        let target = HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap();
        let server = HttpServer::new(target.max_message(10_000));
        let connection = open(server, era).await.unwrap();
        for name in ["long", "long stream", "text", "garbage", "other", "accepted"] {
            let fault = fault(call(&connection, tool(name, json!({}))).await);
            assert_eq!(fault.kind, FaultKind::BackendUnavailable, "{name}: {fault:?}");
        }
        assert_eq!(text(call(&connection, tool("good", json!({}))).await), "ok");
    }
}

/// A server of 2024-11-05: a stream with the endpoint for POST, and the responses on it.
pub(crate) async fn serve_old(endpoint: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (answers, mut answered) = mpsc::channel::<String>(8);
    tokio::spawn(async move {
        let mut events = loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            if read(&mut stream).await.unwrap().head.starts_with("GET") {
                break stream;
            }
            stream.write_all(status("405 Method Not Allowed", "").as_bytes()).await.unwrap();
        };
        let first = stream(&format!("event: endpoint\ndata: {endpoint}\n\n"));
        events.write_all(first.as_bytes()).await.unwrap();
        tokio::spawn(async move {
            while let Some(response) = answered.recv().await {
                events.write_all(response.as_bytes()).await.unwrap();
            }
        });
        while let Ok((mut stream, _)) = listener.accept().await {
            let Some(request) = read(&mut stream).await else { continue };
            assert!(request.head.starts_with("POST /messages?sid=7 "), "{}", request.head);
            stream.write_all(status("202 Accepted", "").as_bytes()).await.unwrap();
            let result = match request.body["method"].as_str() {
                Some("initialize") => json!({"protocolVersion": "2024-11-05",
                    "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}),
                Some("tools/call") => json!({"content": [{"type": "text", "text": "old"}]}),
                _ => continue,
            };
            let message = format!("event: message\n{}", event("", &answer(&request, result)));
            answers.send(message).await.unwrap();
            if request.is("tools/call") {
                return;
            }
        }
    });
    address
}

#[tokio::test]
async fn a_server_of_the_oldest_transport_is_greeted_called_and_ends_with_its_stream() {
    let address = serve_old("/messages?sid=7").await;
    let target = HttpAddress::new("old", &format!("http://{address}/sse")).unwrap();
    let connection = open(LegacySseServer::new(target), Era::Handshake).await.unwrap();
    assert_eq!(connection.greeting().version, "2024-11-05");
    assert_eq!(text(call(&connection, tool("x", json!({}))).await), "old");
    let closed = timeout(LONG, connection.wait_closed()).await.unwrap();
    assert_eq!(closed.fault.detail, "`old` closed the connection");
}

#[tokio::test]
async fn a_server_that_sends_messages_to_another_origin_is_refused() {
    let address = serve_old("http://evil.example/messages").await;
    let target = HttpAddress::new("old", &format!("http://{address}/sse")).unwrap();
    let fault = open(LegacySseServer::new(target), Era::Handshake).await.unwrap_err();
    assert_eq!(
        fault.detail,
        "`old` announced a message endpoint of another origin, which is not used"
    );
}

#[tokio::test]
async fn requests_of_a_stateless_server_are_noise_and_get_no_answer() {
    let script: ResponseScript = |request| {
        opening(request).unwrap_or_else(|| {
            let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"});
            stream(&format!("{}{}", event("", &ask), event("", &said(request, "ok"))))
        })
    };
    let (connection, seen) = connect(script, Era::Stateless).await;
    assert_eq!(text(call(&connection, tool("x", json!({}))).await), "ok");
    assert_eq!(connection.violation_count(), 1);
    assert_eq!(seen.lock().unwrap().len(), 2, "only the probe and the call were sent");
}
