//! A replica whose clock is ahead of those of the others and of the store.

use std::net::SocketAddr;
use std::time::Duration;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::peers::faketime::FastClock;
use creole_acceptance::peers::if_installed;
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::outages::each_server;
use crate::{is_echoed, text};

/// How far the clock of the second replica is ahead: more than the five minutes that are allowed, and than a task is
/// kept.
const AHEAD: Duration = Duration::from_secs(600);

/// Tasks are kept for four minutes.
const SERVER: &str = "[server]\nname = \"replicated\"\npacks = [\"everything\", \"echo\"]\n\
    [server.limits]\ntask_lifetime_seconds = 240\n";

/// Two replicas, of which the second one has the fast clock.
fn start(store: &ReplicaStore, configuration: &str, clock: &FastClock) -> ReplicaSet {
    let mut replicas = ReplicaSet::start(store, configuration, 1);
    replicas.add_changed(|command| clock.show_to(command));
    replicas
}

fn fast_clock() -> Option<FastClock> {
    if_installed("libfaketime", FastClock::ahead_by(AHEAD))
}

fn task_client(address: SocketAddr) -> StatelessClient {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    StatelessClient::new(address).that_can(tasks)
}

#[track_caller]
fn create_task(address: SocketAddr, seconds: f64) -> String {
    let created = task_client(address).call("slow_compute", json!({"seconds": seconds}));
    created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
}

#[track_caller]
fn task(address: SocketAddr, id: &str) -> Value {
    task_client(address).request("tasks/get", json!({"taskId": id}))["result"].clone()
}

#[test]
fn sessions_and_tasks_do_not_depend_on_the_clocks_of_replicas() {
    let Some(clock) = fast_clock() else { return };
    each_server(|store| {
        let replicas = start(&store, SERVER, &clock);
        let [right, fast] = [0, 1].map(|index| replicas.address(index));
        replicas.replica(1).until_said("differs from that of the state store");
        assert!(!replicas.replica(0).log().contains("differs from that of the state store"));

        for (home, other) in [(right, fast), (fast, right)] {
            let session = HandshakeClient::open(home, "2025-11-25", json!({}), None);
            for number in 0..3 {
                is_echoed(&session.at(other), &format!("there {number}"));
                is_echoed(&session, &format!("here {number}"));
            }
            // The replica that changes a task computes how long it is still kept.
            let cancelled = create_task(home, 600.0);
            assert_eq!(task(other, &cancelled)["status"], "working");
            let response = task_client(other).request("tasks/cancel", json!({"taskId": cancelled}));
            assert!(response.get("error").is_none(), "{response}");
            let short = create_task(other, 0.1);
            for address in [home, other] {
                assert_eq!(task(address, &cancelled)["status"], "cancelled");
                eventually("the task ends", || task(address, &short)["status"] == "completed");
            }
        }
    });
}

/// Calls a tool that asks at one replica, and returns to another one.
fn ask_and_return(first: SocketAddr, second: SocketAddr) -> Value {
    let client = |address| StatelessClient::new(address).that_can(json!({"elicitation": {}}));
    let arguments = json!({"message": "Who?"});
    let asked = client(first).call("test_elicitation", arguments.clone())["result"].clone();
    let keys = asked["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}")).keys();
    let content = json!({"username": "someone", "email": "someone@example.com"});
    let input = json!({"action": "accept", "content": content});
    let responses: Value = keys.map(|key| (key.clone(), input.clone())).collect();
    client(second).again("test_elicitation", arguments, &asked["requestState"], responses)
}

#[test]
fn a_request_state_expires_at_a_replica_whose_clock_is_more_than_five_minutes_ahead() {
    let Some(clock) = fast_clock() else { return };
    let Some(store) = ReplicaStore::valkey() else { return };
    // It expires after four minutes, and is accepted for five more: too early for a clock that is ten minutes ahead.
    let expiring = |seconds: u64| format!("{SERVER}input_timeout_seconds = {seconds}\n");
    let replicas = start(&store, &expiring(240), &clock);
    let [right, fast] = [0, 1].map(|index| replicas.address(index));
    let refused = ask_and_return(right, fast);
    assert_eq!(refused["error"]["data"]["reason"], "state_expired", "{refused}");
    let accepted = ask_and_return(fast, right);
    assert!(text(&accepted).contains("someone@example.com"), "{accepted}");
    // This one expires after six minutes.
    let replicas = start(&store, &expiring(360), &clock);
    let [right, fast] = [0, 1].map(|index| replicas.address(index));
    let accepted = ask_and_return(right, fast);
    assert!(text(&accepted).contains("someone@example.com"), "{accepted}");
}
