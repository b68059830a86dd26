//! What operators see of a state in a store on the network.

use creole_acceptance::http::Request;
use creole_acceptance::replicas::ReplicaStore;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use super::{Admin, CONFIG, body};

/// What the readiness says about the state. The process is ready in any case.
#[track_caller]
fn state_readiness(admin: &Admin, bearer: &str) -> Value {
    let request = Request::new("GET", "/ready?verbose");
    let answer = admin.send(&request.with("Authorization", &format!("Bearer {bearer}")));
    assert_eq!(answer.head.status, 200, "{}", answer.text());
    body(&answer)["state"].clone()
}

#[test]
fn a_store_that_is_gone_is_reported() {
    let Some(mut store) = ReplicaStore::valkey() else { return };
    let seal = format!("{:?}", store.folder().join("seal"));
    let config = format!("{CONFIG}\n{}", store.table().replace("\"seal\"", &seal));
    let admin = Admin::start_with(tempfile::tempdir().unwrap(), &config, "");
    let bearer = admin.sign_in();
    let view = |up: bool| json!({"backend": "valkey", "up": up, "shared": true});
    assert_eq!(admin.get(&bearer, "/state"), view(true));
    assert_eq!(state_readiness(&admin, &bearer), json!({"up": true}));
    store.end();
    eventually("the outage is noticed", || {
        let state = state_readiness(&admin, &bearer);
        state["up"] == false && state["down_since"].is_string()
    });
    assert_eq!(admin.get(&bearer, "/state"), view(false));
    store.resume();
    eventually("the end of the outage is noticed", || {
        state_readiness(&admin, &bearer) == json!({"up": true})
    });
}
