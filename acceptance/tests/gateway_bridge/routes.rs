//! Tests of one process with several dialects, each at its own path.

use std::fmt::Write as _;
use std::fs;

use creole_acceptance::http::{ListeningServer, Request};
use serde_json::{Value, json};

/// The dialects of the paths.
const DIALECTS: [&str; 5] = ["spec", "bb-mcp-server", "mcp-chain", "bossman", "buddyboss"];

/// The response to a tool call at a path, after a handshake if one is needed.
fn called_at(gateway: &ListeningServer, path: &str) -> Value {
    let send = |message: Value, session: Option<&str>| {
        let post = Request::to("POST", path, message.to_string())
            .with("Content-Type", "application/json")
            .with("Accept", "application/json, text/event-stream");
        let post = match session {
            Some(session) => post.with("Mcp-Session-Id", session),
            None => post,
        };
        post.send(gateway.address()).unwrap()
    };
    let client = json!({"name": "routes", "version": "1"});
    let hello = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello});
    let response = send(hello, None);
    let session = response.head.field("mcp-session-id").map(str::to_owned);
    let result = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send(result, session.as_deref());
    let params = json!({"name": "fail", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    send(call, session.as_deref()).message()
}

#[test]
fn a_tool_failure_has_the_right_form_on_each_of_five_routes() {
    let folder = tempfile::tempdir().unwrap();
    let (file, ran) = (folder.path().join("routes.toml"), folder.path().join("ran"));
    let mut text = String::new();
    for dialect in DIALECTS {
        let _ = write!(
            text,
            "[[servers]]\nname = \"{dialect}\"\npath = \"/{dialect}\"\ndialect = \"{dialect}\"\n"
        );
    }
    let script = "echo ran >> \"$1\"; echo broken >&2; exit 3";
    let command = json!(["sh", "-c", script, "fail", ran]);
    let _ = write!(text, "[tools.fail]\ndescription = \"Fails\"\ncommand = {command}\n");
    fs::write(&file, text).unwrap();
    let gateway = ListeningServer::start(&[&file.display().to_string()]).unwrap();
    let told = DIALECTS.map(|dialect| {
        let message = called_at(&gateway, &format!("/{dialect}"));
        assert_eq!(message["id"], 7, "{dialect}: {message}");
        message
    });
    let runs = fs::read_to_string(&ran).unwrap();
    assert_eq!(runs.lines().count(), DIALECTS.len(), "each call ran the tool once");
    let [spec, bb, chain, bossman, buddyboss] = &told;
    let detail = spec["result"]["content"][0]["text"].as_str().unwrap();
    assert!(detail.contains("broken"), "{spec}");
    assert_eq!(spec["result"]["isError"], true);
    assert_eq!(bb["error"]["code"], -32001, "{bb}");
    assert_eq!(bb["error"]["data"]["tool"], "fail");
    assert_eq!(bb["error"]["data"]["error"], detail);
    assert_eq!(chain["error"]["code"], -32004, "{chain}");
    assert_eq!(chain["error"]["data"], detail);
    assert_eq!(bossman["result"]["isError"], true, "{bossman}");
    assert_eq!(bossman["result"]["content"][0]["text"], detail);
    assert_eq!(buddyboss["result"]["content"][0]["text"], format!("Error: {detail}"));
    assert_ne!(buddyboss["result"], spec["result"]);
    assert_ne!(bossman["result"], buddyboss["result"]);
}
