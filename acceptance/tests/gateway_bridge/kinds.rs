//! Tests of upstreams that list some tools only for clients with certain input capabilities.

use std::time::{Duration, Instant};

use creole_acceptance::gateway::{HandshakeClient, PendingResponse, ScriptedChild};
use serde_json::{Value, json};

use crate::{A_MOMENT, Bridge, asking, form, named, only_key, text};

/// Waits for a list. Meanwhile responds to every list request by the capabilities of its session.
fn wait_for(bridge: &Bridge, mut listing: PendingResponse) -> Vec<String> {
    loop {
        if let Some(message) = bridge.puppets.within(A_MOMENT / 10) {
            assert_eq!(message.message["method"], "tools/list", "{}", message.message);
            message.result(json!({"tools": tools_for(&message.by)}));
        }
        if let Some(response) = listing.within(A_MOMENT / 10) {
            return names(&response);
        }
    }
}

/// The client capabilities that a server got in the handshake.
fn may_ask(child: &ScriptedChild) -> Value {
    let messages = child.told();
    let opened = messages.iter().find(|value| value["method"] == "initialize");
    opened.map_or(Value::Null, |opened| opened["params"]["capabilities"].clone())
}

fn tools_for(child: &ScriptedChild) -> Vec<Value> {
    let can = may_ask(child);
    let mut names = vec!["echo"];
    names.extend(can.get("elicitation").map(|_| "ask"));
    names.extend(can.get("roots").map(|_| "folders"));
    names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect()
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn listed(bridge: &Bridge, capabilities: Value) -> Vec<String> {
    let client = bridge.modern().that_can(capabilities);
    wait_for(bridge, client.begin(&json!(1), "tools/list", json!({})))
}

#[test]
fn each_client_kind_sees_its_own_items() {
    let bridge = Bridge::new(asking().leaving("tools/list"));
    assert_eq!(listed(&bridge, json!({})), ["echo"]);
    assert_eq!(listed(&bridge, json!({"elicitation": {}})), ["echo", "ask"]);
    assert_eq!(listed(&bridge, json!({"roots": {}, "sampling": {}})), ["echo", "folders"]);
    let both = json!({"roots": {}, "elicitation": {}});
    assert_eq!(listed(&bridge, both), ["echo", "ask", "folders"]);
    assert_eq!(listed(&bridge, json!({})), ["echo"], "the list is unchanged");
    assert_eq!(
        listed(&bridge, json!({"elicitation": {}})),
        ["echo", "ask"],
        "the list is unchanged"
    );
    let old = |capabilities| {
        let client =
            HandshakeClient::open(bridge.gateway.address(), "2025-06-18", capabilities, None);
        wait_for(&bridge, client.begin(&json!(1), "tools/list", &json!({})))
    };
    assert_eq!(old(json!({"elicitation": {}})), ["echo", "ask"], "both eras get the same list");
    assert_eq!(old(json!({})), ["echo"]);
}

#[test]
fn a_tool_with_limited_visibility_is_called_with_the_right_capabilities_only() {
    let bridge = Bridge::new(asking().leaving("tools/list"));
    assert_eq!(listed(&bridge, json!({})), ["echo"]);
    // No client with elicitation has fetched the list yet.
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    let responses = json!({only_key(&request): named("Ann")});
    let mut retry = client.begin_again("ask", json!({}), &request["requestState"], responses);
    assert_eq!(bridge.puppets.next().message["result"], named("Ann"));
    received.text("Hello, Ann!");
    assert_eq!(text(&retry.answer()), "Hello, Ann!");
    // The list comes from the same session, in which no input request is possible now.
    let mut listing = client.begin(&json!(1), "tools/list", json!({}));
    let list = bridge.puppets.hears("tools/list");
    assert_eq!(list.by.pid, received.by.pid);
    list.by.asks(json!(9), "elicitation/create", form("Who are you?"));
    let refused = bridge.puppets.next().message;
    assert_eq!(refused["id"], 9, "{refused}");
    assert!(
        refused.get("error").is_some(),
        "an input request without a call is rejected: {refused}"
    );
    list.result(json!({"tools": tools_for(&list.by)}));
    assert_eq!(names(&listing.answer()), ["echo", "ask"]);
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    assert_eq!(
        may_ask(&received.by),
        json!({}),
        "the session of this client has no input capabilities"
    );
    received.error(-32602, "Unknown tool: ask", &Value::Null);
    assert_eq!(call.answer()["error"]["code"], -32602);
}

#[test]
fn a_list_that_changed_is_fetched_again_for_each_kind_of_client() {
    let show = asking().leaving("tools/list").answering(
        "initialize",
        json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "puppet", "version": "1"},
        }),
    );
    let bridge = Bridge::new(show);
    let able = json!({"elicitation": {}});
    assert_eq!(listed(&bridge, able.clone()), ["echo", "ask"]);
    let children = bridge.puppets.children();
    let own = children.iter().find(|child| may_ask(child) == json!({})).unwrap();
    own.tells("notifications/tools/list_changed", &json!({}));
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let client = bridge.modern().that_can(able);
    let begin = || client.begin(&json!(1), "tools/list", json!({}));
    let (mut listing, started) = (begin(), Instant::now());
    // The gateway may not have processed the child's notification yet.
    loop {
        assert!(started.elapsed() < Duration::from_secs(30), "the list did not change in time");
        if let Some(message) = bridge.puppets.within(A_MOMENT / 10) {
            let is_own = may_ask(&message.by) == json!({});
            let more =
                if is_own { json!([tool("new")]) } else { json!([tool("new"), tool("newer")]) };
            message.result(json!({"tools": more}));
        }
        if let Some(response) = listing.within(A_MOMENT / 10) {
            if names(&response) == ["new", "newer"] {
                break;
            }
            listing = begin();
        }
    }
}
