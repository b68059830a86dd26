//! Tests of input requests from upstreams of the handshake era that the caller does not support.

use creole_acceptance::gateway::{HandshakeClient, ReceivedMessage};
use serde_json::{Value, json};

use crate::{Bridge, asking, form, named, only_key, text};

fn prompt() -> Value {
    json!({"messages": [], "maxTokens": 5})
}

/// Makes the server send a sampling request that no client supports, and asserts that it is rejected.
#[track_caller]
fn asks_a_model(bridge: &Bridge, call: &ReceivedMessage) {
    call.by.asks(json!("q"), "sampling/createMessage", prompt());
    let refused = bridge.puppets.next().message;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q"), &json!(-32601)));
}

fn failed(call: &ReceivedMessage) {
    let content = json!([{"type": "text", "text": "no model"}]);
    call.result(json!({"content": content, "isError": true}));
}

#[track_caller]
fn lacks_sampling(response: &Value) {
    assert_eq!(response["error"]["code"], -32021, "{response}");
    let needed = &response["error"]["data"]["requiredCapabilities"];
    assert_eq!(*needed, json!({"sampling": {}}), "{response}");
}

#[test]
fn a_stateless_caller_is_told_the_missing_capability_when_the_call_fails_without_it() {
    let bridge = Bridge::new(asking());
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let client = bridge.modern().that_can(capabilities);
        let mut call = client.begin_call("ask", json!({}));
        let received = bridge.puppets.hears("tools/call");
        asks_a_model(&bridge, &received);
        failed(&received);
        lacks_sampling(&call.answer());
        // A server may also respond with an error.
        let mut call = client.begin_call("ask", json!({}));
        let received = bridge.puppets.hears("tools/call");
        asks_a_model(&bridge, &received);
        received.error(-32603, "no model", &Value::Null);
        lacks_sampling(&call.answer());
    }
}

#[test]
fn an_upstream_that_continues_without_input_has_completed_the_call() {
    let bridge = Bridge::new(asking());
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    asks_a_model(&bridge, &received);
    received.text("without a model");
    assert_eq!(text(&call.answer()), "without a model");
    // A later failure without an input request is reported unchanged.
    let mut call = bridge.modern().begin_call("ask", json!({}));
    failed(&bridge.puppets.hears("tools/call"));
    assert_eq!(call.answer()["result"]["isError"], true);
}

#[test]
fn a_missing_capability_is_reported_after_an_answered_input_request() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    let responses = json!({only_key(&request): named("Ann")});
    let mut retry = client.begin_again("ask", json!({}), &request["requestState"], responses);
    assert_eq!(bridge.puppets.next().message["result"], named("Ann"));
    asks_a_model(&bridge, &received);
    failed(&received);
    lacks_sampling(&retry.answer());
}

#[test]
fn a_handshake_caller_gets_the_error_of_the_upstream() {
    let bridge = Bridge::new(asking());
    let client = HandshakeClient::open(bridge.gateway.address(), "2025-11-25", json!({}), None);
    let call = json!({"name": "ask", "arguments": {}});
    let mut call = client.begin(&json!(1), "tools/call", &call);
    let received = bridge.puppets.hears("tools/call");
    asks_a_model(&bridge, &received);
    failed(&received);
    let response = call.answer();
    assert_eq!(response["result"]["content"][0]["text"], "no model", "{response}");
    assert_eq!(response["result"]["isError"], true);
}
