//! Tasks that are created at one replica, and read and cancelled at others.

use std::net::{Ipv4Addr, SocketAddr};

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::replicas::{RecordingServer, ReplicaSet, each_store};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

const SERVER: &str = "[server]\nname = \"replicated\"\npacks = [\"everything\"]\n";

fn client(address: SocketAddr) -> StatelessClient {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    StatelessClient::new(address).that_can(tasks)
}

/// Creates a task that computes for this many seconds.
#[track_caller]
fn create(address: SocketAddr, seconds: f64) -> String {
    let created = client(address).call("slow_compute", json!({"seconds": seconds}));
    created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
}

#[track_caller]
fn read(address: SocketAddr, task: &str) -> Value {
    client(address).request("tasks/get", json!({"taskId": task}))["result"].clone()
}

#[test]
fn a_task_is_read_and_cancelled_at_any_replica() {
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, SERVER, 3);
        let [first, second, third] = [0, 1, 2].map(|index| replicas.address(index));
        let task = create(first, 600.0);
        assert_eq!(read(second, &task)["status"], "working");
        let cancelled = client(third).request("tasks/cancel", json!({"taskId": task}));
        assert!(cancelled.get("error").is_none(), "{cancelled}");
        for address in replicas.addresses() {
            assert_eq!(read(address, &task)["status"], "cancelled");
        }
        let short = create(second, 0.1);
        let end = eventually("the task ends", || {
            let task = read(third, &short);
            (task["status"] != "working").then_some(task)
        });
        assert_eq!(end["status"], "completed", "{end}");
        assert!(end.to_string().contains("Computed result"), "{end}");
    });
}

#[test]
fn a_task_is_found_at_a_replica_that_has_not_reached_its_upstream() {
    each_store(|store| {
        let upstream = RecordingServer::start(Ipv4Addr::LOCALHOST);
        let gateway = format!(
            "[server]\nname = \"gateway\"\n[upstreams.behind]\nprefix = \"\"\nurl = \"{}\"\n",
            upstream.url()
        );
        let mut replicas = ReplicaSet::start(&store, &gateway, 1);
        let first = client(replicas.address(0));
        let created = first.call("job", json!({"nonce": "done"}))["result"].clone();
        let task = created["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        eventually("the task ends", || read(replicas.address(0), &task)["status"] == "completed");
        drop(upstream);
        replicas.add();
        let found = read(replicas.address(1), &task);
        assert_eq!(found["result"]["content"][0]["text"], "done", "{found}");
        let unknown = client(replicas.address(1)).request("tasks/get", json!({"taskId": "none"}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    });
}

#[test]
fn a_task_of_a_killed_replica_fails_with_the_reason() {
    each_store(|store| {
        let mut replicas = ReplicaSet::start(&store, SERVER, 2);
        let task = create(replicas.address(0), 600.0);
        let other = replicas.address(1);
        drop(replicas.remove_oldest());
        let end = eventually("the end of the replica is noticed", || {
            let task = read(other, &task);
            (task["status"] != "working").then_some(task)
        });
        assert_eq!(end["status"], "failed", "{end}");
        assert!(end.to_string().contains("has ended"), "{end}");
    });
}
