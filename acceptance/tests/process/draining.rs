//! Tests of the delay before a graceful shutdown, in which load balancers learn that the server leaves.

use std::fs;
use std::net::TcpStream;
use std::path::Path;

use creole_acceptance::http::{ListeningServer, Request, Response};
use creole_acceptance::process_under_test::{call, handshake, serve};
use creole_test_wait::blocking::eventually;
use serde_json::json;

fn start(folder: &Path, delay: u8) -> ListeningServer {
    let text = format!(
        "[server]\nname = \"t\"\npacks = [\"hello\"]\n[http]\nlisten = \"127.0.0.1:0\"\n\
            [http.limits]\ndrain_delay_seconds = {delay}\n"
    );
    let file = folder.join("creole.toml");
    fs::write(&file, text).unwrap();
    ListeningServer::other(serve(folder, &[file.to_str().unwrap()])).unwrap()
}

fn open_session(server: &ListeningServer) -> Response {
    let handshake = handshake();
    let initialize = handshake.lines().next().unwrap();
    Request::post(initialize).send(server.address()).unwrap()
}

#[test]
fn a_server_that_leaves_serves_its_sessions_opens_none_and_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), 60);
    let get = |server: &ListeningServer, path: &str| {
        Request::new("GET", path).send(server.address()).unwrap()
    };
    assert_eq!(get(&server, "/ready").head.status, 200);
    let session = open_session(&server).head.field("mcp-session-id").unwrap().to_owned();
    server.signal("TERM");
    eventually("it is not ready", || get(&server, "/ready").head.status == 503);
    server.until_said(
        "creole: accepting for 60 s, then shutting down after the running calls; a second signal exits at once",
    );
    // New connections are accepted, served once, and closed.
    let health = get(&server, "/health");
    assert_eq!((health.head.status, health.head.field("connection")), (200, Some("close")));
    let greeting = Request::post(call(1, "hello", &json!({"name": "Ann"})))
        .with("Mcp-Session-Id", &session)
        .with("MCP-Protocol-Version", "2025-11-25")
        .send(server.address())
        .unwrap();
    assert_eq!(greeting.message()["result"]["content"][0]["text"], "Hello, Ann!");
    let refused = open_session(&server);
    assert_eq!(refused.head.status, 503, "{}", refused.text());
    assert!(refused.head.field("retry-after").is_some());
    // The second signal does not wait for the delay. One that follows the first immediately is its repetition.
    eventually("it ends", || {
        server.signal("TERM");
        server.log().contains("error: a second signal ended the server")
    });
    assert_eq!(server.wait(), Some(1));
}

#[test]
fn the_shutdown_follows_the_delay() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), 1);
    server.signal("TERM");
    server.until_said("accepting for 1 s");
    let address = server.address();
    eventually("the listener closes", || TcpStream::connect(address).is_err());
    assert_eq!(server.wait(), Some(0));
}
