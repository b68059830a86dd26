//! What the layers around a server behind the gateway see and let be seen.

use std::fs;
use std::thread;

use creole_acceptance::gateway::{Legacy, Show};
use creole_gateway::chain::{approve, changes};
use serde_json::{Value, json};

use crate::{A_MOMENT, Bridge, asking, text};

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
fn secrets_in_progress_and_log_messages_stay_behind() {
    let show = Show::new("2025-06-18", json!({"tools": {}, "logging": {}}), &["ask"]);
    let bridge = Bridge::configured(show, REDACTED);
    let meta = json!({"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"});
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let client = bridge.modern().that_can(capabilities).with_meta(meta.clone());
        let mut call = client.begin_call("ask", json!({}));
        let called = bridge.puppets.hears("tools/call");
        let token = &called.message["params"]["_meta"]["progressToken"];
        let progress = json!({"progressToken": token, "progress": 1, "message": "with sk-1"});
        called.by.tells("notifications/progress", &progress);
        let log = json!({"level": "info", "data": {"data": "key sk-2", "n": 1}});
        called.by.tells("notifications/message", &log);
        called.text("not sk-3");
        let (before, answer) = call.all();
        assert_eq!(text(&answer), "not [redacted]");
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
fn a_tool_that_is_approved_while_the_gateway_runs_is_told_of_and_listed() {
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
    let client = Legacy::open(bridge.gateway.address(), "2025-11-25", json!({}), None);
    let listed = || client.request("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(listed(), json!([]));
    let mut told = client.listen();
    while changes(&pins).unwrap().is_empty() {
        thread::sleep(A_MOMENT / 10);
    }
    assert_eq!(approve(&pins, "behind", Some("ask")).unwrap(), ["ask"]);
    assert_eq!(told.message()["method"], "notifications/tools/list_changed");
    assert_eq!(listed()[0]["name"], "ask");
}
