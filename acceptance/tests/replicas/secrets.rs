//! What the store can read, and what it can forge.

use std::fs;

use creole_acceptance::gateway::HandshakeClient;
use creole_acceptance::http::Request;
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore, StoreServer};
use serde_json::{Value, json};

use crate::{SERVER, is_echoed};

const CANARY: &str = "the-name-of-a-secret-client";

/// Opens a session whose client has a name that the store must not learn.
fn open(replicas: &ReplicaSet) -> String {
    let client = json!({"name": CANARY, "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let response = Request::post(body.to_string()).send(replicas.address(0)).unwrap();
    response.head.field("mcp-session-id").unwrap().to_owned()
}

fn ping(replicas: &ReplicaSet, session: &str) -> u16 {
    let ping: Value = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let request = Request::post(ping.to_string()).with("Mcp-Session-Id", session);
    let request = request.with("MCP-Protocol-Version", "2025-11-25");
    request.send(replicas.address(1)).unwrap().head.status
}

#[test]
fn the_store_can_neither_read_nor_forge_a_session() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let StoreServer::Valkey(server) = &store.server else { unreachable!("it is a Redis server") };
    let replicas = ReplicaSet::start(&store, SERVER, 2);
    let session = open(&replicas);
    for file in fs::read_dir(server.folder().join("appendonlydir")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let is_found = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
        assert!(!is_found, "the store has the name of the client");
    }
    let keys = server.run(&["--scan", "--pattern", &format!("*session/{session}")]);
    let key = keys.lines().next().unwrap_or_else(|| panic!("no session is stored: {keys}"));
    // A record that is moved to another id opens no session, and a changed one neither.
    let forged = "0".repeat(session.len());
    assert_eq!(server.run(&["COPY", key, &key.replace(&session, &forged)]), "1");
    assert_eq!(ping(&replicas, &forged), 404);
    assert_eq!(server.run(&["HSET", key, "v", "forged"]), "0");
    assert_eq!(ping(&replicas, &session), 404);
}

#[test]
fn clusters_with_other_names_on_one_server_do_not_meet() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let first = ReplicaSet::start(&store, SERVER, 1);
    let other = store.table().replace("[state]", "[state]\nname = \"other\"");
    let file = store.folder().join("other.toml");
    fs::write(&file, format!("{SERVER}{other}")).unwrap();
    let second =
        creole_acceptance::http::ListeningServer::start(&[&file.display().to_string()]).unwrap();
    let session = HandshakeClient::open(first.address(0), "2025-11-25", json!({}), None);
    is_echoed(&session, "here");
    let ping: Value = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(session.at(second.address()).exchange(&ping).head.status, 404);
}
