//! Tests of the notifications that an HTTP client receives from the upstream session of its calls.

use creole_acceptance::gateway::{
    HandshakeClient, PendingResponse, ScriptedChild, ScriptedReplies, StatelessClient,
};
use serde_json::{Value, json};

use crate::{A_MOMENT, ALICE, BOB, Bridge};

fn open(bridge: &Bridge, key: Option<&str>) -> HandshakeClient {
    HandshakeClient::open(bridge.gateway.address(), "2025-11-25", json!({}), key)
}

/// Calls the tool and returns the child that received the call.
fn call(bridge: &Bridge, client: &HandshakeClient) -> ScriptedChild {
    let params = json!({"name": "ask", "arguments": {}});
    let mut call = client.begin(&json!(2), "tools/call", &params);
    let received = bridge.puppets.hears("tools/call");
    received.text("done");
    assert_eq!(call.answer()["result"]["content"][0]["text"], "done");
    received.by
}

/// Reads until a message with this method arrives.
fn wait_for_notification(listening: &mut PendingResponse, method: &str) -> Value {
    loop {
        let message = listening.message();
        if message["method"] == method {
            return message["params"].clone();
        }
    }
}

#[test]
fn log_messages_outside_of_calls_reach_the_session_that_called_and_no_other() {
    let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}, "logging": {}}), &["ask"]);
    let bridge = Bridge::with_keys(show);
    let (alice, bob) = (open(&bridge, Some(ALICE)), open(&bridge, Some(BOB)));
    let (mut alices, mut bobs) = (alice.listen(), bob.listen());
    let server = call(&bridge, &alice);
    call(&bridge, &bob);
    for (level, data) in [("debug", "not wanted"), ("warning", "first"), ("error", "second")] {
        server.tells("notifications/message", &json!({"level": level, "data": data}));
    }
    let said = |listening: &mut PendingResponse| {
        wait_for_notification(listening, "notifications/message")["data"].clone()
    };
    assert_eq!((said(&mut alices), said(&mut alices)), (json!("first"), json!("second")));
    assert!(bobs.within(A_MOMENT).is_none(), "it is the session of another principal");
}

#[test]
fn a_resource_is_subscribed_in_the_session_of_the_calls_and_list_changes_arrive_there() {
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    let show = ScriptedReplies::new("2025-06-18", capabilities, &["ask"])
        .answering("resources/list", json!({"resources": [{"uri": "a://b", "name": "b"}]}))
        .leaving("tools/list");
    let bridge = Bridge::with_keys(show);
    let tools = |names: &[&str]| {
        let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
        json!({"tools": names.iter().map(tool).collect::<Vec<_>>()})
    };
    bridge.puppets.hears("tools/list").result(tools(&["ask"]));
    let (alice, bob) = (open(&bridge, Some(ALICE)), open(&bridge, Some(BOB)));
    let (mut alices, mut bobs) = (alice.listen(), bob.listen());
    let mut subscribing = alice.begin(&json!(3), "resources/subscribe", &json!({"uri": "a://b"}));
    let subscribed = bridge.puppets.hears("resources/subscribe");
    subscribed.result(json!({}));
    subscribing.answer();
    let server = call(&bridge, &alice);
    assert_eq!(server.pid, subscribed.by.pid);
    server.tells("notifications/resources/updated", &json!({"uri": "a://b"}));
    assert_eq!(
        wait_for_notification(&mut alices, "notifications/resources/updated"),
        json!({"uri": "a://b"})
    );

    server.tells("notifications/tools/list_changed", &json!({}));
    wait_for_notification(&mut alices, "notifications/tools/list_changed");
    let mut listing = alice.begin(&json!(4), "tools/list", &json!({}));
    // The shared list is fetched again too, because it may have changed as well.
    loop {
        if let Some(message) = bridge.puppets.within(A_MOMENT / 10) {
            assert_eq!(message.message["method"], "tools/list", "{}", message.message);
            let is_alices = message.by.pid == server.pid;
            message.result(tools(if is_alices { &["ask", "added"] } else { &["ask"] }));
        }
        if let Some(response) = listing.within(A_MOMENT / 10) {
            let names = response["result"]["tools"].as_array().unwrap();
            assert_eq!(names.len(), 2, "{response}");
            break;
        }
    }
    assert!(bobs.within(A_MOMENT).is_none(), "it is the session of another principal");
}

/// Opens a stream for all notifications of a client of the stateless era.
fn listen(client: &StatelessClient) -> PendingResponse {
    let expected = json!({
        "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["a://b"],
    });
    let params = json!({"notifications": expected});
    let mut listening = client.begin(&json!("listen"), "subscriptions/listen", params);
    let acknowledged =
        wait_for_notification(&mut listening, "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["notifications"]["resourceSubscriptions"], json!(["a://b"]));
    listening
}

/// Calls the tool for a client of the stateless era and returns the child that received the call.
fn call_alone(bridge: &Bridge, client: &StatelessClient) -> ScriptedChild {
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.text("done");
    assert_eq!(call.answer()["result"]["content"][0]["text"], "done");
    received.by
}

#[test]
fn a_stateless_client_receives_the_notifications_of_the_session_of_its_calls() {
    let capabilities = json!({
        "tools": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
    });
    let show = ScriptedReplies::new("2025-06-18", capabilities, &["ask"])
        .answering("resources/list", json!({"resources": [{"uri": "a://b", "name": "b"}]}))
        .answering("resources/subscribe", json!({}))
        .answering("resources/unsubscribe", json!({}));
    let told = [
        ("notifications/resources/updated", json!({"uri": "a://b"})),
        ("notifications/resources/list_changed", json!({})),
        ("notifications/tools/list_changed", json!({})),
    ];
    let kinds = [json!({}), json!({"elicitation": {}}), json!({"elicitation": {}, "roots": {}})];
    for (able, has_keys) in kinds.iter().flat_map(|able| [(able, true), (able, false)]) {
        let bridge = match has_keys {
            true => Bridge::with_keys(show.clone()),
            false => Bridge::new(show.clone()),
        };
        let client = bridge.modern().that_can(able.clone());
        let alice = if has_keys { client.with_key(ALICE) } else { client.clone() };
        let mut alices = listen(&alice);
        let server = call_alone(&bridge, &alice);
        let mut others = has_keys.then(|| {
            let bob = client.with_key(BOB);
            let bobs = listen(&bob);
            assert_ne!(call_alone(&bridge, &bob).pid, server.pid);
            bobs
        });
        for (method, params) in &told {
            server.tells(method, params);
            let message = wait_for_notification(&mut alices, method);
            assert_eq!(message["uri"], params["uri"], "{able}");
        }
        if let Some(bobs) = &mut others {
            let message = bobs.within(A_MOMENT);
            assert!(message.is_none(), "it is the session of another principal: {message:?}");
        }
    }
}
