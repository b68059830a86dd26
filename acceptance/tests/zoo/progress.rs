//! Tests that each progress step is sent once, in every era and on every route.

use creole_acceptance::zoo::{ServerRoute, ZooEra, ZooStep};
use serde_json::{Value, json};

use crate::reference::EVERYTHING;
use crate::{command, run_steps};

const CALLS: usize = 40;
const STEPS: u64 = 5;

#[test]
fn each_progress_step_is_sent_once() {
    if command(&EVERYTHING, &EVERYTHING.folder().unwrap()).is_none() {
        return;
    }
    let arguments = json!({"duration": 0.02, "steps": STEPS});
    let steps = vec![ZooStep::Call("trigger-long-running-operation", arguments); CALLS];
    for route in [ServerRoute::Connect, ServerRoute::Serve] {
        for era in [ZooEra::Handshake, ZooEra::Stateless] {
            let record = run_steps(route, &EVERYTHING, era, &steps);
            assert_eq!(record.len(), 1 + CALLS, "{route:?}, {era:?}: {record:?}");
            for entry in &record[1..] {
                assert_eq!(entry.seen["result"]["isError"], Value::Null, "{:?}", entry.seen);
                assert_told_once(&entry.seen, &format!("{route:?}, {era:?}"));
            }
        }
    }
}

/// A call of the stateless era that is interrupted by an input request may miss progress steps while the client fetches
/// the input. No call gets a step twice.
#[track_caller]
fn assert_told_once(seen: &Value, way: &str) {
    let told: Vec<u64> = seen["progress"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["progress"].as_u64().unwrap())
        .collect();
    assert!(told.is_sorted_by(|one, next| one < next), "{way}: {told:?}");
    if seen["asked"] == json!([]) {
        assert_eq!(told, (1..=STEPS).collect::<Vec<_>>(), "{way}");
    } else {
        assert_eq!(told.last(), Some(&STEPS), "{way}");
    }
}
