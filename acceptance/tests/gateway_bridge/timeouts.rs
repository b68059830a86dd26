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
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    let no = bridge.puppets.next();
    assert_eq!(no.message["result"], json!({"action": "cancel"}));
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], received.message["id"]);
    let responses = json!({only_key(&request): named("Ann")});
    let late = client.again("ask", json!({}), &request["requestState"], responses);
    assert_eq!(late["error"]["code"], -32602, "{late}");
    assert_eq!(late["error"]["data"]["reason"], "state_expired", "{late}");
    // The session is free again.
    let mut call = client.begin_call("ask", json!({}));
    let next = bridge.puppets.hears("tools/call");
    assert_eq!(next.by.pid, received.by.pid);
    next.text("next");
    assert_eq!(text(&call.answer()), "next");
}

#[test]
fn a_silent_upstream_times_out_and_its_late_response_is_dropped() {
    let bridge = Bridge::configured(asking(), HASTE);
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    // An incomplete response counts as no response.
    received.by.writes("{\"jsonrpc\":\"2.0\",");
    let response = call.answer();
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert_eq!(response["error"]["data"]["reason"], "timeout", "{response}");
    received
        .by
        .writes(&format!("\"id\":{},\"result\":{{\"content\":[]}}}}\n", received.message["id"]));
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], received.message["id"]);
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
    let received = bridge.puppets.hears("tools/call");
    let token = &received.message["params"]["_meta"]["progressToken"];
    for step in 1..=4 {
        delay(Duration::from_millis(400));
        let message = json!({"progressToken": token, "progress": step});
        received.by.tells("notifications/progress", &message);
    }
    received.text("slowly");
    let (before, response) = call.all();
    assert_eq!((before.len(), text(&response)), (4, "slowly"));
}

/// Starts the upstream and opens its session. On a busy machine that takes longer than the timeout of a call.
fn warm_up(bridge: &Bridge) {
    let glance = Duration::from_millis(20);
    loop {
        let mut call = bridge.modern().begin_call("ask", json!({}));
        let response = loop {
            if let Some(message) = bridge.puppets.within(glance)
                && message.message["method"] == "tools/call"
            {
                message.text("warm");
            }
            if let Some(response) = call.within(glance) {
                break response;
            }
        };
        if response.get("result").is_some() {
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
    let received = bridge.puppets.hears("tools/call");
    let token = received.message["params"]["_meta"]["progressToken"].clone();
    let (by, (stop, stopped)) = (received.by.clone(), channel::<()>());
    let telling = thread::spawn(move || {
        for step in 1.. {
            let message = json!({"progressToken": token, "progress": step});
            by.tells("notifications/progress", &message);
            let waited = stopped.recv_timeout(Duration::from_millis(100));
            if waited != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    });
    let (before, response) = call.all();
    assert!(!before.is_empty());
    assert_eq!(response["error"]["code"], -32603, "{response}");
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], received.message["id"]);
    drop(stop);
    telling.join().unwrap();
}
