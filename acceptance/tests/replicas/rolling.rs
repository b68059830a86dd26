//! A rolling restart of replicas under load: no call and no session is lost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::replicas::{ReplicaSet, each_store};
use serde_json::json;

use crate::{SESSION_REVISIONS, is_echoed, is_echoed_without_session};

/// The number of replicas, each of which is replaced.
const REPLICAS: usize = 4;

/// A replica that stops still accepts for a while, until the load balancer has noticed.
const CONFIGURATION: &str = "[server]\nname = \"replicated\"\npacks = [\"echo\"]\n\
                             [http.limits]\ndrain_delay_seconds = 1\n";

#[test]
fn a_rolling_restart_loses_no_call_of_either_era() {
    each_store(|store| {
        let replicas = Mutex::new(ReplicaSet::start(&store, CONFIGURATION, REPLICAS));
        let address = || replicas.lock().unwrap().next_address();
        let (is_over, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
        let run = |call: &(dyn Fn(&str) + Sync)| {
            while !is_over.load(Ordering::Relaxed) {
                call(&format!("call {}", calls.fetch_add(1, Ordering::Relaxed)));
            }
        };
        thread::scope(|scope| {
            for revision in SESSION_REVISIONS {
                let session = HandshakeClient::open(address(), revision, json!({}), None);
                let call = move |nonce: &str| is_echoed(&session.at(address()), nonce);
                scope.spawn(move || run(&call));
            }
            scope.spawn(|| {
                run(&|nonce| is_echoed_without_session(&StatelessClient::new(address()), nonce));
            });
            for _ in 0..REPLICAS {
                replicas.lock().unwrap().add();
                let mut leaving = replicas.lock().unwrap().remove_oldest();
                leaving.stop().unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let calls = calls.load(Ordering::Relaxed);
        assert!(calls > REPLICAS * 10, "only {calls} calls were made");
    });
}
