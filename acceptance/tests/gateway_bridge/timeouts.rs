//! Tests of timeouts: late responses and missing responses.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use creole_test_wait::blocking::delay;
use serde_json::json;

use crate::{Bridge, asking, form, named, only_key, text};

/// One second for input responses of callers, and one for responses of upstreams.
const HASTE: &str = r#"
[server]
name = "gateway"

[server.limits]
input_timeout_seconds = 1

[upstreams.behind]
prefix = ""
timeout_seconds = 1
"#;

#[test]
fn an_abandoned_call_is_declined_and_its_request_state_expires() {
    let bridge = Bridge::configured(asking(), HASTE);
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    let asked = call.answer()["result"].clone();
    let no = bridge.puppets.next();
    assert_eq!(no.message["result"], json!({"action": "cancel"}));
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], called.message["id"]);
    let answers = json!({only_key(&asked): named("Ann")});
    let late = client.again("ask", json!({}), &asked["requestState"], answers);
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert_eq!(late["error"]["data"]["reason"], "state_expired", "{late}");
    // The session is free again.
    let mut call = client.begin_call("ask", json!({}));
    let next = bridge.puppets.hears("tools/call");
    assert_eq!(next.by.pid, called.by.pid);
    next.text("next");
    assert_eq!(text(&call.answer()), "next");
}

#[test]
fn a_silent_upstream_times_out_and_its_late_response_is_dropped() {
    let bridge = Bridge::configured(asking(), HASTE);
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    // An incomplete response counts as no response.
    called.by.writes("{\"jsonrpc\":\"2.0\",");
    let answer = call.answer();
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "timeout", "{answer}");
    called.by.writes(&format!("\"id\":{},\"result\":{{\"content\":[]}}}}\n", called.message["id"]));
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], called.message["id"]);
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let next = bridge.puppets.hears("tools/call");
    next.text("in time");
    assert_eq!(text(&call.answer()), "in time");
}

#[test]
fn a_server_that_shows_progress_is_not_silent() {
    let bridge = Bridge::configured(asking(), HASTE);
    let client = bridge.modern().with_meta(json!({"progressToken": "p"}));
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    let token = &called.message["params"]["_meta"]["progressToken"];
    for step in 1..=4 {
        delay(Duration::from_millis(400));
        let told = json!({"progressToken": token, "progress": step});
        called.by.tells("notifications/progress", &told);
    }
    called.text("slowly");
    let (before, answer) = call.all();
    assert_eq!((before.len(), text(&answer)), (4, "slowly"));
}

/// Starts the upstream and opens its session. On a busy machine that takes longer than the timeout of a call.
fn warm_up(bridge: &Bridge) {
    let glance = Duration::from_millis(20);
    loop {
        let mut call = bridge.modern().begin_call("ask", json!({}));
        let answer = loop {
            if let Some(heard) = bridge.puppets.within(glance)
                && heard.message["method"] == "tools/call"
            {
                heard.text("warm");
            }
            if let Some(answer) = call.within(glance) {
                break answer;
            }
        };
        if answer.get("result").is_some() {
            while bridge.puppets.within(crate::A_MOMENT).is_some() {}
            return;
        }
    }
}

#[test]
fn an_upstream_that_sends_progress_for_ever_is_given_up() {
    let limits = "[server.limits]\ncall_timeout_seconds = 2\ncall_timeout_max_seconds = 3\n";
    let behind = "[upstreams.behind]\nprefix = \"\"\n";
    let bridge = Bridge::configured(asking(), &format!("[server]\n{limits}{behind}"));
    warm_up(&bridge);
    let client = bridge.modern().with_meta(json!({"progressToken": "p"}));
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    let token = called.message["params"]["_meta"]["progressToken"].clone();
    let (by, (stop, stopped)) = (called.by.clone(), channel::<()>());
    let telling = thread::spawn(move || {
        for step in 1.. {
            let told = json!({"progressToken": token, "progress": step});
            by.tells("notifications/progress", &told);
            let waited = stopped.recv_timeout(Duration::from_millis(100));
            if waited != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    });
    let (before, answer) = call.all();
    assert!(!before.is_empty());
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], called.message["id"]);
    drop(stop);
    telling.join().unwrap();
}
