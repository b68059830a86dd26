//! What operators see of a state in a store on the network.

use std::time::Duration;

use creole_acceptance::http::Request;
use creole_acceptance::peers::faketime::FastClock;
use creole_acceptance::peers::if_installed;
use creole_acceptance::replicas::ReplicaStore;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use super::{Admin, CONFIG, HTTP_PLACE, body};

/// What the readiness says about the state. The process is ready in any case.
#[track_caller]
fn state_readiness(admin: &Admin, bearer: &str) -> Value {
    let request = Request::new("GET", "/ready?verbose");
    let answer = admin.send(&request.with("Authorization", &format!("Bearer {bearer}")));
    assert_eq!(answer.head.status, 200, "{}", answer.text());
    body(&answer)["state"].clone()
}

/// Whether the overview says that the state is gone.
#[track_caller]
fn has_alert(admin: &Admin, bearer: &str) -> bool {
    let overview = admin.get(bearer, "/overview");
    overview["alerts"].as_array().unwrap().iter().any(|alert| alert["code"] == "state-down")
}

/// A configuration with a store.
fn with_store(store: &ReplicaStore) -> String {
    let seal = format!("{:?}", store.folder().join("seal"));
    format!("{CONFIG}\n{}", store.table().replace("\"seal\"", &seal))
}

/// Takes the difference between the clocks out of what the readiness says.
#[track_caller]
fn take_skew_ms(state: &mut Value) -> i64 {
    let skew = state.as_object_mut().unwrap().remove("clock_skew_ms");
    skew.and_then(|skew| skew.as_i64()).unwrap_or_else(|| panic!("{state}"))
}

#[test]
fn the_difference_between_the_clocks_of_a_process_and_of_its_store_is_reported() {
    let ahead = Duration::from_secs(600);
    let Some(clock) = if_installed("libfaketime", FastClock::ahead_by(ahead)) else { return };
    for store in [ReplicaStore::valkey(), ReplicaStore::postgres()].into_iter().flatten() {
        let config = with_store(&store);
        let start = |change: &dyn Fn(&mut std::process::Command)| {
            let folder = tempfile::tempdir().unwrap();
            let admin = Admin::start_changed(folder, &config, "", HTTP_PLACE, change);
            let bearer = admin.sign_in();
            let mut state = state_readiness(&admin, &bearer);
            let skew_ms = take_skew_ms(&mut state);
            assert_eq!(state, json!({"up": true}));
            skew_ms
        };
        let skew_ms = start(&|command| clock.show_to(command));
        assert!((590_000..610_000).contains(&skew_ms), "{skew_ms}");
        let skew_ms = start(&|_| {});
        assert!((-5_000..5_000).contains(&skew_ms), "{skew_ms}");
    }
}

#[test]
fn a_store_that_is_gone_is_reported() {
    let Some(mut store) = ReplicaStore::valkey() else { return };
    let admin = Admin::start_with(tempfile::tempdir().unwrap(), &with_store(&store), "");
    let bearer = admin.sign_in();
    let view = |up: bool| json!({"backend": "valkey", "up": up, "shared": true});
    assert_eq!(admin.get(&bearer, "/state"), view(true));
    let is_up = || {
        let mut state = state_readiness(&admin, &bearer);
        take_skew_ms(&mut state);
        state == json!({"up": true})
    };
    assert!(is_up());
    assert!(!has_alert(&admin, &bearer));
    store.end();
    eventually("the outage is noticed", || {
        let state = state_readiness(&admin, &bearer);
        state["up"] == false && state["down_since"].is_string()
    });
    assert_eq!(admin.get(&bearer, "/state"), view(false));
    assert!(has_alert(&admin, &bearer));
    store.resume();
    eventually("the end of the outage is noticed", is_up);
}

#[test]
fn each_replica_knows_the_versions_and_configurations_of_the_others() {
    let Some(store) = ReplicaStore::valkey() else { return };
    let start = |config: &str| Admin::start_with(tempfile::tempdir().unwrap(), config, "");
    let config = with_store(&store);
    let (one, two) = (start(&config), start(&format!("{config}\n# Another text.\n")));
    let bearer = one.sign_in();
    let replicas = || one.get(&bearer, "/replicas")["items"].as_array().unwrap().clone();
    let is_described = |other: &Value| other["version"] != "";
    eventually("the other replica", || replicas().get(1).is_some_and(is_described));
    let [this, other] = <[Value; 2]>::try_from(replicas()).unwrap();
    assert_eq!((&this["self"], &other["self"]), (&json!(true), &json!(false)));
    let seen_by_itself = two.get(&two.sign_in(), "/replicas")["items"][0].clone();
    for member in ["name", "version", "config"] {
        assert_eq!(other[member], seen_by_itself[member], "{member}");
        assert_eq!(other[member] == this[member], member == "version", "{member}");
    }
}
