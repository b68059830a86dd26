//! A store whose master is killed while calls wait for input.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use creole_acceptance::replicas::{
    RecordingServer, ReplicaSet, ReplicaStore, StoreServer, tenants,
};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::parked_call::ParkedCall;
use crate::text;

/// How many calls wait at each of two replicas, and how many of an upstream whose calls end with their replica.
const CALLS: usize = 10;
const LOST_CALLS: usize = 4;

/// Returns until a replica says what became of the call: until then, it is busy or does not reach the store.
#[track_caller]
fn settle(call: &ParkedCall, address: SocketAddr) -> Value {
    let last = RefCell::new(Value::Null);
    let missing = || format!("the replica does not say what became of the call: {}", last.borrow());
    eventually(missing, || {
        last.replace(call.return_to(address));
        let text = last.borrow().to_string();
        !["busy", "unavailable"].iter().any(|word| text.contains(word))
    });
    last.into_inner()
}

/// Whether a call has its result. It is reported as lost otherwise.
#[track_caller]
fn has_result(call: &ParkedCall, response: &Value) -> bool {
    if response.to_string().contains("effects are unknown") {
        return false;
    }
    assert_eq!(text(response), call.result(), "{response}");
    true
}

/// A gateway in front of the same server over HTTP, whose calls can be taken over, and as a child process.
fn gateway(upstream: &RecordingServer) -> String {
    format!(
        "[server]\nname = \"gateway\"\n{}[http.limits]\ndrain_timeout_seconds = 1\n\
         [upstreams.behind]\nprefix = \"\"\nera = \"handshake\"\nurl = \"{}\"\n\
         [upstreams.child]\nprefix = \"child_\"\nera = \"handshake\"\ncommand = {}\n",
        tenants(2),
        upstream.url(),
        json!(upstream.stdio_command())
    )
}

#[test]
fn calls_that_wait_while_the_store_fails_over_end_and_none_is_executed_twice() {
    let Some(mut store) = ReplicaStore::failover() else { return };
    let upstream = RecordingServer::start(Ipv4Addr::LOCALHOST);
    let mut replicas = ReplicaSet::start(&store, &gateway(&upstream), 3);
    let [leaving, staying, third] = [0, 1, 2].map(|index| replicas.address(index));
    let park = |tenant, address, tool, kind: &str, count| -> Vec<ParkedCall> {
        let begin = |number| {
            ParkedCall::begin_as(
                tenant,
                address,
                tool,
                json!({"nonce": format!("{kind} {number}")}),
            )
        };
        (0..count).map(begin).collect()
    };
    let kept = park(0, staying, "ask", "its replica stays", CALLS);
    let left = park(1, leaving, "ask", "its replica leaves", CALLS);
    let lost = park(1, leaving, "child_ask", "its upstream ends", LOST_CALLS);
    // The replica hands its calls over, so that another one takes them over at once.
    replicas.remove_oldest().stop().unwrap();
    let StoreServer::Failover(servers) = &mut store.server else { unreachable!("it has these") };

    let calls: Vec<_> = kept.iter().chain(&left).chain(&lost).collect();
    let responses: Vec<_> = thread::scope(|scope| {
        let settle = |call| scope.spawn(move || (call, settle(call, third)));
        // Half of the clients return before the master is killed, and half of them afterwards.
        let mut settling: Vec<_> = calls.iter().copied().step_by(2).map(settle).collect();
        eventually("the first call is executed", || !upstream.executions().is_empty());
        servers.kill_master();
        settling.extend(calls.iter().copied().skip(1).step_by(2).map(settle));
        servers.wait_for_promotion();
        settling.into_iter().map(|settled| settled.join().unwrap()).collect()
    });
    let executions = upstream.executions();
    assert!(executions.values().all(|count| *count == 1), "{executions:?}");
    for (call, response) in &responses {
        let is_executed = executions.contains_key(call.nonce());
        assert!(!has_result(call, response) || is_executed, "{response}");
    }
    let lost_nonce = |nonce: &String| nonce.starts_with("its upstream ends");
    assert!(
        !executions.keys().any(lost_nonce),
        "no caller returned to its replica: {executions:?}"
    );
    // The new master is used: calls wait and end as before.
    let later = ParkedCall::begin(staying, "ask", "later");
    let response = settle(&later, third);
    assert!(has_result(&later, &response), "{response}");
}
