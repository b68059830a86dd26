//! Tests of the messages to and from upstreams of the handshake era during calls.

use creole_acceptance::gateway::{HandshakeClient, ScriptedReplies};
use creole_acceptance::http::{Request, required_headers};
use creole_test_wait::blocking::delay;
use serde_json::{Value, json};

use crate::{A_MOMENT, Bridge, asking, text};

const RESERVED: &str = "io.modelcontextprotocol/";

fn logging() -> ScriptedReplies {
    ScriptedReplies::new("2025-06-18", json!({"tools": {}, "logging": {}}), &["ask"])
}

#[test]
fn an_old_upstream_receives_no_unknown_messages() {
    let bridge = Bridge::new(ScriptedReplies::new("2024-11-05", json!({"tools": {}}), &["ask"]));
    let value = bridge.modern().request("server/discover", json!({}))["result"].clone();
    assert_eq!(value["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "puppet", "{value}");
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    assert_eq!(received.message["params"], json!({"name": "ask", "arguments": {}}));
    received.text("hello");
    assert_eq!(text(&call.answer()), "hello");
    let messages: Vec<Value> =
        bridge.puppets.children().iter().flat_map(|child| child.told()).collect();
    let messages: Vec<_> =
        messages.iter().filter(|item| item["method"] != "server/discover").collect();
    let methods: Vec<_> = messages.iter().filter_map(|item| item["method"].as_str()).collect();
    assert!(methods.contains(&"initialize") && methods.contains(&"notifications/initialized"));
    assert!(messages.iter().all(|item| !item.to_string().contains(RESERVED)), "{messages:?}");
}

#[test]
fn errors_of_old_upstreams_keep_their_meaning() {
    let show = ScriptedReplies::new("2025-11-25", json!({"tools": {}, "resources": {}}), &["ask"])
        .answering("resources/list", json!({"resources": [{"uri": "a://b", "name": "b"}]}));
    let bridge = Bridge::new(show);
    let mut read = bridge.modern().begin(&json!(1), "resources/read", json!({"uri": "a://b"}));
    bridge.puppets.hears("resources/read").error(-32002, "gone", &json!({"uri": "a://b"}));
    let response = read.answer();
    assert_eq!(response["error"]["code"], -32602, "{response}");
    assert_eq!(response["error"]["data"]["uri"], "a://b", "{response}");
    for code in [-32050, -32022, -32005] {
        let mut call = bridge.modern().begin_call("ask", json!({}));
        bridge.puppets.hears("tools/call").error(code, "its own", &Value::Null);
        let response = call.answer();
        assert_eq!(response["error"]["code"], -32603, "{response}");
        assert_eq!(response["error"]["data"]["upstreamCode"], code, "{response}");
    }
}

#[test]
fn log_messages_reach_the_callers_that_request_them() {
    let bridge = Bridge::new(logging());
    for (wanted, messages) in [(None, vec![]), (Some("warning"), vec!["error"])] {
        let meta = match wanted {
            None => json!({}),
            Some(level) => json!({"io.modelcontextprotocol/logLevel": level}),
        };
        let mut call = bridge.modern().with_meta(meta).begin_call("ask", json!({}));
        let received = bridge.puppets.hears("tools/call");
        for level in ["info", "error"] {
            received.by.tells("notifications/message", &json!({"level": level, "data": level}));
        }
        received.text("said");
        let (before, response) = call.all();
        assert_eq!(text(&response), "said");
        let levels: Vec<_> = before.iter().map(|value| value["params"]["level"].clone()).collect();
        assert_eq!(levels, messages);
    }
    let texts: Vec<Value> =
        bridge.puppets.children().iter().flat_map(|child| child.told()).collect();
    let levels: Vec<_> = texts
        .iter()
        .filter(|value| value["method"] == "logging/setLevel")
        .map(|value| value["params"]["level"].clone())
        .collect();
    assert_eq!(levels, ["warning"]);
}

#[test]
fn a_disconnect_cancels_the_call_and_the_late_response_is_dropped() {
    let bridge = Bridge::new(asking());
    let call = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    call.hang_up();
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], received.message["id"]);
    assert_eq!(cancelled.by.pid, received.by.pid);
    received.text("too late");
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let next = bridge.puppets.hears("tools/call");
    assert_ne!(next.message["id"], received.message["id"]);
    next.text("in time");
    assert_eq!(text(&call.answer()), "in time");
}

#[test]
fn a_lost_stream_of_a_session_cancels_nothing() {
    let bridge = Bridge::new(asking());
    let client = HandshakeClient::open(bridge.gateway.address(), "2025-11-25", json!({}), None);
    let params = json!({"name": "ask", "arguments": {}, "_meta": {"progressToken": "t"}});
    let call = client.begin(&json!("mine"), "tools/call", &params);
    let received = bridge.puppets.hears("tools/call");
    call.hang_up();
    assert!(
        bridge.puppets.within(A_MOMENT).is_none(),
        "the call is not cancelled: the client may resume its stream"
    );
    let cancel = json!({"requestId": "mine", "reason": "enough"});
    client.tell(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}));
    let cancelled = bridge.puppets.hears("notifications/cancelled");
    assert_eq!(cancelled.message["params"]["requestId"], received.message["id"]);
    assert_eq!(cancelled.message["params"]["reason"], "enough");
}

#[test]
fn an_input_request_without_a_call_is_refused_at_once() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.text("done");
    assert_eq!(text(&call.answer()), "done");
    received.by.asks(json!("lonely"), "elicitation/create", crate::form("Anybody?"));
    let refused = bridge.puppets.next().message;
    assert_eq!(refused["id"], "lonely");
    assert!(refused.get("error").is_some() || refused["result"]["action"] == "cancel", "{refused}");
}

#[test]
fn an_input_request_outside_of_calls_reaches_the_session_that_it_belongs_to() {
    let bridge = Bridge::new(asking());
    let declared = json!({"roots": {"listChanged": true}, "elicitation": {}});
    let clients = [(); 2].map(|()| {
        HandshakeClient::open(bridge.gateway.address(), "2025-11-25", declared.clone(), None)
    });
    let calls = clients.each_ref().map(|client| {
        let params = json!({"name": "ask", "arguments": {}});
        let mut call = client.begin(&json!(1), "tools/call", &params);
        let received = bridge.puppets.hears("tools/call");
        received.text("done");
        assert_eq!(text(&call.answer()), "done");
        received
    });
    let mut streams = clients.each_ref().map(HandshakeClient::listen);
    let roots = json!({"roots": [{"uri": "file:///home"}]});
    let accepted = json!({"action": "accept", "content": {}});
    for (method, params, response) in
        [("roots/list", json!({}), roots), ("elicitation/create", crate::form("Who?"), accepted)]
    {
        calls[0].by.asks(json!(method), method, params);
        let request = streams[0].message();
        assert_eq!(request["method"], method, "{request}");
        clients[0].tell(&json!({"jsonrpc": "2.0", "id": request["id"], "result": response}));
        let result = bridge.puppets.next();
        assert_eq!((&result.message["id"], &result.message["result"]), (&json!(method), &response));
        assert_eq!(result.by.pid, calls[0].by.pid);
    }
    clients[0].tell(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    let changed = bridge.puppets.hears("notifications/roots/list_changed");
    assert_eq!(changed.by.pid, calls[0].by.pid);
    assert!(streams[1].within(A_MOMENT).is_none(), "the other session gets no input request");
    assert!(
        bridge.puppets.within(A_MOMENT).is_none(),
        "the other upstream session gets no message"
    );
}

#[test]
fn a_resource_is_watched_once_for_all_and_left_when_nobody_watches() {
    let capabilities = json!({"resources": {"subscribe": true}});
    let show = ScriptedReplies::new("2025-06-18", capabilities, &[])
        .answering("resources/list", json!({"resources": [{"uri": "a://b", "name": "b"}]}));
    let bridge = Bridge::new(show);
    let filter =
        json!({"notifications": {"resourceSubscriptions": ["a://b"], "toolsListChanged": true}});
    let mut first = bridge.modern().begin(&json!("one"), "subscriptions/listen", filter.clone());
    let subscribed = bridge.puppets.hears("resources/subscribe");
    assert_eq!(subscribed.message["params"], json!({"uri": "a://b"}));
    subscribed.result(json!({}));
    let ack = first.message();
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged", "{ack}");
    let mut second = bridge.modern().begin(&json!("two"), "subscriptions/listen", filter);
    assert_eq!(second.message()["method"], "notifications/subscriptions/acknowledged");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the resource has a subscription already");
    subscribed.by.tells("notifications/resources/updated", &json!({"uri": "a://b"}));
    for (listening, id) in [(&mut first, "one"), (&mut second, "two")] {
        let message = listening.message();
        assert_eq!(message["method"], "notifications/resources/updated");
        assert_eq!(message["params"]["uri"], "a://b");
        let named = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(named, id, "{message}");
    }
    first.hang_up();
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "another client still has a subscription");
    second.hang_up();
    let left = bridge.puppets.hears("resources/unsubscribe");
    assert_eq!(left.message["params"], json!({"uri": "a://b"}));
    left.result(json!({}));
}

#[test]
fn a_list_that_nobody_tells_of_is_fetched_again_when_it_is_old_and_a_change_is_told() {
    let bridge = Bridge::new(asking().leaving("tools/list"));
    let tools = |names: &[&str]| {
        let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
        json!({"tools": names.iter().map(tool).collect::<Vec<_>>()})
    };
    bridge.puppets.hears("tools/list").result(tools(&["ask"]));
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = bridge.modern().begin(&json!("l"), "subscriptions/listen", filter);
    listening.message();
    let names = |response: Value| -> Vec<Value> {
        let tools = response["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].clone()).collect()
    };
    delay(std::time::Duration::from_millis(1100));
    for (said, is_new) in [(&["ask"][..], false), (&["ask", "more"], true)] {
        let mut list = bridge.modern().begin(&json!(1), "tools/list", json!({}));
        bridge.puppets.hears("tools/list").result(tools(said));
        assert_eq!(names(list.answer()), said);
        let message = listening.within(A_MOMENT).map(|value| value["method"].clone());
        assert_eq!(message, is_new.then(|| json!("notifications/tools/list_changed")));
        // The list is fresh again.
        assert_eq!(names(bridge.modern().request("tools/list", json!({}))), said);
        delay(std::time::Duration::from_millis(1100));
    }
}

#[test]
fn a_list_that_changed_in_a_callers_conversation_is_fetched_again_for_all() {
    let show =
        ScriptedReplies::new("2025-06-18", json!({"tools": {"listChanged": true}}), &["ask"]);
    let bridge = Bridge::new(show);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = bridge.modern().begin(&json!("l"), "subscriptions/listen", filter);
    listening.message();
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.tells("notifications/tools/list_changed", &json!({}));
    assert_eq!(listening.message()["method"], "notifications/tools/list_changed");
    received.text("changed");
    assert_eq!(text(&call.answer()), "changed");
}

#[test]
fn a_message_spread_over_lines_is_one_line_for_a_server_on_a_pipe() {
    let bridge = Bridge::new(asking());
    let address = bridge.gateway.address();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({"list": [1, {"text": "a\nb"}]});
    let params = json!({"name": "ask", "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let text = serde_json::to_string_pretty(&body).unwrap().replace('\n', "\r\n");
    let request = Request::post(text).with_all(required_headers::fields(&body));
    let caller = std::thread::spawn(move || request.send(address).unwrap().message());
    let call = bridge.puppets.hears("tools/call");
    assert_eq!(call.message["params"]["arguments"], arguments);
    call.text("one line");
    assert_eq!(crate::text(&caller.join().unwrap()), "one line");
}
