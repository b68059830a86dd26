//! Nothing crosses between two people with two roles, or between callers with keys.

use std::fs;

use creole_acceptance::http::ListeningServer;

use crate::crossing::{self, Crossing, Participant};
use crate::people::Person;
use crate::upstream::RememberingServer;
use crate::{TokenServer, provider};

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

/// What does not exist for the role `reader`, which `bob` has.
const HIDDEN_FROM_READERS: &[&str] = &["second__note"];

/// The policy that hides it.
const POLICY: &str = r#"
[policy]
default = "allow"

[[policy.rules]]
name = "readers write nothing to the second upstream"
effect = "deny"
roles = ["reader"]
tools = ["second__note"]
"#;

#[test]
fn nothing_crosses_between_people_who_log_in() {
    let Some(provider) = provider(&["--forms"]) else { return };
    let upstreams = [RememberingServer::start(), RememberingServer::start()];
    let configuration = crossing::configuration(&upstreams, "principal");
    // A token that is bound to a key would need a proof for each request.
    let issuer = provider.issuer();
    let issuers = format!(
        "dpop = \"off\"\n[auth.issuers.company]\nissuer = \"{issuer}\"\nroles_claim = \"roles\"\n"
    );
    let gateway = TokenServer::configured(&(configuration + POLICY), &issuers);
    let callers = [("alice", &[][..]), ("bob", HIDDEN_FROM_READERS)].map(|(name, hidden)| {
        let token = Person::new(name).log_in(&gateway.url());
        Participant { name, token, hidden }
    });
    for seed in SEEDS {
        Crossing::run(seed, &gateway.server, &upstreams, &callers);
    }
}
