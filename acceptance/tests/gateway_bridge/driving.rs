//! Tests of upstreams of the stateless era with clients that receive inline input requests.

use creole_acceptance::gateway::{HandshakeClient, ScriptedReplies};
use creole_acceptance::http::Request;
use serde_json::{Value, json};

use crate::{A_MOMENT, Bridge, form, named, text};

const META: &str = "io.modelcontextprotocol/clientCapabilities";

/// A server of the newest revision with one tool.
pub(crate) fn modern() -> ScriptedReplies {
    let value = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "logging": {}}, "ttlMs": 60_000, "cacheScope": "private",
    });
    let tool = json!({"name": "ask", "inputSchema": {"type": "object"}});
    let tools = json!({
        "resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": "private",
    });
    ScriptedReplies::new("2026-07-28", json!({}), &[])
        .answering("server/discover", value)
        .answering("initialize", json!({"code": -32022, "message": "Unsupported"}))
        .answering("tools/list", tools)
}

fn legacy(bridge: &Bridge, version: &str, capabilities: Value) -> HandshakeClient {
    HandshakeClient::open(bridge.gateway.address(), version, capabilities, None)
}

fn call() -> Value {
    json!({"name": "ask", "arguments": {"n": 1}})
}

fn complete(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

#[test]
fn a_handshake_client_uses_a_stateless_server() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2024-11-05", json!({}));
    assert_eq!(client.welcome["protocolVersion"], "2024-11-05");
    assert!(client.welcome["serverInfo"]["name"].is_string(), "{}", client.welcome);
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    let received = bridge.puppets.hears("tools/call");
    let meta = &received.message["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta[META], json!({}));
    received.result(complete("hello"));
    let response = pending.answer();
    assert_eq!(text(&response), "hello");
    assert!(response["result"].get("resultType").is_none(), "{response}");
    let messages: Vec<Value> = received.by.told();
    let methods: Vec<_> = messages.iter().filter_map(|value| value["method"].as_str()).collect();
    assert!(
        methods
            .iter()
            .all(|method| ["server/discover", "tools/list", "tools/call"].contains(method)),
        "{methods:?}"
    );
    let messages: Vec<Value> =
        bridge.puppets.children().iter().flat_map(|child| child.told()).collect();
    let offered = messages.iter().filter(|value| value["method"] == "initialize").count();
    assert_eq!(offered, 1, "the upstream is probed once for the caller's era");
}

#[test]
fn input_of_an_upstream_is_requested_inline_and_its_request_state_is_returned_unchanged() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2025-06-18", json!({"elicitation": {}}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    let received = bridge.puppets.hears("tools/call");
    assert!(received.message["params"]["_meta"][META].get("elicitation").is_some());
    let state = "st\u{e4}te \"\\u0041\" 1";
    received.result(json!({
        "resultType": "input_required", "requestState": state,
        "inputRequests": {"who": {"method": "elicitation/create", "params": form("Who?")}},
    }));
    let request = pending.message();
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Who?");
    client.tell(&json!({"jsonrpc": "2.0", "id": request["id"], "result": named("Ann")}));
    let repeated = bridge.puppets.hears("tools/call");
    assert_ne!(repeated.message["id"], received.message["id"]);
    let params = &repeated.message["params"];
    assert_eq!(params["arguments"], json!({"n": 1}));
    assert_eq!(params["requestState"], state);
    assert_eq!(params["inputResponses"], json!({"who": named("Ann")}));
    // A round without request state discards that of the round before.
    repeated.result(json!({
        "resultType": "input_required",
        "inputRequests": {"sure": {"method": "elicitation/create", "params": form("Sure?")}},
    }));
    let request = pending.message();
    client.tell(&json!({"jsonrpc": "2.0", "id": request["id"], "result": named("yes")}));
    let last = bridge.puppets.hears("tools/call");
    assert!(last.message["params"].get("requestState").is_none(), "{}", last.message);
    assert_eq!(last.message["params"]["inputResponses"], json!({"sure": named("yes")}));
    last.result(complete("Hello, Ann!"));
    assert_eq!(text(&pending.answer()), "Hello, Ann!");
}

#[test]
fn a_client_without_the_capability_gets_an_error_and_keeps_its_session() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2024-11-05", json!({}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    let received = bridge.puppets.hears("tools/call");
    let missing = json!({"requiredCapabilities": {"elicitation": {}}});
    received.error(-32021, "needs elicitation", &missing);
    let response = pending.answer();
    assert_eq!(response["result"]["isError"], true, "{response}");
    let mut pending = client.begin(&json!(6), "tools/call", &call());
    bridge.puppets.hears("tools/call").error(-32601, "Method not found", &Value::Null);
    assert_eq!(pending.answer()["error"]["code"], -32601);
    assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn rounds_without_input_requests_are_delayed_and_counted() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2025-11-25", json!({"elicitation": {}}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    for round in 0..3 {
        let received = bridge.puppets.hears("tools/call");
        match round {
            0 => assert!(received.message["params"].get("requestState").is_none()),
            _ => assert_eq!(received.message["params"]["requestState"], format!("r{}", round - 1)),
        }
        let state = format!("r{round}");
        received.result(json!({"resultType": "input_required", "requestState": state}));
    }
    bridge.puppets.hears("tools/call").result(complete("at last"));
    let (before, response) = pending.all();
    assert_eq!((before.len(), text(&response)), (0, "at last"));
}

#[test]
fn an_upstream_that_never_completes_is_given_up() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2025-11-25", json!({"elicitation": {}}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    for _ in 0..8 {
        let repeated = json!({"resultType": "input_required", "requestState": "again"});
        bridge.puppets.hears("tools/call").result(repeated);
    }
    let (before, response) = pending.all();
    assert_eq!((before.len(), &response["result"]["isError"]), (0, &json!(true)), "{response}");
    assert!(response["result"]["content"][0]["text"].as_str().unwrap().contains("8 rounds"));
    assert!(bridge.puppets.within(A_MOMENT).is_none());
}

#[test]
fn a_url_elicitation_has_an_id_for_a_client_of_2025_11_25_and_is_sent_once() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2025-11-25", json!({"elicitation": {"form": {}, "url": {}}}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    let page = json!({"mode": "url", "url": "https://a.example/", "message": "Sign in"});
    let asks = json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": {"page": {"method": "elicitation/create", "params": page}},
    });
    bridge.puppets.hears("tools/call").result(asks.clone());
    let request = pending.message();
    assert_eq!(request["params"]["url"], page["url"], "{request}");
    let name = request["params"]["elicitationId"].clone();
    assert!(name.as_str().is_some_and(|name| name.len() > 16), "{request}");
    client.tell(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"action": "accept"}}));
    // The user has not opened the URL yet. The server repeats its input request, and the client does not get it again.
    let repeated = bridge.puppets.hears("tools/call");
    assert_eq!(repeated.message["params"]["inputResponses"], json!({"page": {"action": "accept"}}));
    repeated.result(asks);
    bridge.puppets.hears("tools/call").result(complete("signed in"));
    let (before, response) = pending.all();
    assert_eq!(text(&response), "signed in");
    let over = json!({
        "jsonrpc": "2.0", "method": "notifications/elicitation/complete",
        "params": {"elicitationId": name},
    });
    assert_eq!(before, [over], "the URL elicitation is reported as complete");
}

#[test]
fn a_visit_that_a_server_of_2025_11_25_says_is_over_is_over_for_its_client() {
    let bridge = Bridge::new(ScriptedReplies::new("2025-11-25", json!({"tools": {}}), &["ask"]));
    let client = legacy(&bridge, "2025-11-25", json!({"elicitation": {"url": {}}}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    let received = bridge.puppets.hears("tools/call");
    let page = json!({
        "mode": "url", "url": "https://a.example/", "message": "Sign in", "elicitationId": "e1",
    });
    received.by.asks(json!(1), "elicitation/create", page.clone());
    let request = pending.message();
    assert_eq!(request["params"], page);
    client.tell(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"action": "accept"}}));
    assert_eq!(bridge.puppets.next().message["result"], json!({"action": "accept"}));
    // The completion of a URL elicitation that this client did not get is not forwarded.
    for name in ["of-another", "e1"] {
        let params = json!({"elicitationId": name});
        received.by.tells("notifications/elicitation/complete", &params);
    }
    let message = pending.message();
    assert_eq!(message["method"], "notifications/elicitation/complete", "{message}");
    assert_eq!(message["params"], json!({"elicitationId": "e1"}));
    received.text("signed in");
    assert_eq!(text(&pending.answer()), "signed in");
}

#[test]
fn a_handshake_client_without_a_session_gets_instructions_in_the_error() {
    let bridge = Bridge::new(modern());
    let body = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call()});
    let request = Request::post(body.to_string()).with("MCP-Protocol-Version", "2025-06-18");
    let refused = request.send(bridge.gateway.address()).unwrap();
    assert_eq!(refused.head.status, 400, "{}", refused.text());
    assert!(refused.text().contains("initialize"), "{}", refused.text());
    assert!(bridge.puppets.within(A_MOMENT).is_none());
}

#[test]
fn a_client_that_refuses_to_answer_ends_the_call() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2025-06-18", json!({"sampling": {}}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    let received = bridge.puppets.hears("tools/call");
    let params = json!({"messages": [], "maxTokens": 1});
    received.result(json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": {"m": {"method": "sampling/createMessage", "params": params}},
    }));
    let request = pending.message();
    assert_eq!(request["method"], "sampling/createMessage");
    let no = json!({"code": -1, "message": "User rejected sampling"});
    client.tell(&json!({"jsonrpc": "2.0", "id": request["id"], "error": no}));
    let response = pending.answer();
    assert_eq!(response["result"]["isError"], true, "{response}");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the gateway invents no input response");
}

#[test]
fn a_log_level_is_stored_and_sent_with_each_call() {
    let bridge = Bridge::new(modern());
    let client = legacy(&bridge, "2025-11-25", json!({}));
    assert_eq!(
        client.request("logging/setLevel", &json!({"level": "loud"}))["error"]["code"],
        -32602
    );
    assert_eq!(client.request("logging/setLevel", &json!({"level": "debug"}))["result"], json!({}));
    let mut pending = client.begin(&json!(5), "tools/call", &call());
    let received = bridge.puppets.hears("tools/call");
    let meta = &received.message["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug", "{meta}");
    received.result(complete("quiet"));
    assert_eq!(text(&pending.answer()), "quiet");
}

#[test]
fn features_unknown_to_old_clients_are_converted() {
    let bridge = Bridge::new(modern());
    let rich = json!({
        "resultType": "complete",
        "content": [
            {"type": "resource_link", "uri": "a://b", "name": "b"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        ],
        "structuredContent": [{"ttlMs": 1}],
    });
    let told = |version: &str| {
        let client = legacy(&bridge, version, json!({}));
        let mut pending = client.begin(&json!(5), "tools/call", &call());
        bridge.puppets.hears("tools/call").result(rich.clone());
        pending.answer()["result"].clone()
    };
    let newest = told("2025-11-25");
    assert_eq!(newest["structuredContent"], json!({"result": [{"ttlMs": 1}]}));
    assert_eq!(newest["content"], rich["content"]);
    let old = told("2024-11-05");
    assert!(old.get("structuredContent").is_none(), "{old}");
    let kinds: Vec<_> =
        old["content"].as_array().unwrap().iter().map(|value| &value["type"]).collect();
    assert_eq!(kinds[..2], ["text", "resource"], "{old}");
}
