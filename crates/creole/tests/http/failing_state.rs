//! Tests of sessions whose state cannot save them.

use bytes::Bytes;
use creole::state::{State, StateError, StateLimits};
use serde_json::json;

use crate::client::{call, endpoint_on, in_session, open, post, request};

fn initialize() -> serde_json::Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

#[tokio::test]
async fn a_session_that_cannot_be_saved_is_not_opened() {
    let mut limits = StateLimits::default();
    limits.entries = 1;
    let state = State::memory(limits);
    let endpoint = endpoint_on(&state);
    let session = open(&endpoint).await;
    let refused = endpoint.handle(post(&[], &initialize())).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "2");
    assert!(!refused.headers().contains_key("mcp-session-id"));
    assert_eq!(endpoint.handle(call(&session, 1, "echo")).await.status(), 200);
    let delete = request(http::Method::DELETE, &[("mcp-session-id", &session)], "");
    assert_eq!(endpoint.handle(delete).await.status(), 204);
    assert_eq!(endpoint.handle(post(&[], &initialize())).await.status(), 200);
}

/// Leaves no byte of a state free.
async fn fill(state: &State) {
    let mut length = 0;
    while state.put("filler", Bytes::from(vec![0; length]), None).await.is_ok() {
        length += 1;
    }
}

#[tokio::test]
async fn a_known_session_goes_on_while_its_changes_cannot_be_saved() {
    let mut limits = StateLimits::default();
    limits.bytes = 2_000;
    let state = State::memory(limits);
    let endpoint = endpoint_on(&state);
    let session = open(&endpoint).await;
    let saved = async || {
        let entry = state.get(&format!("session/{session}")).await.unwrap().unwrap();
        String::from_utf8(entry.value.to_vec()).unwrap()
    };
    fill(&state).await;
    let full = state.put("another", Bytes::new(), None).await;
    assert!(matches!(full, Err(StateError::Full { .. })), "{full:?}");

    let before = saved().await;
    let level = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel",
        "params": {"level": "emergency"}});
    assert_eq!(endpoint.handle(in_session(&session, &level)).await.status(), 200);
    assert_eq!(saved().await, before);
    assert_eq!(endpoint.handle(call(&session, 2, "echo")).await.status(), 200);

    // The change is saved with the first request that can save it.
    state.remove("filler").await.unwrap();
    assert_eq!(endpoint.handle(call(&session, 3, "echo")).await.status(), 200);
    let after = saved().await;
    assert!(after.contains("emergency") && after != before, "{after}");
}
