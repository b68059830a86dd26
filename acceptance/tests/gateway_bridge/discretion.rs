//! Tests of the layers around an upstream: which messages they see, redact or withhold.

use std::fs;
use std::time::{Duration, Instant};

use creole_acceptance::gateway::{HandshakeClient, ScriptedReplies};
use creole_acceptance::process_under_test::{Server, serve};
use creole_gateway::layers::PinLocation;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{A_MOMENT, Bridge, asking, form, named, text};

const REDACTED: &str = r#"
[server]
name = "gateway"

[[upstreams.behind.chain]]
kind = "redact"
patterns = ["sk-[0-9]+"]

[upstreams.behind]
prefix = ""
"#;

#[test]
fn secrets_in_progress_and_log_messages_are_redacted() {
    let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}, "logging": {}}), &["ask"]);
    let bridge = Bridge::configured(show, REDACTED);
    let meta = json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"});
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let client = bridge.modern().that_can(capabilities).with_meta(meta.clone());
        let mut call = client.begin_call("ask", json!({}));
        let received = bridge.puppets.hears("tools/call");
        let token = &received.message["params"]["_meta"]["progressToken"];
        let progress = json!({"progressToken": token, "progress": 1, "message": "with sk-1"});
        received.by.tells("notifications/progress", &progress);
        let log = json!({"level": "info", "data": {"data": "key sk-2", "n": 1}});
        received.by.tells("notifications/message", &log);
        received.text("not sk-3");
        let (before, response) = call.all();
        assert_eq!(text(&response), "not [redacted]");
        let said = |method: &str| -> Value {
            let found = before.iter().find(|message| message["method"] == method);
            found.unwrap_or_else(|| panic!("{method}: {before:?}"))["params"].clone()
        };
        assert_eq!(said("notifications/progress")["message"], "with [redacted]");
        let data = json!({"data": "key [redacted]", "n": 1});
        assert_eq!(said("notifications/message")["data"], data);
    }
}

#[test]
fn secrets_in_input_requests_are_redacted_for_callers_of_both_eras() {
    let bridge = Bridge::configured(asking(), REDACTED);
    let abilities = json!({"elicitation": {}, "sampling": {}});
    let said = |text: &str| json!([{"role": "user", "content": {"type": "text", "text": text}}]);
    let sampling = |text: &str, prompt: &str| json!({"messages": said(text), "maxTokens": 1, "systemPrompt": prompt});
    let rows = [
        ("elicitation/create", form("Use sk-1?"), form("Use [redacted]?")),
        (
            "sampling/createMessage",
            sampling("sk-2?", "no sk-3"),
            sampling("[redacted]?", "no [redacted]"),
        ),
    ];
    let modern = bridge.modern().that_can(abilities.clone());
    let legacy = HandshakeClient::open(bridge.gateway.address(), "2025-06-18", abilities, None);
    for (method, request, clean) in rows {
        let mut call = modern.begin_call("ask", json!({}));
        bridge.puppets.hears("tools/call").by.asks(json!(1), method, request.clone());
        let requests = call.answer()["result"]["inputRequests"].clone();
        let received = requests.as_object().unwrap().values().next().unwrap();
        assert_eq!(received["method"], method);
        is_within(&clean, &received["params"]);
        let mut call = legacy.begin(&json!(1), "tools/call", &json!({"name": "ask"}));
        let tool_call = bridge.puppets.hears("tools/call");
        tool_call.by.asks(json!(1), method, request);
        let received = call.message();
        assert_eq!(received["method"], method);
        is_within(&clean, &received["params"]);
        legacy.tell(&json!({"jsonrpc": "2.0", "id": received["id"], "result": named("Ann")}));
        bridge.puppets.next();
        tool_call.text("done");
        assert_eq!(text(&call.answer()), "done");
    }
}

/// Asserts that all members of the first value are equal in the second.
#[track_caller]
fn is_within(clean: &Value, message: &Value) {
    for (name, value) in clean.as_object().unwrap() {
        assert_eq!(&message[name], value, "{name}");
    }
}

#[test]
fn a_tool_that_is_approved_at_run_time_is_announced_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let pins = folder.path().join("pins.json");
    let before = json!({"version": 1, "servers": {"behind": {
        "ask": {"sha256": "0", "definition": {"name": "ask", "description": "It was another"}},
    }}});
    fs::write(&pins, before.to_string()).unwrap();
    let chain = format!("[[upstreams.behind.chain]]\nkind = \"pin\"\nfile = {}\n", json!(pins));
    let head = "[server]\nname = \"gateway\"\n";
    let upstream = "[upstreams.behind]\nprefix = \"\"\n";
    let bridge = Bridge::configured(asking(), &format!("{head}\n{chain}\n{upstream}"));
    let client = HandshakeClient::open(bridge.gateway.address(), "2025-11-25", json!({}), None);
    let listed = || client.request("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(listed(), json!([]));
    let mut pending = client.listen();
    // The change is in the file before the first list, and the error names the command that approves it.
    let runtime = Builder::new_current_thread().build().unwrap();
    let pins = PinLocation::File(pins);
    let found = runtime.block_on(pins.pins()).unwrap();
    assert!(found.iter().all(|pin| pin.changed.is_some()) && found.len() == 1, "{found:?}");
    let refused = client.call("ask", json!({}));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let reason = refused["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(reason.contains("changed and is not approved"), "{refused}");
    assert!(reason.contains("`creole approve FILE behind ask`"), "{refused}");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the upstream gets no call");
    let approved = runtime.block_on(pins.approve("behind", Some("ask")));
    assert_eq!(approved.unwrap(), ["ask"]);
    assert_eq!(pending.message()["method"], "notifications/tools/list_changed");
    assert_eq!(listed()[0]["name"], "ask");
}

/// A server whose tool has the description `first` in the first list and `second` in all later ones. It sends no change
/// notification.
const SILENT: &str = r#"
import json, sys
lists = 0
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "silent", "version": "1"}}
    elif method == "tools/list":
        lists += 1
        words = "first" if lists == 1 else "second"
        result = {"tools": [{"name": "tell", "description": words, "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "told"}]}
    else:
        result = None
    if "id" in message:
        answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"#;

#[test]
fn a_tool_that_changed_silently_is_withheld_once_its_list_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("silent.py");
    fs::write(&script, SILENT).unwrap();
    let text = format!(
        "[upstreams.silent]\ncommand = [\"python3\", {}]\nprefix = \"\"\n\
         [[upstreams.silent.chain]]\nkind = \"pin\"\nfile = \"pins.json\"\n",
        json!(script)
    );
    fs::write(folder.path().join("creole.toml"), text).unwrap();
    let mut server = Server::start_command(serve(folder.path(), &["creole.toml"])).greeted();
    let mut result = |method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": "next", "method": method, "params": params});
        server.write(format!("{request}\n"));
        // The gateway may send a change notification before its response.
        let mut answers = std::iter::repeat_with(|| server.answer());
        answers.find(|value| value["id"] == "next").unwrap()["result"].clone()
    };
    let listed = result("tools/list", json!({}));
    assert_eq!(listed["tools"][0]["description"], "first", "{listed}");
    // The documented window: the new definition has not been fetched yet.
    let called = result("tools/call", json!({"name": "tell"}));
    assert_eq!(called["content"][0]["text"], "told", "{called}");
    // The client requests the list until the cached one has expired.
    let end = Instant::now() + Duration::from_secs(30);
    while result("tools/list", json!({}))["tools"] != json!([]) {
        assert!(Instant::now() < end, "the changed tool is still listed");
    }
    let refused = result("tools/call", json!({"name": "tell"}));
    assert_eq!(refused["isError"], true, "{refused}");
    let reason = refused["content"][0]["text"].as_str().unwrap_or_default();
    assert!(reason.contains("changed and is not approved"), "{refused}");
}
