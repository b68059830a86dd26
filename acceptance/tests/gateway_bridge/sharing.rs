//! Tests of several callers, of both eras, that share one upstream at the same time.

use creole_acceptance::gateway::{HandshakeClient, PendingResponse, ScriptedReplies};
use serde_json::{Value, json};

use crate::driving::modern;
use crate::{A_MOMENT, Bridge, text};

const RESERVED: &str = "io.modelcontextprotocol/";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A server of the handshake era with a resource and these capabilities of resources.
fn with_resource(resources: Value) -> ScriptedReplies {
    let listed = json!({"resources": [{"uri": "file:///p", "name": "p"}]});
    let capabilities = json!({"tools": {"listChanged": true}, "resources": resources});
    ScriptedReplies::new("2025-06-18", capabilities, &["ask"]).answering("resources/list", listed)
}

#[test]
fn a_server_of_both_eras_that_is_spoken_to_in_the_old_one_is_told_nothing_of_the_new_one() {
    let found = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-11-25"],
        "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
    });
    let both = ScriptedReplies::new("2025-11-25", json!({"tools": {}}), &["ask"])
        .answering("server/discover", found);
    let configuration =
        "[server]\nname = \"gateway\"\n\n[upstreams.behind]\nprefix = \"\"\nera = \"handshake\"\n";
    let bridge = Bridge::configured(both, configuration);
    let meta = json!({
        "progressToken": 3, "io.modelcontextprotocol/logLevel": "debug", "traceparent": "00-1-2-01",
    });
    let mut call = bridge.modern().with_meta(meta).begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    called.text("hello");
    assert_eq!(text(&call.answer()), "hello");
    let told: Vec<Value> = bridge.puppets.children().iter().flat_map(|it| it.told()).collect();
    assert!(told.iter().all(|it| it["method"] != "server/discover"), "{told:?}");
    // With a reserved `_meta` member, a server of both eras would treat the request as stateless.
    assert!(told.iter().all(|it| !it.to_string().contains(RESERVED)), "{told:?}");
    // Other `_meta` members are forwarded: tracing needs them.
    let call = told.iter().find(|it| it["method"] == "tools/call").unwrap();
    assert_eq!(call["params"]["_meta"]["traceparent"], "00-1-2-01");
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
    for (call, called) in &mut calls {
        called.text("said");
        let (before, answer) = call.all();
        assert_eq!(text(&answer), "said");
        heard.push(before.iter().map(|it| it["params"]["level"].clone()).collect::<Vec<_>>());
    }
    assert_eq!(heard, [vec!["debug", "error"], vec!["error"]]);
    let told = child.told();
    let levels = told.iter().filter(|it| it["method"] == "logging/setLevel");
    assert_eq!(levels.map(|it| &it["params"]["level"]).collect::<Vec<_>>(), ["debug"]);
}

#[test]
fn unsupported_subscriptions_are_not_acknowledged() {
    let bridge = Bridge::new(with_resource(json!({})));
    let wanted = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["file:///p", "file:///q"],
    }});
    for id in [json!("7"), json!(7)] {
        let mut listening = bridge.modern().begin(&id, "subscriptions/listen", wanted.clone());
        let ack = listening.message();
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
        assert_eq!(ack["params"]["_meta"][SUBSCRIPTION], id, "{ack}");
        let honoured = &ack["params"]["notifications"];
        assert_eq!(honoured["toolsListChanged"], true, "{ack}");
        let watched = honoured.get("resourceSubscriptions").is_none_or(|uris| *uris == json!([]));
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
    let wanted = json!({"notifications": {"resourceSubscriptions": ["file:///p"]}});
    let mut listening = bridge.modern().begin(&json!(1), "subscriptions/listen", wanted);
    let subscribed = bridge.puppets.hears("resources/subscribe");
    subscribed.result(json!({}));
    listening.message();
    for uri in ["file:///people", "file:///p/x"] {
        subscribed.by.tells("notifications/resources/updated", &json!({"uri": uri}));
    }
    let told = listening.message();
    assert_eq!(told["method"], "notifications/resources/updated");
    assert_eq!(
        told["params"]["uri"], "file:///p/x",
        "a resource outside of the folder is not reported"
    );
}

#[test]
fn a_subscriber_that_leaves_early_does_not_end_the_subscription_of_others() {
    let bridge = Bridge::new(with_resource(json!({"subscribe": true})));
    let wanted = json!({"notifications": {"resourceSubscriptions": ["file:///p"]}});
    let listening = bridge.modern().begin(&json!(1), "subscriptions/listen", wanted.clone());
    let asked = bridge.puppets.hears("resources/subscribe");
    listening.hang_up();
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], asked.message["id"]);
    let mut listening = bridge.modern().begin(&json!(2), "subscriptions/listen", wanted);
    bridge.puppets.hears("resources/subscribe").result(json!({}));
    let ack = listening.message();
    let honoured = &ack["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*honoured, json!(["file:///p"]), "{ack}");
}

#[test]
fn subscribers_are_notified_of_every_list_after_a_reconnect() {
    let bridge = Bridge::new(with_resource(json!({"subscribe": true})));
    let wanted = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["file:///p"],
    }});
    let mut listening = bridge.modern().begin(&json!("l"), "subscriptions/listen", wanted);
    let subscribed = bridge.puppets.hears("resources/subscribe");
    subscribed.result(json!({}));
    listening.message();
    subscribed.by.ends();
    let again = bridge.puppets.hears("resources/subscribe");
    assert_eq!(again.message["params"], json!({"uri": "file:///p"}));
    assert_ne!(again.by.pid, subscribed.by.pid);
    again.result(json!({}));
    let mut told = Vec::new();
    while told.len() < 2 {
        let message = listening.message();
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION], "l", "{message}");
        if !told.contains(&message["method"]) {
            told.push(message["method"].clone());
        }
    }
    told.sort_by_key(Value::to_string);
    assert_eq!(told, ["notifications/resources/updated", "notifications/tools/list_changed"]);
}

#[test]
fn an_upstream_that_does_not_acknowledge_a_subscription_delays_no_other_call() {
    let bridge = Bridge::new(with_resource(json!({"subscribe": true})));
    let wanted = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["file:///p"],
    }});
    let mut listening = bridge.modern().begin(&json!(1), "subscriptions/listen", wanted);
    bridge.puppets.hears("resources/subscribe");
    let ack = listening.message();
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
    assert_eq!(ack["params"]["notifications"], json!({"toolsListChanged": true}), "{ack}");
}

/// A server of the newest revision with two resources. The test handles its streams of notifications.
fn watchable() -> ScriptedReplies {
    let found = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"resources": {"subscribe": true}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    let resources = json!([{"uri": "a://1", "name": "1"}, {"uri": "a://2", "name": "2"}]);
    let listed = json!({
        "resultType": "complete", "resources": resources, "ttlMs": 60_000, "cacheScope": "private",
    });
    modern().answering("server/discover", found).answering("resources/list", listed)
}

#[test]
fn a_subscription_of_an_old_client_is_answered_once_the_server_has_acknowledged_it() {
    let bridge = Bridge::new(watchable());
    let client = HandshakeClient::open(bridge.gateway.address(), "2025-06-18", json!({}), None);
    let mut stream = client.listen();
    let mut watched = Vec::new();
    for uri in ["a://1", "a://2"] {
        let mut asked = client.begin(&json!(uri), "resources/subscribe", &json!({"uri": uri}));
        let listen = bridge.puppets.hears("subscriptions/listen");
        watched.push(uri);
        let wanted = &listen.message["params"]["notifications"]["resourceSubscriptions"];
        let mut wanted: Vec<_> = wanted.as_array().unwrap().iter().collect();
        wanted.sort_by_key(|uri| uri.as_str());
        assert_eq!(wanted, watched);
        assert!(
            asked.within(A_MOMENT).is_none(),
            "the response must not come before the upstream's acknowledgement"
        );
        acknowledge(&listen.by, &listen.message);
        assert_eq!(asked.answer()["result"], json!({}));
        let told = json!({"uri": uri, "_meta": {SUBSCRIPTION: listen.message["id"]}});
        listen.by.tells("notifications/resources/updated", &told);
        let heard = next_update(&mut stream);
        assert_eq!(heard["params"], json!({"uri": uri}), "this revision has no subscription ids");
        ends_before(&bridge, uri == "a://2");
    }
    let left = client.request("resources/unsubscribe", &json!({"uri": "a://1"}));
    assert_eq!(left["result"], json!({}));
    let listen = bridge.puppets.hears("subscriptions/listen");
    let wanted = &listen.message["params"]["notifications"]["resourceSubscriptions"];
    assert_eq!(*wanted, json!(["a://2"]));
}

fn acknowledge(by: &creole_acceptance::gateway::ScriptedChild, listen: &Value) {
    let honoured = &listen["params"]["notifications"];
    let params = json!({"notifications": honoured, "_meta": {SUBSCRIPTION: listen["id"]}});
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
    let found = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    let bridge = Bridge::new(modern().answering("server/discover", found));
    let open = || HandshakeClient::open(bridge.gateway.address(), "2025-06-18", json!({}), None);
    let mut listing = bridge.modern().begin(&json!(1), "tools/list", json!({}));
    let heard = bridge.puppets.hears("subscriptions/listen");
    let meta = json!({SUBSCRIPTION: heard.message["id"]});
    let granted = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    heard.by.tells("notifications/subscriptions/acknowledged", &granted);
    assert!(listing.answer().get("error").is_none());
    let listening = |_| {
        let client = open();
        assert_eq!(client.request("tools/list", &json!({}))["result"]["tools"][0]["name"], "ask");
        client.listen()
    };
    let mut streams: Vec<PendingResponse> = (0..SESSIONS).map(listening).collect();
    for stream in &mut streams {
        // A stream that is not open yet receives a later notification.
        let told = (0..100).find_map(|_| {
            heard.by.tells("notifications/tools/list_changed", &json!({"_meta": meta}));
            stream.within(A_MOMENT)
        });
        assert_eq!(told.unwrap()["method"], "notifications/tools/list_changed");
    }
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "all clients share one upstream listener");
}

#[test]
fn an_upstream_that_never_acknowledges_is_still_used() {
    let found = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    let bridge = Bridge::new(modern().answering("server/discover", found));
    let mut listing = bridge.modern().begin(&json!(1), "tools/list", json!({}));
    bridge.puppets.hears("subscriptions/listen");
    assert_eq!(listing.answer()["result"]["tools"][0]["name"], "ask");
    bridge.puppets.hears("notifications/cancelled");
}
