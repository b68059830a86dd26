//! Limits that hold for all replicas together.

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::replicas::{ReplicaSet, each_store};
use serde_json::json;

use crate::text;

/// The limit, and how often each replica is asked.
const LIMIT: usize = 20;
const CALLS: usize = 15;

#[test]
fn a_shared_rate_limit_counts_the_calls_of_all_replicas() {
    let server = format!(
        "[server]\nname = \"replicated\"\npacks = [\"echo\"]\n[[server.chain]]\nkind = \"rate-limit\"\n\
         principal_calls = {LIMIT}\nseconds = 86400\nshared = true\n"
    );
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, &server, 3);
        let mut answered = 0;
        for number in 0..CALLS * 3 {
            let client = StatelessClient::new(replicas.next_address());
            let response = client.call("echo", json!({"message": format!("call {number}")}));
            match response.get("error") {
                None if response["result"]["isError"] != true => {
                    assert!(text(&response).contains(&format!("call {number}")), "{response}");
                    answered += 1;
                }
                _ => assert!(response.to_string().contains("rate limit"), "{response}"),
            }
        }
        assert_eq!(answered, LIMIT);
    });
}
