//! A replica that the store cannot be reached from, while the others and its clients reach everything.

use creole_acceptance::gateway::HandshakeClient;
use creole_acceptance::http::Request;
use creole_acceptance::replicas::{Link, NetworkedReplicas, RecordingServer, tenant_key};
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::history::{each_network, gateway};
use crate::parked_call::{ParkedCall, client};
use crate::text;

/// The replica without the store.
const PARTITIONED: u8 = 1;

#[test]
fn a_replica_without_the_store_answers_what_it_knows_and_no_call_is_answered_twice() {
    each_network(|network, store| {
        let upstream = RecordingServer::start(network.test_address(Link::Clients));
        let configuration = gateway(1, &upstream)
            + &format!(
                "[upstreams.child]\nprefix = \"child_\"\nera = \"handshake\"\ncommand = {}\n",
                json!(upstream.stdio_command())
            );
        let replicas = NetworkedReplicas::start(network, &store, &configuration);
        let [first, partitioned, third] = [0, PARTITIONED, 2].map(|index| replicas.address(index));
        let key = tenant_key(0);
        let session = HandshakeClient::open(partitioned, "2025-11-25", json!({}), Some(&key));
        let resumable = ParkedCall::begin(partitioned, "handshake_ask", "resumable");
        let lost = ParkedCall::begin(partitioned, "child_ask", "lost");
        replicas.cut(PARTITIONED, Link::Store);

        let stateless = client(partitioned).call("handshake_run", json!({"nonce": "stateless"}));
        assert_eq!(text(&stateless), "stateless");
        let known = session.call("handshake_run", json!({"nonce": "known"}));
        assert_eq!(text(&known), "known");
        // The stream of the first call can be resumed by another replica. That of a child process cannot.
        let taken_over = resumable.settle_at(first);
        assert_eq!(text(&taken_over), resumable.result(), "{taken_over}");
        let told = lost.settle_at(third);
        assert!(told.to_string().contains("effects are unknown"), "{told}");

        replicas.repair(PARTITIONED, Link::Store);
        // The store is reached again.
        eventually("a session is opened", || {
            let client = json!({"name": "late", "version": "1"});
            let params =
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
            let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
            let request =
                Request::post(body.to_string()).with("Authorization", &format!("Bearer {key}"));
            request.send(partitioned).unwrap().head.status == 200
        });
        // A caller that returns again gets the same result or a refusal, whichever replica is asked.
        for address in [partitioned, third] {
            let again = resumable.return_to(address);
            let is_refused = again.get("error").is_some() || again["result"]["isError"] == true;
            assert!(is_refused || text(&again) == resumable.result(), "{again}");
        }
        let executions = upstream.executions();
        let counts = ["stateless", "known", "resumable"].map(|nonce| executions[nonce]);
        assert_eq!(counts, [1, 1, 1], "{executions:?}");
        assert!(!executions.contains_key("lost"), "no caller returned to its owner");
    });
}
