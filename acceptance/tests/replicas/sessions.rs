//! Sessions whose requests arrive at any replica.

use std::collections::BTreeSet;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::Request;
use creole_acceptance::replicas::{LoadBalancer, ReplicaSet, each_store, name_of};
use serde_json::json;

use crate::{SERVER, SESSION_REVISIONS, is_echoed, is_echoed_without_session};

/// How many sessions of each revision there are, and how many calls each makes.
const SESSIONS: usize = 5;
const CALLS: usize = 12;

#[test]
fn sessions_go_on_at_every_replica() {
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, SERVER, 3);
        let mut sessions = Vec::new();
        for revision in SESSION_REVISIONS {
            for _ in 0..SESSIONS {
                let address = replicas.next_address();
                sessions.push(HandshakeClient::open(address, revision, json!({}), None));
            }
        }
        let ids: BTreeSet<&str> = sessions.iter().map(HandshakeClient::session).collect();
        assert_eq!(ids.len(), sessions.len(), "every session has an id of its own");
        for call in 0..CALLS {
            for (number, session) in sessions.iter().enumerate() {
                is_echoed(&session.at(replicas.next_address()), &format!("{number}/{call}"));
            }
        }
    });
}

#[test]
fn sessions_go_on_behind_a_load_balancer_without_affinity() {
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, SERVER, 3);
        let Some(balancer) = LoadBalancer::start(&replicas.addresses()) else { return };
        let open = |revision| HandshakeClient::open(balancer.address(), revision, json!({}), None);
        let sessions = SESSION_REVISIONS.map(|revision| [(); SESSIONS].map(|()| open(revision)));
        let stateless = StatelessClient::new(balancer.address());
        for call in 0..CALLS {
            for (number, session) in sessions.iter().flatten().enumerate() {
                is_echoed(session, &format!("{number}/{call}"));
            }
            is_echoed_without_session(&stateless, &format!("stateless/{call}"));
        }
        let calls = SESSION_REVISIONS.len() * SESSIONS * CALLS;
        for replica in 0..3 {
            let requests = balancer.requests_to(&name_of(replica));
            assert!(requests >= calls as u64 / 4, "{requests} of {calls} calls to {replica}");
        }
    });
}

#[test]
fn the_sessions_of_a_killed_replica_go_on_at_the_others() {
    each_store(|store| {
        let mut replicas = ReplicaSet::start(&store, SERVER, 3);
        let session = HandshakeClient::open(replicas.address(0), "2025-11-25", json!({}), None);
        is_echoed(&session, "before");
        drop(replicas.remove_oldest());
        for (number, address) in replicas.addresses().into_iter().enumerate() {
            is_echoed(&session.at(address), &format!("after {number}"));
            is_echoed_without_session(&StatelessClient::new(address), &format!("other {number}"));
        }
    });
}

#[test]
fn a_session_that_ended_at_one_replica_is_unknown_to_the_one_that_never_had_it() {
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, SERVER, 2);
        let session = HandshakeClient::open(replicas.address(0), "2025-06-18", json!({}), None);
        session.end();
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let response = session.at(replicas.address(1)).exchange(&ping);
        assert_eq!(response.head.status, 404, "{}", response.text());
        // The id of no session is unknown everywhere.
        for address in replicas.addresses() {
            let request = Request::post(ping.to_string()).with("Mcp-Session-Id", "no-session");
            let response = request.with("MCP-Protocol-Version", "2025-06-18").send(address);
            assert_eq!(response.unwrap().head.status, 404);
        }
    });
}
