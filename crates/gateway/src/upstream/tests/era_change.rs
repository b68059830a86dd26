//! Tests of a server that changes its era while it is in use.

use std::net::SocketAddr;
use std::sync::Mutex;

use creole::client::HttpAddress;
use creole::proto::operation::Payload;
use creole::{Server, Service};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::layers::testing::call;

/// The current era of the server, and the calls that it executed.
#[derive(Default)]
struct SimulatedServer {
    is_modern: Mutex<bool>,
    /// Whether the server of the newer era refuses calls.
    refuses: bool,
    /// The number of era probes.
    probes: Mutex<usize>,
    carried_out: Mutex<Vec<&'static str>>,
}

/// The results that both eras share.
fn common(method: &str, era: &'static str, server: &SimulatedServer) -> Option<Value> {
    match method {
        "tools/list" => Some(json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})),
        "tools/call" => {
            server.carried_out.lock().unwrap().push(era);
            Some(json!({"content": [{"type": "text", "text": era}]}))
        }
        _ => None,
    }
}

/// The status and body of a response in the newest revision.
fn modern(request: &Value, server: &SimulatedServer) -> (&'static str, Value) {
    let method = request["method"].as_str().unwrap_or_default();
    let key = "io.modelcontextprotocol/protocolVersion";
    if request["params"]["_meta"].get(key).is_none() {
        let error = json!({"code": -32602, "message": format!("`{key}` is missing")});
        return ("400 Bad Request", json!({"error": error}));
    }
    let discovered = json!({
        "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    if method == "server/discover" {
        *server.probes.lock().unwrap() += 1;
    }
    if method == "tools/call" && server.refuses {
        return ("400 Bad Request", json!({"error": {"code": -32600, "message": "Not like this"}}));
    }
    let known = common(method, "modern", server);
    match known.or_else(|| (method == "server/discover").then_some(discovered)) {
        Some(mut result) => {
            result["resultType"] = json!("complete");
            ("200 OK", json!({"result": result}))
        }
        None => {
            ("404 Not Found", json!({"error": {"code": -32601, "message": "Method not found"}}))
        }
    }
}

/// The status and body of a response in a revision with a handshake, in the wording of a common library.
fn legacy(request: &Value, head: &str, server: &SimulatedServer) -> (&'static str, Value) {
    let method = request["method"].as_str().unwrap_or_default();
    if method == "initialize" {
        let info = json!({"name": "old", "version": "1"});
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info});
        return ("200 OK", json!({"result": result}));
    }
    if !head.to_ascii_lowercase().contains("mcp-session-id: s1") {
        let error = json!({"code": -32000, "message": "Bad Request: Server not initialized"});
        return ("400 Bad Request", json!({"id": null, "error": error}));
    }
    match common(method, "legacy", server) {
        Some(result) => ("200 OK", json!({"result": result})),
        None if request.get("id").is_none() => ("202 Accepted", Value::Null),
        None => ("200 OK", json!({"error": {"code": -32601, "message": "Method not found"}})),
    }
}

async fn answer(mut stream: TcpStream, server: Arc<SimulatedServer>) -> Option<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |text| text.parse().unwrap()) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let request: Value = serde_json::from_str(&body).unwrap_or_default();
    let is_modern = *server.is_modern.lock().unwrap();
    let (status, message) = match (head.starts_with("POST"), is_modern) {
        (false, _) => ("405 Method Not Allowed", Value::Null),
        (true, true) => modern(&request, &server),
        (true, false) => legacy(&request, &head, &server),
    };
    let mut body = String::new();
    if let Value::Object(mut said) = message {
        said.insert("jsonrpc".to_owned(), json!("2.0"));
        said.entry("id").or_insert_with(|| request["id"].clone());
        body = Value::Object(said).to_string();
    }
    let session = if is_modern { "" } else { "Mcp-Session-Id: s1\r\n" };
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json\r\n{session}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(response.as_bytes()).await.ok()
}

async fn serve(server: Arc<SimulatedServer>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&server)));
        }
    });
    address
}

async fn said(service: &Service) -> String {
    match call(service, "ann", "t", "{}").await {
        Outcome::Complete(Payload::Relayed(relayed)) => relayed.result().as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

async fn gateway(server: &Arc<SimulatedServer>) -> (Service, Arc<Upstream>) {
    let address = serve(Arc::clone(server)).await;
    let target = HttpAddress::new("changing", &format!("http://{address}/mcp")).unwrap();
    let service = Server::new("gateway").start();
    let upstream =
        Upstream::start(UpstreamSettings::new(Address::Http(target)), &service.registry(), true);
    upstream.startup.wait_until_tried().await;
    (service, upstream)
}

/// Asserts that a gateway follows a server from one era to the other.
async fn assert_follows(is_modern: bool, eras: [&'static str; 2]) {
    let server = Arc::new(SimulatedServer {
        is_modern: Mutex::new(is_modern),
        ..SimulatedServer::default()
    });
    let (service, _upstream) = gateway(&server).await;
    assert!(said(&service).await.contains(eras[0]));
    *server.is_modern.lock().unwrap() = !is_modern;
    for _ in 0..2 {
        assert!(said(&service).await.contains(eras[1]));
    }
    assert_eq!(*server.carried_out.lock().unwrap(), [eras[0], eras[1], eras[1]]);
}

#[tokio::test]
async fn a_server_that_is_rolled_back_to_an_older_era_goes_on_being_called() {
    assert_follows(true, ["modern", "legacy"]).await;
}

#[tokio::test]
async fn a_server_that_learns_the_newer_era_goes_on_being_called() {
    assert_follows(false, ["legacy", "modern"]).await;
}

#[tokio::test]
async fn a_server_that_refuses_calls_and_is_what_it_was_is_not_asked_each_time() {
    let is_modern = Mutex::new(true);
    let server =
        Arc::new(SimulatedServer { is_modern, refuses: true, ..SimulatedServer::default() });
    let (service, _upstream) = gateway(&server).await;
    let before = *server.probes.lock().unwrap();
    for _ in 0..3 {
        let refused = call(&service, "ann", "t", "{}").await;
        let Outcome::Fail(fault) = refused else { panic!("{refused:?}") };
        assert!(fault.detail.contains("Not like this"), "{}", fault.detail);
    }
    assert_eq!(*server.probes.lock().unwrap(), before + 1);
    assert!(server.carried_out.lock().unwrap().is_empty());
}
