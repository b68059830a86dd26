//! Captures: payloads of calls are seen redacted, only while a capture runs.

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies, StatelessClient};
use serde_json::json;

use crate::{Console, toml_command};

#[test]
fn payloads_are_redacted_and_gone_when_the_capture_ends() {
    let children = ScriptedChildren::new(ScriptedReplies::new(
        "2025-06-18",
        json!({"tools": {}}),
        &["search"],
    ));
    let config = format!(
        "[server]\nname = \"house\"\n\n[upstreams.up]\nprefix = \"\"\n{}",
        toml_command(&children.command()),
    );
    let console = Console::start(&config);
    let Some(mut browser) = console.browser() else { return };
    browser.open("#/calls");
    browser.click("role=button[name=\"Capture…\"]");
    browser.fill("dialog >> role=textbox[name=\"Target\"]", "search");
    browser.click("role=button[name=\"Start\"]");
    browser.wait("text=target search");
    let client = StatelessClient::new(console.server.address());
    let mut pending =
        client.begin_call("search", json!({"query": "roads", "password": "canary-of-the-capture"}));
    children.hears("tools/call").text("three pages");
    let _ = pending.answer();
    browser.click("tr:has-text(\"search\") >> role=link >> nth=0");
    browser.wait("text=Request");
    let shown = browser.text("main");
    assert!(shown.contains("roads") && shown.contains("three pages"), "{shown}");
    assert!(!shown.contains("canary-of-the-capture"), "{shown}");
    let columns = browser.evaluate("[...document.querySelectorAll('.compare .lines')].filter((it) => it.innerText.includes('•••')).length");
    assert!(columns.as_u64().unwrap() >= 2, "redacted on both sides: {shown}");
    assert!(shown.contains("2026-07-28 → 2025-06-18"), "{shown}");
    let call = browser.evaluate("location.hash").as_str().unwrap().to_owned();
    let id = call.rsplit('/').next().unwrap().to_owned();

    // Another tab ends the capture: this page drops the payloads too.
    browser.evaluate(
        "(async () => { const headers = { Authorization: `Bearer ${sessionStorage.getItem('creole.bearer')}` }; \
         const { items } = await (await fetch('/api/v1/captures', { headers })).json(); \
         for (const it of items) await fetch(`/api/v1/captures/${it.id}`, { method: 'DELETE', headers }); })()",
    );
    browser.wait_gone(".compare");
    assert!(!browser.text("main").contains("three pages"));
    let text = browser.evaluate(&format!(
        "fetch('/api/v1/calls/{id}', {{ headers: {{ Authorization: `Bearer ${{sessionStorage.getItem('creole.bearer')}}` }} }}).then((it) => it.text())",
    ));
    assert!(!text.as_str().unwrap().contains("roads"), "{text}");
    browser.assert_harmless();
}
