//! Tests of the table `[state]`.

use crate::plan::state::{StatePlan, StoreKind};
use crate::plan::tests::{plan, refusal};

const SERVER: &str = "[server]\nname = \"team\"\n[state]\n";

fn state(text: &str) -> StatePlan {
    plan(&format!("{SERVER}{text}")).state.unwrap()
}

#[test]
fn an_address_selects_the_kind_of_the_store() {
    let keys = "keys_file = \"seal\"\n";
    assert_eq!(state("file = \"s.sqlite\"").file().unwrap().to_str(), Some("s.sqlite"));
    for scheme in ["valkey", "valkeys", "redis", "rediss"] {
        let state =
            state(&format!("{keys}url = \"{scheme}://127.0.0.1:6379/0\"\nwait_replicas = 1"));
        let StatePlan::Store(store) = &state else { panic!("{state:?}") };
        let expected = StoreKind::Valkey { wait_replicas: 1, is_cluster: false, sentinel: None };
        assert_eq!((&store.kind, &*store.name), (&expected, "creole"));
    }
    let state = state(&format!("{keys}url = \"postgres://ann@127.0.0.1/team\"\nname = \"team\""));
    let StatePlan::Store(store) = &state else { panic!("{state:?}") };
    assert_eq!(store.kind, StoreKind::Postgres { listen_url: None });
    assert_eq!(state.to_string(), "postgres://127.0.0.1/team as `team`");
    let listen_url = "listen_url = \"postgres://ann@127.0.0.1:5432/team\"\n";
    let pooled =
        self::state(&format!("{keys}{listen_url}url = \"postgres://ann@127.0.0.1:6432/team\""));
    let StatePlan::Store(store) = &pooled else { panic!("{pooled:?}") };
    assert!(matches!(&store.kind, StoreKind::Postgres { listen_url: Some(_) }), "{store:?}");
}

#[test]
fn servers_of_one_process_have_names_of_their_own() {
    let text = "keys_file = \"seal\"\nurl = \"valkey://127.0.0.1\"\nname = \"team\"";
    let text =
        format!("{}\n[state]\n{text}", "[[servers]]\nname = \"one\"\n[[servers]]\nname = \"Two\"");
    let plans = plan(&text).split();
    let names: Vec<String> = plans
        .iter()
        .map(|plan| match plan.state.as_ref().unwrap() {
            StatePlan::Store(store) => store.name.clone(),
            file @ StatePlan::File(_) => panic!("{file:?}"),
        })
        .collect();
    assert_eq!(names[0], "team");
    assert!(names[1].starts_with("team-") && names[1].len() == 13, "{names:?}");
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let url = "url = \"valkey://127.0.0.1\"\nkeys_file = \"seal\"\n";
    let postgres = "url = \"postgres://ann@127.0.0.1/team\"\nkeys_file = \"seal\"\n";
    for (text, reason) in [
        ("url = \"valkey://127.0.0.1\"".to_owned(), "`url` needs `keys_file`"),
        (format!("{url}file = \"s.sqlite\""), "`url` and `file` exclude each other"),
        (format!("{url}password = \"x\"\npassword_file = \"y\""), "exclude each other"),
        (format!("{url}name = \"A Team\""), "invalid name `A Team`"),
        (format!("{url}listen_url = \"postgres://a/b\""), "only valid for PostgreSQL"),
        (format!("{postgres}cluster = true"), "only valid for Valkey and Redis"),
        ("keys_file = \"seal\"\nwait_replicas = 1".to_owned(), "has no effect without `url`"),
        ("file = \"s.sqlite\"\nname = \"team\"".to_owned(), "has no effect without `url`"),
        ("url = \"mysql://ann:hunter2@host\"\nkeys_file = \"seal\"".to_owned(), "no known scheme"),
        ("url = \"valkey://kv.example.com\"\nkeys_file = \"seal\"".to_owned(), "valkeys://"),
        ("url = \"valkey://ann:hunter2@127.0.0.1\"\nkeys_file = \"seal\"".to_owned(), "password"),
    ] {
        let refused = refusal(&format!("{SERVER}{text}")).to_string();
        assert!(refused.contains(reason), "{text}: {refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
