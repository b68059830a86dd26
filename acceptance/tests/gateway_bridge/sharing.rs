//! Tests of several callers, of both eras, that share one upstream at the same time.

use creole_acceptance::gateway::{HandshakeClient, PendingResponse, ScriptedReplies};
use serde_json::{Value, json};

use crate::driving::modern;
use crate::{A_MOMENT, Bridge, text};

const RESERVED: &str = "io.modelcontextprotocol/";
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A server of the handshake era with a resource and these capabilities of resources.
fn with_resource(resources: Value) -> ScriptedReplies {
    let listed = json!({"resources": [{"uri": "file:///p", "name": "p"}]});
    let capabilities = json!({"tools": {"listChanged": true}, "resources": resources});
    ScriptedReplies::new("2025-06-18", capabilities, &["ask"]).answering("resources/list", listed)
}

#[test]
fn a_server_of_both_eras_that_is_spoken_to_in_the_old_one_is_told_nothing_of_the_new_one() {
    let value = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"],
        "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
    });
    let both = ScriptedReplies::new("2025-11-25", json!({"tools": {}}), &["ask"])
        .answering("server/discover", value);
    let configuration =
        "[server]\nname = \"gateway\"\n\n[upstreams.behind]\nprefix = \"\"\nera = \"handshake\"\n";
    let bridge = Bridge::configured(both, configuration);
    let meta = json!({
        "progressToken": 3, "io.modelcontextprotocol/logLevel": "debug", "traceparent": TRACE,
        "tracestate": "a=1", "baggage": "secret=1",
    });
    let mut call = bridge.modern().with_meta(meta).begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.text("hello");
    assert_eq!(text(&call.answer()), "hello");
    let messages: Vec<Value> =
        bridge.puppets.children().iter().flat_map(|child| child.told()).collect();
    assert!(messages.iter().all(|item| item["method"] != "server/discover"), "{messages:?}");
    // With a reserved `_meta` member, a server of both eras would treat the request as stateless.
    assert!(messages.iter().all(|item| !item.to_string().contains(RESERVED)), "{messages:?}");
    // Other `_meta` members are forwarded: tracing needs them.
    let call = messages.iter().find(|item| item["method"] == "tools/call").unwrap();
    let meta = &call["params"]["_meta"];
    assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(TRACE), &json!("a=1")));
    assert!(meta.get("baggage").is_none(), "{meta}");
}

#[test]
fn two_callers_in_one_session_receive_the_log_messages_of_their_own_level() {
    let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}, "logging": {}}), &["ask"]);
    let bridge = Bridge::new(show);
    let mut calls = Vec::new();
    for level in ["debug", "error"] {
        let meta = json!({"io.modelcontextprotocol/logLevel": level});
        let call = bridge.modern().with_meta(meta).begin_call("ask", json!({}));
        calls.push((call, bridge.puppets.hears("tools/call")));
    }
    let child = calls[0].1.by.clone();
    assert_eq!(child.pid, calls[1].1.by.pid, "both callers share a session");
    for level in ["debug", "error"] {
        child.tells("notifications/message", &json!({"level": level, "data": level}));
    }
    let mut heard = Vec::new();
    for (call, received) in &mut calls {
        received.text("said");
        let (before, response) = call.all();
        assert_eq!(text(&response), "said");
        heard.push(before.iter().map(|value| value["params"]["level"].clone()).collect::<Vec<_>>());
    }
    assert_eq!(heard, [vec!["debug", "error"], vec!["error"]]);
    let messages = child.told();
    let levels = messages.iter().filter(|value| value["method"] == "logging/setLevel");
    assert_eq!(levels.map(|value| &value["params"]["level"]).collect::<Vec<_>>(), ["debug"]);
}

#[test]
fn unsupported_subscriptions_are_not_acknowledged() {
    let bridge = Bridge::new(with_resource(json!({})));
    let expected = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["file:///p", "file:///q"],
    }});
    for id in [json!("7"), json!(7)] {
        let mut listening = bridge.modern().begin(&id, "subscriptions/listen", expected.clone());
        let ack = listening.message();
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
        assert_eq!(ack["params"]["_meta"][SUBSCRIPTION], id, "{ack}");
        let granted = &ack["params"]["notifications"];
        assert_eq!(granted["toolsListChanged"], true, "{ack}");
        let watched = granted.get("resourceSubscriptions").is_none_or(|uris| *uris == json!([]));
        assert!(watched, "{ack}");
    }
    assert!(
        bridge.puppets.within(A_MOMENT).is_none(),
        "the upstream does not support `resources/subscribe`"
    );
}

#[test]
fn who_watches_a_folder_is_told_of_what_is_in_it() {
    let bridge = Bridge::new(with_resource(json!({"subscribe": true})));
    let expected = json!({"notifications": {"resourceSubscriptions": ["file:///p"]}});
    let mut listening = bridge.modern().begin(&json!(1), "subscriptions/listen", expected);
    let subscribed = bridge.puppets.hears("resources/subscribe");
    subscribed.result(json!({}));
    listening.message();
    for uri in ["file:///people", "file:///p/x"] {
        subscribed.by.tells("notifications/resources/updated", &json!({"uri": uri}));
    }
    let message = listening.message();
    assert_eq!(message["method"], "notifications/resources/updated");
    assert_eq!(
        message["params"]["uri"], "file:///p/x",
        "a resource outside of the folder is not reported"
    );
}

#[test]
fn a_subscriber_that_leaves_early_does_not_end_the_subscription_of_others() {
    let bridge = Bridge::new(with_resource(json!({"subscribe": true})));
    let expected = json!({"notifications": {"resourceSubscriptions": ["file:///p"]}});
    let listening = bridge.modern().begin(&json!(1), "subscriptions/listen", expected.clone());
    let message = bridge.puppets.hears("resources/subscribe");
    listening.hang_up();
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], message.message["id"]);
    let mut listening = bridge.modern().begin(&json!(2), "subscriptions/listen", expected);
    bridge.puppets.hears("resources/subscribe").result(json!({}));
    let ack = listening.message();
    let granted = &ack["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*granted, json!(["file:///p"]), "{ack}");
}

#[test]
fn subscribers_are_notified_of_every_list_after_a_reconnect() {
    let bridge = Bridge::new(with_resource(json!({"subscribe": true})));
    let expected = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["file:///p"],
    }});
    let mut listening = bridge.modern().begin(&json!("l"), "subscriptions/listen", expected);
    let subscribed = bridge.puppets.hears("resources/subscribe");
    subscribed.result(json!({}));
    listening.message();
    subscribed.by.ends();
    let repeated = bridge.puppets.hears("resources/subscribe");
    assert_eq!(repeated.message["params"], json!({"uri": "file:///p"}));
    assert_ne!(repeated.by.pid, subscribed.by.pid);
    repeated.result(json!({}));
    let mut messages = Vec::new();
    while messages.len() < 2 {
        let message = listening.message();
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION], "l", "{message}");
        if !messages.contains(&message["method"]) {
            messages.push(message["method"].clone());
        }
    }
    messages.sort_by_key(Value::to_string);
    assert_eq!(messages, ["notifications/resources/updated", "notifications/tools/list_changed"]);
}

#[test]
fn an_upstream_that_does_not_acknowledge_a_subscription_delays_no_other_call() {
    let bridge = Bridge::new(with_resource(json!({"subscribe": true})));
    let expected = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["file:///p"],
    }});
    let mut listening = bridge.modern().begin(&json!(1), "subscriptions/listen", expected);
    bridge.puppets.hears("resources/subscribe");
    let ack = listening.message();
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
    assert_eq!(ack["params"]["notifications"], json!({"toolsListChanged": true}), "{ack}");
}

/// A server of the newest revision with two resources. The test handles its streams of notifications.
fn watchable() -> ScriptedReplies {
    let value = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"resources": {"subscribe": true}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    let resources = json!([{"uri": "a://1", "name": "1"}, {"uri": "a://2", "name": "2"}]);
    let listed = json!({
        "resultType": "complete", "resources": resources, "ttlMs": 60_000, "cacheScope": "private",
    });
    modern().answering("server/discover", value).answering("resources/list", listed)
}

#[test]
fn a_subscription_of_an_old_client_is_answered_once_the_server_has_acknowledged_it() {
    let bridge = Bridge::new(watchable());
    let client = HandshakeClient::open(bridge.gateway.address(), "2025-06-18", json!({}), None);
    let mut stream = client.listen();
    let mut watched = Vec::new();
    for uri in ["a://1", "a://2"] {
        let mut pending = client.begin(&json!(uri), "resources/subscribe", &json!({"uri": uri}));
        let listen = bridge.puppets.hears("subscriptions/listen");
        watched.push(uri);
        let expected = &listen.message["params"]["notifications"]["resourceSubscriptions"];
        let mut wanted: Vec<_> = expected.as_array().unwrap().iter().collect();
        wanted.sort_by_key(|uri| uri.as_str());
        assert_eq!(wanted, watched);
        assert!(
            pending.within(A_MOMENT).is_none(),
            "the response must not come before the upstream's acknowledgement"
        );
        acknowledge(&listen.by, &listen.message);
        assert_eq!(pending.answer()["result"], json!({}));
        let message = json!({"uri": uri, "_meta": {SUBSCRIPTION: listen.message["id"]}});
        listen.by.tells("notifications/resources/updated", &message);
        let text = next_update(&mut stream);
        assert_eq!(text["params"], json!({"uri": uri}), "this revision has no subscription ids");
        ends_before(&bridge, uri == "a://2");
    }
    let left = client.request("resources/unsubscribe", &json!({"uri": "a://1"}));
    assert_eq!(left["result"], json!({}));
    let listen = bridge.puppets.hears("subscriptions/listen");
    let expected = &listen.message["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*expected, json!(["a://2"]));
}

fn acknowledge(by: &creole_acceptance::gateway::ScriptedChild, listen: &Value) {
    let granted = &listen["params"]["notifications"];
    let params = json!({"notifications": granted, "_meta": {SUBSCRIPTION: listen["id"]}});
    by.tells("notifications/subscriptions/acknowledged", &params);
}

/// Waits until the earlier stream is cancelled, if there is one that the new stream replaces.
fn ends_before(bridge: &Bridge, is_there_one: bool) {
    if is_there_one {
        bridge.puppets.hears("notifications/cancelled");
    }
}

fn next_update(stream: &mut PendingResponse) -> Value {
    loop {
        let message = stream.message();
        if message["method"] == "notifications/resources/updated" {
            return message;
        }
    }
}

#[test]
fn many_sessions_are_one_listener_at_the_server() {
    const SESSIONS: usize = 60;
    let value = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    let bridge = Bridge::new(modern().answering("server/discover", value));
    let open = || HandshakeClient::open(bridge.gateway.address(), "2025-06-18", json!({}), None);
    let mut listing = bridge.modern().begin(&json!(1), "tools/list", json!({}));
    let message = bridge.puppets.hears("subscriptions/listen");
    let meta = json!({SUBSCRIPTION: message.message["id"]});
    let granted = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    message.by.tells("notifications/subscriptions/acknowledged", &granted);
    assert!(listing.answer().get("error").is_none());
    let listening = |_| {
        let client = open();
        assert_eq!(client.request("tools/list", &json!({}))["result"]["tools"][0]["name"], "ask");
        client.listen()
    };
    let mut streams: Vec<PendingResponse> = (0..SESSIONS).map(listening).collect();
    for stream in &mut streams {
        // A stream that is not open yet receives a later notification.
        let text = (0..100).find_map(|_| {
            message.by.tells("notifications/tools/list_changed", &json!({"_meta": meta}));
            stream.within(A_MOMENT)
        });
        assert_eq!(text.unwrap()["method"], "notifications/tools/list_changed");
    }
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "all clients share one upstream listener");
}

#[test]
fn an_upstream_that_never_acknowledges_is_still_used() {
    let value = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    let bridge = Bridge::new(modern().answering("server/discover", value));
    let mut listing = bridge.modern().begin(&json!(1), "tools/list", json!({}));
    bridge.puppets.hears("subscriptions/listen");
    assert_eq!(listing.answer()["result"]["tools"][0]["name"], "ask");
    bridge.puppets.hears("notifications/cancelled");
}
