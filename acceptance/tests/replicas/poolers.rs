//! Replicas that reach PostgreSQL through a connection pooler, and do not know it.

use std::net::{Ipv4Addr, SocketAddr};

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::peers::if_installed;
use creole_acceptance::peers::pgbouncer::PgBouncer;
use creole_acceptance::replicas::{
    RecordingServer, ReplicaSet, ReplicaStore, StoreServer, tenant_key, tenants,
};
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::parked_call::ParkedCall;
use crate::text;

/// How many calls wait, and as many sessions are open. The pooler uses its connections in turns.
const CALLS: usize = 8;

/// A caller of tasks.
fn task_client(address: SocketAddr) -> StatelessClient {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    StatelessClient::new(address).that_can(tasks).with_key(&tenant_key(0))
}

#[test]
fn replicas_work_through_a_pooler_of_transactions_and_say_that_they_poll() {
    let Some(store) = ReplicaStore::postgres() else { return };
    let StoreServer::Postgres(server) = &store.server else { unreachable!("it is PostgreSQL") };
    let Some(pooler) = if_installed("PgBouncer", PgBouncer::start(server)) else { return };
    let store = store.through(pooler.address());
    let upstream = RecordingServer::start(Ipv4Addr::LOCALHOST);
    let gateway = format!(
        "[server]\nname = \"gateway\"\n{}[upstreams.behind]\nprefix = \"\"\nera = \"handshake\"\nurl = \"{}\"\n",
        tenants(1),
        upstream.url()
    );
    let replicas = ReplicaSet::start(&store, &gateway, 3);
    let [first, second, third] = [0, 1, 2].map(|index| replicas.address(index));
    for index in 0..3 {
        replicas.replica(index).until_said("the state store is behind a connection pooler");
        assert_eq!(replicas.replica(index).log().matches("connection pooler").count(), 1);
    }

    let key = tenant_key(0);
    for number in 0..CALLS {
        let waiting = ParkedCall::begin(first, "ask", &format!("parked {number}"));
        let session = HandshakeClient::open(second, "2025-11-25", json!({}), Some(&key));
        let end = waiting.return_to(if number % 2 == 0 { second } else { third });
        assert_eq!(text(&end), waiting.result(), "{end}");
        let nonce = format!("session {number}");
        let called = session.at(third).call("run", json!({"nonce": nonce}));
        assert_eq!(text(&called), nonce, "{called}");
        session.at(first).end();
    }
    let created = task_client(first).call("job", json!({"nonce": "task"}));
    let task = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    let end = eventually("the task ends", || {
        let found = task_client(third).request("tasks/get", json!({"taskId": task}));
        (found["result"]["status"] != "working").then_some(found)
    });
    assert_eq!(end["result"]["result"]["content"][0]["text"], "task", "{end}");

    let executions = upstream.executions();
    assert_eq!(executions.len(), 2 * CALLS + 1, "{executions:?}");
    assert!(executions.values().all(|count| *count == 1), "{executions:?}");
    // Other programs share the connections to the server, so nothing is left in their sessions.
    let left = server_of(&store).run(
        "shop",
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query LIKE 'SET %'",
    );
    assert_eq!(left, "0");
    for index in 0..3 {
        let log = replicas.replica(index).log();
        assert!(!log.contains("prepared statement"), "{log}");
    }
}

fn server_of(store: &ReplicaStore) -> &creole_acceptance::peers::postgres::Postgres {
    match &store.server {
        StoreServer::Postgres(server) => server,
        _ => unreachable!("it is PostgreSQL"),
    }
}
