//! Nothing crosses between callers with keys.

use std::fs;

use creole_acceptance::http::ListeningServer;

use crate::crossing::{self, Crossing, Participant};
use crate::upstream::RememberingServer;

/// The seeds of the runs.
const SEEDS: std::ops::Range<u64> = 0..4;

/// The callers with keys, and their configuration.
const KEYS: &str = r#"
[auth]
keys = [
    { name = "alice", sha256 = "fdedecbe137a31fb1ee084b0a8a53f3a6247bff209ab14e288af55aac40e5ed8" },
    { name = "bob", sha256 = "0a0ae130c452513bcca2c6b1d87601038383846f3313e4b24b768c6d9c64c8f0" },
]
"#;

/// Does random steps as two callers with keys.
fn run_with_keys(affinity: &str) {
    let upstreams = [RememberingServer::start(), RememberingServer::start()];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    fs::write(&file, crossing::configuration(&upstreams, affinity) + KEYS).unwrap();
    let gateway = ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
    let callers = ["alice", "bob"].map(|name| {
        let token = format!("{name}-secret-key-of-the-test");
        Participant { name, token, hidden: &[] }
    });
    for seed in SEEDS {
        Crossing::run(seed, &gateway, &upstreams, &callers);
    }
}

#[test]
fn nothing_crosses_between_callers_with_keys() {
    run_with_keys("principal");
}

/// The steps notice what they are for: this upstream is configured to share one session.
#[test]
#[should_panic(expected = "it has a text of another")]
fn a_shared_session_of_an_upstream_is_noticed() {
    run_with_keys("shared");
}
