//! Tests of a gateway on stdio, with one caller.

use creole_acceptance::gateway::ScriptedChildren;
use creole_acceptance::process_under_test::Server;
use serde_json::{Value, json};

use crate::{asking, form, named, only_key, text};

fn stateless_request(id: u32, method: &str, mut params: Value, capabilities: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "pipe", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn call() -> Value {
    json!({"name": "ask", "arguments": {}})
}

#[test]
fn a_caller_whose_first_request_had_no_capabilities_gets_input_requests_in_the_next() {
    let children = ScriptedChildren::new(asking());
    let command = children.command();
    let mut gateway = Server::start(&["--", &command[0], &command[1]]);
    gateway.write(stateless_request(1, "server/discover", json!({}), json!({})));
    assert!(gateway.answer()["result"]["capabilities"]["tools"].is_object());
    gateway.write(stateless_request(2, "tools/call", call(), json!({"elicitation": {}})));
    let received = children.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = gateway.answer()["result"].clone();
    let mut params = call();
    params["requestState"] = request["requestState"].clone();
    params["inputResponses"] = json!({only_key(&request): named("Ann")});
    gateway.write(stateless_request(3, "tools/call", params, json!({"elicitation": {}})));
    assert_eq!(children.next().message["result"], named("Ann"));
    received.text("Hello, Ann!");
    let response = gateway.answer();
    assert_eq!((&response["id"], text(&response)), (&json!(3), "Hello, Ann!"));
    assert_eq!(gateway.finish().code, Some(0));
}

#[test]
fn a_caller_that_probes_and_then_initializes_gets_input_requests() {
    let children = ScriptedChildren::new(asking());
    let command = children.command();
    let mut gateway = Server::start(&["--", &command[0], &command[1]]);
    gateway.write(stateless_request(1, "server/discover", json!({}), json!({})));
    gateway.answer();
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "pipe", "version": "1"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": params});
    let response = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    gateway.write(format!("{hello}\n{response}\n"));
    assert_eq!(gateway.answer()["result"]["serverInfo"]["name"], "puppet");
    let request = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call()});
    gateway.write(format!("{request}\n"));
    let received = children.hears("tools/call");
    received.by.asks(json!("q"), "elicitation/create", form("Who?"));
    let sent = gateway.answer();
    assert_eq!(sent["params"]["message"], "Who?");
    let message = json!({"jsonrpc": "2.0", "id": sent["id"], "result": named("Ann")});
    gateway.write(format!("{message}\n"));
    let result = children.next().message;
    assert_eq!((&result["id"], &result["result"]), (&json!("q"), &named("Ann")));
    received.text("Hello, Ann!");
    assert_eq!(text(&gateway.answer()), "Hello, Ann!");
    assert_eq!(gateway.finish().code, Some(0));
}
