//! Replicas and their store that are killed together and started again.

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{SESSION_REVISIONS, text};

const SERVER: &str = "[server]\nname = \"replicated\"\npacks = [\"everything\"]\n";

const REPLICAS: usize = 2;

#[test]
fn what_was_acknowledged_survives_the_end_of_everything() {
    let Some(mut store) = ReplicaStore::valkey() else { return };
    let mut replicas = ReplicaSet::start(&store, SERVER, REPLICAS);
    let client = |replicas: &ReplicaSet| {
        let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        StatelessClient::new(replicas.next_address()).that_can(tasks)
    };
    let get = |replicas: &ReplicaSet, task: &str| -> Value {
        client(replicas).request("tasks/get", json!({"taskId": task}))["result"].take()
    };
    let create = |seconds: f64, label: &str| {
        let arguments = json!({"seconds": seconds, "label": label});
        let created = client(&replicas).call("slow_compute", arguments);
        created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    };
    let completed: Vec<_> = (0..5).map(|number| create(0.0, &format!("label {number}"))).collect();
    for task in &completed {
        eventually("the task ends", || get(&replicas, task)["status"] == "completed");
    }
    let open = |revision| HandshakeClient::open(replicas.next_address(), revision, json!({}), None);
    let sessions: Vec<_> = SESSION_REVISIONS.into_iter().cycle().take(9).map(open).collect();
    let running = create(600.0, "never");

    // The store ends first: nothing that happens afterwards can be stored.
    store.end();
    (0..REPLICAS).for_each(|_| drop(replicas.remove_oldest()));
    store.resume();
    (0..REPLICAS).for_each(|_| replicas.add());

    for address in replicas.addresses() {
        for (number, session) in sessions.iter().enumerate() {
            let arguments = json!({"seconds": 0, "label": format!("session {number}")});
            let response = session.at(address).call("slow_compute", arguments);
            assert!(text(&response).contains(&format!("session {number}")), "{response}");
        }
    }
    for (number, task) in completed.iter().enumerate() {
        let found = get(&replicas, task);
        assert!(found.to_string().contains(&format!("label {number}")), "{found}");
    }
    let end = eventually("the end of the replica is noticed", || {
        let found = get(&replicas, &running);
        (found["status"] != "working").then_some(found)
    });
    assert!(end.to_string().contains("has ended"), "{end}");
}
