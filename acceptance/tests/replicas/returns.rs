//! Two clients of one principal that return to the same waiting call at once, at two replicas.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use creole_acceptance::replicas::{RecordingServer, ReplicaSet, tenants};
use serde_json::Value;

use crate::outages::each_server;
use crate::parked_call::ParkedCall;

/// How many calls wait while their replica lives, and how many when it is killed. One caller may have 16 at a time.
const CALLS: usize = 15;

/// Both return at the same time.
fn return_twice(calls: &[ParkedCall], addresses: [SocketAddr; 2]) -> Vec<[Value; 2]> {
    thread::scope(|scope| {
        let begin = |call| {
            addresses.map(|address| scope.spawn(move || ParkedCall::settle_at(call, address)))
        };
        let returned: Vec<_> = calls.iter().map(begin).collect();
        let join =
            |pair: [thread::ScopedJoinHandle<'_, Value>; 2]| pair.map(|it| it.join().unwrap());
        returned.into_iter().map(join).collect()
    })
}

/// Asserts that each call has its result, at one replica at least, and that the other one has no other result.
fn have_results(calls: &[ParkedCall], returned: &[[Value; 2]]) {
    for (call, responses) in calls.iter().zip(returned) {
        let texts = responses.each_ref().map(|it| it["result"]["content"][0]["text"].as_str());
        let is_refused = |response: &Value| {
            response.get("error").is_some() || response["result"]["isError"] == true
        };
        let results = texts.iter().filter(|text| **text == Some(&call.result())).count();
        let refusals = responses.iter().filter(|response| is_refused(response)).count();
        assert!(results > 0 && results + refusals == 2, "{responses:?}");
    }
}

#[test]
fn a_call_to_which_two_clients_return_at_once_is_executed_once() {
    each_server(|store| {
        let upstream = RecordingServer::start(Ipv4Addr::LOCALHOST);
        let gateway = format!(
            "[server]\nname = \"gateway\"\n{}[upstreams.behind]\nprefix = \"\"\nera = \"handshake\"\nurl = \
             \"{}\"\n",
            tenants(1),
            upstream.url()
        );
        let mut replicas = ReplicaSet::start(&store, &gateway, 3);
        let [owner, second, third] = [0, 1, 2].map(|index| replicas.address(index));
        let park = |kind: &str| -> Vec<ParkedCall> {
            let begin = |number| ParkedCall::begin(owner, "ask", &format!("{kind} {number}"));
            (0..CALLS).map(begin).collect()
        };
        let calls = park("its replica lives");
        have_results(&calls, &return_twice(&calls, [second, third]));
        // The streams of these are resumed by another replica.
        let orphans = park("its replica was killed");
        drop(replicas.remove_oldest());
        have_results(&orphans, &return_twice(&orphans, [second, third]));
        let executions = upstream.executions();
        assert_eq!(executions.len(), 2 * CALLS, "{executions:?}");
        assert!(executions.values().all(|count| *count == 1), "{executions:?}");
    });
}
