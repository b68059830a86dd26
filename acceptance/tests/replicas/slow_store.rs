//! A store that answers, but late.

use std::net::SocketAddr;

use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::Connection;
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore, SlowProxy};
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::outages::{each_server, initialize, is_unavailable};
use crate::{SERVER, is_echoed, is_echoed_without_session};

/// How late the answers of the store are. The replicas wait for two seconds.
const LATENCY: Duration = Duration::from_secs(5);

/// How many stateless calls are made, at least, while one operation waits for the store.
const MIN_CALLS: usize = 10;

/// How many operations may wait for the store at a time, and how many sessions are opened at once.
const MAX_WAITING: usize = 256;
const SESSIONS: usize = 1000;

/// Makes calls until another thread has ended. Returns how many.
fn calls_until<T>(address: SocketAddr, thread: &ScopedJoinHandle<'_, T>) -> usize {
    let mut calls = 0;
    while !thread.is_finished() {
        is_echoed_without_session(&StatelessClient::new(address), &format!("call {calls}"));
        calls += 1;
    }
    calls
}

#[test]
fn while_the_store_answers_late_operations_end_by_their_limit_and_other_calls_do_not_wait() {
    each_server(|store| {
        let proxy = SlowProxy::start(store.server_address());
        let store = store.through(proxy.address());
        let replicas = ReplicaSet::start(&store, SERVER, 1);
        let address = replicas.address(0);
        let session = HandshakeClient::open(address, "2025-11-25", json!({}), None);
        is_echoed(&session, "before");

        proxy.delay_by(LATENCY);
        thread::scope(|scope| {
            let opening = scope.spawn(|| {
                let response = initialize().send(address).unwrap();
                (response, proxy.late_answers())
            });
            let calls = calls_until(address, &opening);
            let (response, late_answers) = opening.join().unwrap();
            is_unavailable(&response);
            assert_eq!(late_answers, 0, "the operation ends before the answer arrives");
            assert!(calls >= MIN_CALLS, "{calls} calls while an operation waits");
        });
        is_echoed(&session, "known here");

        proxy.delay_by(Duration::ZERO);
        eventually("sessions are opened again", || {
            initialize().send(address).unwrap().head.status == 200
        });
        is_echoed(&session, "after");
    });
}

#[test]
fn few_operations_wait_for_a_store_that_answers_late() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let proxy = SlowProxy::start(store.server_address());
    let store = store.through(proxy.address());
    let replicas = ReplicaSet::start(&store, SERVER, 1);
    let address = replicas.address(0);
    assert_eq!(initialize().send(address).unwrap().head.status, 200);

    proxy.delay_by(LATENCY);
    let request = initialize().bytes(address);
    let begin = |_| {
        let mut connection = Connection::open(address).unwrap();
        connection.write(&request).unwrap();
        connection
    };
    let connections: Vec<_> = (0..SESSIONS).map(begin).collect();
    is_echoed_without_session(&StatelessClient::new(address), "meanwhile");
    for mut connection in connections {
        assert_eq!(connection.head().unwrap().status, 503);
    }
    // Each session is one script. Those that wait end after two seconds, and after two more the connection is given up.
    let sent = proxy.sent(b"EVALSHA");
    assert!((1..2 * MAX_WAITING + SESSIONS / 10).contains(&sent), "{sent} of {SESSIONS} were sent");

    proxy.delay_by(Duration::ZERO);
    eventually("sessions are opened again", || {
        initialize().send(address).unwrap().head.status == 200
    });
}
