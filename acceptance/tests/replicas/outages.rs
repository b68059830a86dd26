//! Replicas whose store does not answer, or is gone for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::{Request, Response};
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore};
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::{SERVER, is_echoed, is_echoed_without_session};

/// Runs a test on each store that is a server.
pub(crate) fn each_server(test: impl Fn(ReplicaStore) + Sync) {
    thread::scope(|scope| {
        scope.spawn(|| ReplicaStore::valkey().map(&test));
        scope.spawn(|| ReplicaStore::postgres().map(&test));
    });
}

fn ping() -> serde_json::Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})
}

/// Asserts that a replica says that it cannot answer now, and when to try again.
#[track_caller]
pub(crate) fn is_unavailable(response: &Response) {
    assert_eq!(response.head.status, 503, "{}", response.text());
    assert!(response.head.field("retry-after").is_some(), "{:?}", response.head);
    assert!(response.head.field("mcp-session-id").is_none(), "no half session");
}

/// The request that opens a session.
pub(crate) fn initialize() -> Request {
    let client = json!({"name": "late", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    Request::post(body.to_string())
}

/// What works without the store, and what does not.
fn check_without_store(replicas: &ReplicaSet, session: &HandshakeClient) {
    let (home, other) = (replicas.address(0), replicas.address(1));
    for number in 0..20 {
        let address = replicas.next_address();
        is_echoed_without_session(&StatelessClient::new(address), &format!("stateless {number}"));
    }
    is_echoed(&session.at(home), "known here");
    is_unavailable(&session.at(other).exchange(&ping()));
    // The stream of a call may be in another replica that cannot be asked now.
    let event = format!("1-1.{}", "0".repeat(32));
    is_unavailable(&session.written_stream(Some(&event)).send(home).unwrap());
    is_unavailable(&initialize().send(home).unwrap());
    let ready = Request::new("GET", "/ready").send(home).unwrap();
    assert_eq!(ready.head.status, 200, "readiness does not depend on the store");
    // Without the store, a replica cannot tell an unknown session from one of another replica.
    let unknown = Request::post(ping().to_string()).with("Mcp-Session-Id", "no-session");
    let unknown = unknown.with("MCP-Protocol-Version", "2025-11-25").send(home).unwrap();
    is_unavailable(&unknown);
}

/// Waits until the other replica finds the session, which it never reports as unknown.
fn wait_for_recovery(replicas: &ReplicaSet, session: &HandshakeClient) {
    eventually("the store is reached again", || {
        let response = session.at(replicas.address(1)).exchange(&ping());
        assert_ne!(response.head.status, 404, "{}", response.text());
        response.head.status == 200
    });
    is_echoed(&session.at(replicas.address(1)), "known there");
    eventually("sessions are opened", || {
        initialize().send(replicas.address(0)).unwrap().head.status == 200
    });
}

#[test]
fn what_needs_no_store_works_without_it() {
    each_server(|mut store| {
        let replicas = ReplicaSet::start(&store, SERVER, 2);
        let open =
            |index| HandshakeClient::open(replicas.address(index), "2025-11-25", json!({}), None);
        let session = open(0);
        is_echoed(&session, "before");
        store.pause();
        check_without_store(&replicas, &session);
        store.unpause();
        wait_for_recovery(&replicas, &session);

        let session = open(0);
        is_echoed(&session, "before");
        store.end();
        check_without_store(&replicas, &session);
        store.resume();
        wait_for_recovery(&replicas, &session);
    });
}

#[test]
fn replicas_start_without_the_store() {
    each_server(|mut store| {
        store.end();
        let replicas = ReplicaSet::start(&store, SERVER, 1);
        let address = replicas.address(0);
        is_echoed_without_session(&StatelessClient::new(address), "early");
        is_unavailable(&initialize().send(address).unwrap());
        store.resume();
        eventually("sessions are opened", || {
            initialize().send(address).unwrap().head.status == 200
        });
    });
}

#[test]
fn a_store_that_fails_again_and_again_loses_no_stateless_call() {
    each_server(|mut store| {
        let replicas = ReplicaSet::start(&store, SERVER, 2);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let calls = scope.spawn(|| {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let client = StatelessClient::new(replicas.next_address());
                    is_echoed_without_session(&client, &format!("{number}"));
                    number += 1;
                }
                number
            });
            for _ in 0..3 {
                store.end();
                store.resume();
            }
            is_over.store(true, Ordering::Relaxed);
            assert!(calls.join().unwrap() > 0);
        });
    });
}
