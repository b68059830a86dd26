//! Try: forms from schemas, JSON beside them, and input requests on the page.

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies};
use creole_acceptance::peers::browser::Browser;
use serde_json::{Value, json};

use crate::{Console, open_try, toml_command};

/// A server whose tools have these schemas. A call returns its arguments as they arrived.
fn upstream(version: &str, tools: &[(&str, Value)]) -> (Console, ScriptedChildren) {
    let tools: Vec<Value> =
        tools.iter().map(|(name, schema)| json!({"name": name, "inputSchema": schema})).collect();
    let replies = ScriptedReplies::new(version, json!({"tools": {}}), &[])
        .answering("tools/list", json!({"tools": tools}));
    let children = ScriptedChildren::new(replies);
    let config = format!(
        "[server]\nname = \"house\"\n\n[upstreams.up]\nprefix = \"\"\n{}",
        toml_command(&children.command()),
    );
    (Console::start(&config), children)
}

/// The arguments of the next call at the upstream, which is answered.
fn sent(children: &ScriptedChildren) -> String {
    let call = children.hears("tools/call");
    call.text("done");
    call.message["params"]["arguments"].to_string()
}

fn run(browser: &mut Browser) {
    browser.click("role=button[name=\"Run\"]");
}

#[test]
fn a_choice_by_constants_is_two_forms() {
    let schema = json!({"type": "object", "anyOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
        {"type": "object", "properties": {"kind": {"const": "text"}, "text": {"type": "string"}, "size": {"type": "integer"}}, "required": ["kind", "text"]},
    ]});
    let (console, children) = upstream("2025-06-18", &[("draw", schema)]);
    let Some(mut browser) = console.browser() else { return };
    open_try(&mut browser, "draw");
    browser.fill("role=textbox[name=\"radius\"]", "12345678901234567890.50");
    run(&mut browser);
    let call = children.hears("tools/call");
    assert_eq!(call.message["params"]["arguments"]["kind"], "circle");
    call.text("drawn");
    browser.wait("text=drawn");
    // Digits survive from the field to the wire; the client of this test reads numbers as f64, so the text is compared.
    let body = last_body(&mut browser);
    assert!(
        body.contains(r#""arguments":{"kind":"circle","radius":12345678901234567890.50}"#),
        "{body}"
    );
    browser.choose("select[data-choice]", "kind = \"text\"");
    browser.fill("role=textbox[name=\"text\"]", "a \"quoted\" line\n and another");
    run(&mut browser);
    let arguments = sent(&children);
    assert_eq!(arguments, r#"{"kind":"text","text":"a \"quoted\" line\n and another"}"#);
    browser.wait("text=done");
    browser.assert_harmless();
}

/// The body of the last call that the page sent.
fn last_body(browser: &mut Browser) -> String {
    let seen = browser.seen();
    let requests = seen["requests"].as_array().unwrap();
    let call = requests.iter().rev().find(|it| it["path"] == "/api/v1/servers/house/calls");
    call.unwrap()["body"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_object_or_null_is_sent_as_what_was_chosen() {
    let schema = json!({"type": "object", "properties": {
        "filter": {"anyOf": [{"type": "object"}, {"type": "null"}]}, "note": {"type": "string"},
    }});
    let (console, children) = upstream("2025-06-18", &[("search", schema)]);
    let Some(mut browser) = console.browser() else { return };
    open_try(&mut browser, "search");
    run(&mut browser);
    assert_eq!(sent(&children), "{}", "optional and absent is not empty");
    browser.click("role=checkbox[name=\"filter: not sent\"]");
    browser.fill("main form textarea.code >> nth=0", "{\"space\": {\"deep\": [1, 2]}}");
    run(&mut browser);
    assert_eq!(sent(&children), r#"{"filter":{"space":{"deep":[1,2]}}}"#);
    browser.choose("select[data-choice]", "null");
    run(&mut browser);
    assert_eq!(sent(&children), r#"{"filter":null}"#);
    // The form follows the JSON, and keeps what it does not know.
    browser.fill("#json", r#"{"note": "hi", "unknown": {"a": 1}}"#);
    assert_eq!(browser.value("role=textbox[name=\"note\"]"), "hi");
    browser.fill("role=textbox[name=\"note\"]", "changed");
    run(&mut browser);
    assert_eq!(sent(&children), r#"{"note":"changed","unknown":{"a":1}}"#);
}

#[test]
fn invalid_json_is_not_sent_and_not_lost() {
    let schema = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
    let (console, children) = upstream("2025-06-18", &[("search", schema)]);
    let Some(mut browser) = console.browser() else { return };
    open_try(&mut browser, "search");
    let wrong = "{\n  \"limit\": 5,\n  \"x\": }";
    browser.fill("#json", wrong);
    run(&mut browser);
    browser.wait("text=Line 3, column 8");
    assert_eq!(browser.value("#json"), wrong);
    browser.fill("#json", "{\"limit\": 5}");
    browser.fill("role=textbox[name=\"limit\"]", "five");
    run(&mut browser);
    browser.wait("text=\"five\" is not an integer");
    assert_eq!(browser.value("role=textbox[name=\"limit\"]"), "five");
    let seen = browser.seen();
    let calls = seen["requests"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["path"] == "/api/v1/servers/house/calls");
    assert_eq!(calls.count(), 0);
    browser.fill("role=textbox[name=\"limit\"]", "5");
    run(&mut browser);
    assert_eq!(sent(&children), r#"{"limit":5}"#);
}

#[test]
fn input_requests_of_a_session_are_answered_on_the_page() {
    let (console, children) = upstream("2025-11-25", &[("ask", json!({"type": "object"}))]);
    let Some(mut browser) = console.browser() else { return };
    open_try(&mut browser, "ask");
    assert_eq!(browser.value("main form select >> nth=-1"), "2026-07-28");
    run(&mut browser);
    let call = children.hears("tools/call");
    let token = call.message["params"]["_meta"]["progressToken"].clone();
    if !token.is_null() {
        call.by.tells(
            "notifications/progress",
            &json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"}),
        );
    }
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string", "description": "Your name"}, "age": {"type": "integer", "minimum": 0},
    }, "required": ["name"]});
    call.by.asks(
        json!(1),
        "elicitation/create",
        json!({"message": "Who <b>are</b> you?", "requestedSchema": schema}),
    );
    browser.wait("text=Who <b>are</b> you?");
    browser.fill(".ask >> role=textbox[name=\"name\"]", "Ada");
    browser.fill(".ask >> role=textbox[name=\"age\"]", "36");
    browser.click("role=button[name=\"Accept\"]");
    let answer = children.next().message;
    assert_eq!(
        answer["result"],
        json!({"action": "accept", "content": {"name": "Ada", "age": 36}})
    );
    let url = "https://example.com/consent?code=<script>";
    let params = json!({"mode": "url", "message": "Open this", "url": url, "elicitationId": "e1"});
    call.by.asks(json!(2), "elicitation/create", params);
    browser.wait("text=Open this");
    assert!(browser.text(".ask").contains(url));
    assert_eq!(browser.count(".ask a"), 0, "an address of a server is not a link");
    browser.click("role=button[name=\"Accept\"]");
    assert_eq!(children.next().message["result"]["action"], "accept");
    call.text("Hello, Ada");
    browser.wait("text=Hello, Ada");
    browser.click("role=link[name=/^(Timeline|Round)/] >> nth=-1");
    browser.wait("text=parked");
    let text = browser.text("main");
    assert!(text.contains("2026-07-28 → 2025-11-25"), "{text}");
    assert!(text.contains("asks the client") || text.contains("waits for the client"), "{text}");
    browser.assert_harmless();
}
