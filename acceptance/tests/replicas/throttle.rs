//! Failed logins that count at all replicas together.

use std::net::SocketAddr;
use std::time::Duration;

use creole_acceptance::http::Request;
use creole_acceptance::replicas::{ReplicaSet, each_store};
use creole_test_wait::blocking::delay;

/// A server for a caller with a key.
const SERVER: &str = "[server]\nname = \"replicated\"\npacks = [\"hello\"]\n[auth]\nkeys = [\n\
    { name = \"alice\", sha256 = \"fdedecbe137a31fb1ee084b0a8a53f3a6247bff209ab14e288af55aac40e5ed8\" },\n]\n";

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

/// How many wrong keys of an address are free.
const FREE_ATTEMPTS: usize = 20;

/// The status of a request with a key.
#[track_caller]
fn status(address: SocketAddr, key: &str) -> u16 {
    let request = Request::post(LIST).with("Authorization", &format!("Bearer {key}"));
    request.send(address).unwrap().head.status
}

#[test]
fn wrong_keys_count_at_all_replicas_together() {
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, SERVER, 2);
        let [first, second] = [0, 1].map(|index| replicas.address(index));
        // The second replica alone would refuse none of the few wrong keys that it gets.
        let is_refused_at_both = || {
            let is_refused = (0..=FREE_ATTEMPTS).any(|_| status(first, "wrong") == 429);
            delay(Duration::from_millis(300));
            is_refused && status(second, "wrong") == 429
        };
        assert!((0..FREE_ATTEMPTS / 2).any(|_| is_refused_at_both()), "they count alone");
        assert_ne!(status(second, "alice-secret-key-of-the-test"), 429, "a right key is admitted");
    });
}
