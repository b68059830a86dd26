//! The history of calls while replicas are killed and their store fails: what is answered is right.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::Request;
use creole_acceptance::load::{Call, History, HistoryResponse};
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::outages::each_server;
use crate::{SERVER, SESSION_REVISIONS, is_echoed};

/// How often everything fails once.
const ROUNDS: usize = 3;

/// How many calls are answered in each phase.
const CALLS: usize = 60;

/// The clients of the stateless era. There are as many with sessions as there are revisions with sessions.
const STATELESS_CLIENTS: usize = 3;

/// A client and its calls.
struct ClientHistory {
    number: usize,
    calls: Vec<Call>,
}

impl ClientHistory {
    /// Makes a call. A connection that fails and a replica that cannot answer now are no responses.
    fn call(&mut self, address: SocketAddr, request: impl Fn(&Value, Value) -> Request) -> bool {
        let number = self.calls.len();
        let (id, nonce) = (json!(1), format!("nonce of {}/{number}", self.number));
        let sent = request(&id, json!({"message": nonce})).send(address);
        let Ok(response) = sent else { return false };
        match response.head.status {
            200 => {}
            503 => return false,
            status => panic!("{nonce} got {status}: {}", response.text()),
        }
        let answers = HistoryResponse::read(&response.message()).into_iter().collect();
        let tenant = self.number;
        self.calls.push(Call { tenant, number, id, nonce, answers, failure: None });
        true
    }
}

/// What the clients and the test share.
struct Run {
    replicas: Mutex<ReplicaSet>,
    answered: AtomicUsize,
    is_over: AtomicBool,
}

impl Run {
    fn address(&self) -> SocketAddr {
        self.replicas.lock().unwrap().next_address()
    }

    /// Calls until the test is over.
    fn drive(&self, number: usize, request: impl Fn(&Value, Value) -> Request) -> ClientHistory {
        let mut client = ClientHistory { number, calls: Vec::new() };
        while !self.is_over.load(Ordering::Relaxed) {
            if client.call(self.address(), &request) {
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
        }
        client
    }

    /// Waits until further calls were answered.
    fn wait_for_calls(&self) {
        let wanted = self.answered.load(Ordering::Relaxed) + CALLS;
        eventually("calls are answered", || self.answered.load(Ordering::Relaxed) >= wanted);
    }
}

/// Kills a replica, pauses the store and kills the store.
fn fail_in_turns(run: &Run, store: &mut ReplicaStore) {
    for _ in 0..ROUNDS {
        let mut replicas = run.replicas.lock().unwrap();
        drop(replicas.remove_oldest());
        replicas.add();
        drop(replicas);
        run.wait_for_calls();
        store.pause();
        run.wait_for_calls();
        store.unpause();
        run.wait_for_calls();
        store.end();
        run.wait_for_calls();
        store.resume();
        run.wait_for_calls();
    }
}

#[test]
fn what_is_answered_is_right_while_replicas_and_the_store_fail() {
    each_server(|mut store| {
        let replicas = ReplicaSet::start(&store, SERVER, 3);
        let open =
            |revision| HandshakeClient::open(replicas.next_address(), revision, json!({}), None);
        let sessions = SESSION_REVISIONS.map(open);
        let run = Run {
            replicas: Mutex::new(replicas),
            answered: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        };
        let (run, mut history) = (&run, History::default());
        thread::scope(|scope| {
            let mut clients = Vec::new();
            for (number, session) in sessions.iter().enumerate() {
                clients.push(scope.spawn(move || {
                    run.drive(number, |id, arguments| session.written_call(id, "echo", arguments))
                }));
            }
            let stateless = StatelessClient::new(run.address());
            for number in 0..STATELESS_CLIENTS {
                let (client, number) = (stateless.clone(), sessions.len() + number);
                clients.push(scope.spawn(move || {
                    run.drive(number, |id, arguments| {
                        let params = json!({"name": "echo", "arguments": arguments});
                        client.written(id, "tools/call", params)
                    })
                }));
            }
            fail_in_turns(run, &mut store);
            run.is_over.store(true, Ordering::Relaxed);
            clients.into_iter().for_each(|client| history.add(client.join().unwrap().calls));
        });
        let calls = history.calls();
        assert!(calls >= ROUNDS * CALLS * 5, "only {calls} calls were answered");
        history.assert_right(calls);
        // Every session is still there, at every replica.
        for address in run.replicas.lock().unwrap().addresses() {
            sessions.iter().for_each(|session| is_echoed(&session.at(address), "at the end"));
        }
    });
}
