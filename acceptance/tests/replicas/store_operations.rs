//! How many operations on the store a call costs.

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore, StoreServer, ValkeyServer};
use creole_acceptance::stage::stdio::binary;
use serde_json::json;

use crate::{SERVER, is_echoed, is_echoed_without_session, text};

/// How many parked calls return to another replica, and what each may cost.
const CALLS: u64 = 50;
const MAX_OPERATIONS: u64 = 12;

/// The scripts, messages and subscriptions of replicas so far.
pub(crate) fn round_trips(server: &ValkeyServer) -> u64 {
    let text = server.run(&["INFO", "commandstats"]);
    let counted = text.lines().filter_map(|line| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let names = ["eval", "evalsha", "publish", "subscribe", "unsubscribe"];
        names.contains(&command).then(|| rest.split(',').next()?.parse::<u64>().ok()).flatten()
    });
    counted.sum()
}

/// How many calls cost nothing. Meanwhile the replicas announce themselves a few times.
const FREE_CALLS: u64 = 400;

/// Asserts that calls have made no operation since `before`.
#[track_caller]
fn made_none(server: &ValkeyServer, before: u64, calls: &str) {
    let made = round_trips(server) - before;
    assert!(
        made <= FREE_CALLS / 10,
        "{FREE_CALLS} {calls} and the presence of replicas: {made} operations"
    );
}

#[test]
fn calls_without_a_session_cost_no_operation_and_known_sessions_neither() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let StoreServer::Valkey(server) = &store.server else { unreachable!("it is a Redis server") };
    let replicas = ReplicaSet::start(&store, SERVER, 2);
    let before = round_trips(server);
    for number in 0..FREE_CALLS {
        let client = StatelessClient::new(replicas.next_address());
        is_echoed_without_session(&client, &format!("stateless {number}"));
    }
    made_none(server, before, "stateless calls");

    let session = HandshakeClient::open(replicas.address(0), "2025-11-25", json!({}), None);
    let other = session.at(replicas.address(1));
    is_echoed(&session, "here");
    is_echoed(&other, "there");
    let before = round_trips(server);
    for number in 0..FREE_CALLS / 2 {
        is_echoed(&session, &format!("here {number}"));
        is_echoed(&other, &format!("there {number}"));
    }
    made_none(server, before, "calls in a session that both replicas know");
}

#[test]
fn a_parked_call_that_returns_to_another_replica_costs_few_operations() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let StoreServer::Valkey(server) = &store.server else { unreachable!("it is a Redis server") };
    let upstream = json!([binary().unwrap(), "serve", "--preset", "everything"]);
    let asking = format!(
        "{SERVER}[upstreams.asking]\ncommand = {upstream}\nrevision = \"2025-11-25\"\nprefix = \"\"\n"
    );
    let replicas = ReplicaSet::start(&store, &asking, 2);
    let can = json!({"elicitation": {}});
    let [home, other] =
        [0, 1].map(|index| StatelessClient::new(replicas.address(index)).that_can(can.clone()));
    let call = || {
        let arguments = json!({"message": "Who?"});
        let parked = home.call("test_elicitation", arguments.clone())["result"].clone();
        let content = json!({"username": "someone", "email": "someone@example.com"});
        let key = parked["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let responses = json!({key: {"action": "accept", "content": content}});
        let end = other.again("test_elicitation", arguments, &parked["requestState"], responses);
        assert!(text(&end).contains("someone@example.com"), "{end}");
    };
    // The first call starts the heartbeat of its replica.
    call();
    let before = round_trips(server);
    (0..CALLS).for_each(|_| call());
    let cost = round_trips(server) - before;
    assert!(cost <= CALLS * MAX_OPERATIONS, "{cost} operations for {CALLS} calls");
}
