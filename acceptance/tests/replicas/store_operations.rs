//! How many operations on the store a call costs.

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore, StoreServer, ValkeyServer};
use serde_json::json;

use crate::{SERVER, is_echoed, is_echoed_without_session};

/// The commands that replicas have sent so far. Those of connections and of this test do not count.
fn operations(server: &ValkeyServer) -> u64 {
    let text = server.run(&["INFO", "commandstats"]);
    let counted = text.lines().filter_map(|line| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let others = ["info", "ping", "hello", "client", "auth", "select", "role", "config"];
        let name = command.split('|').next()?;
        let count: u64 = rest.split(',').next()?.parse().ok()?;
        (!others.contains(&name)).then_some(count)
    });
    counted.sum()
}

#[test]
fn calls_without_a_session_cost_no_operation_and_known_sessions_neither() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let StoreServer::Valkey(server) = &store.server else { unreachable!("it is a Redis server") };
    let replicas = ReplicaSet::start(&store, SERVER, 2);
    let before = operations(server);
    for number in 0..200 {
        let client = StatelessClient::new(replicas.next_address());
        is_echoed_without_session(&client, &format!("stateless {number}"));
    }
    assert_eq!(operations(server), before, "stateless calls");

    let session = HandshakeClient::open(replicas.address(0), "2025-11-25", json!({}), None);
    let other = session.at(replicas.address(1));
    is_echoed(&session, "here");
    is_echoed(&other, "there");
    let before = operations(server);
    for number in 0..100 {
        is_echoed(&session, &format!("here {number}"));
        is_echoed(&other, &format!("there {number}"));
    }
    assert_eq!(operations(server), before, "calls in a session that both replicas know");
}
