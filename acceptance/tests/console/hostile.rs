//! Texts of others do no harm: they are shown as text, wherever they come from.

use std::fs;

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies, StatelessClient};
use serde_json::{Value, json};

use crate::{Console, open_try, toml_command};

/// Texts that would run, load or leave if they became HTML, CSS, a link or a template.
const PAYLOADS: [&str; 20] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg onload=alert(3)>",
    "\"><script>alert(4)</script>",
    "' onmouseover='alert(5)",
    "javascript:alert(6)",
    "<a href=\"javascript:alert(7)\">x</a>",
    "<iframe src=\"data:text/html,<script>alert(8)</script>\"></iframe>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=alert(9)>",
    "{{constructor.constructor('alert(10)')()}}",
    "${alert(11)}",
    "</textarea><script>alert(12)</script>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "<meta http-equiv=refresh content=\"0;url=http://evil.example\">",
    "<base href=http://evil.example/>",
    "<form action=http://evil.example><button>x</button></form>",
    "<object data=http://evil.example/x></object>",
    "]]><script>alert(18)</script>",
    "<style>@import 'http://evil.example/y.css';</style>",
    "\u{202e}<b>gnp.exe</b>\u{200b}\u{e0041}",
];

fn hostile_upstream() -> ScriptedChildren {
    let tool = |(index, text): (usize, &&str)| {
        json!({
            "name": format!("tool{index}"), "title": text, "description": format!("{text} {text}"),
            "inputSchema": {"type": "object", "title": text, "description": text, "properties": {
                *text: {"type": "string", "title": text, "description": text, "default": text, "examples": [text]},
                "choice": {"enum": [text, "other"]},
            }},
        })
    };
    let mut tools: Vec<Value> = PAYLOADS.iter().enumerate().map(tool).collect();
    // Names that are not allowed are excluded, and shown with the reason.
    tools.extend(
        PAYLOADS.iter().map(|text| json!({"name": text, "inputSchema": {"type": "object"}})),
    );
    let replies = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &[])
        .answering("tools/list", json!({"tools": tools}));
    ScriptedChildren::new(replies)
}

#[test]
fn texts_of_others_are_shown_as_text() {
    let children = hostile_upstream();
    let all = PAYLOADS.join(" ");
    let comment = PAYLOADS[..19].join(" ");
    // The program writes the texts to standard error before it serves.
    let folder = tempfile::tempdir().unwrap();
    let texts = folder.path().join("texts");
    fs::write(&texts, format!("{}\n", PAYLOADS.join("\n"))).unwrap();
    let script = "cat \"$0\" >&2; exec \"$@\"".to_owned();
    let shell = ["sh".to_owned(), "-c".to_owned(), script, texts.display().to_string()];
    let command: Vec<String> = shell.into_iter().chain(children.command()).collect();
    let config = format!(
        "# {comment}\n[server]\nname = \"house\"\n\n[[server.chain]]\nkind = \"audit\"\nfile = \"audit.log\"\narguments = \"redacted\"\n\n\
         [upstreams.up]\nprefix = \"\"\n{}",
        toml_command(&command),
    );
    let console = Console::start_in(folder, &config);
    let Some(mut browser) = console.browser() else { return };
    browser.open("#/tools");
    browser.wait("text=tool0");
    let shown = browser.text("main");
    for text in &PAYLOADS[..18] {
        assert!(shown.contains(text), "{text} is not in: {shown}");
    }
    assert!(shown.contains("U+202E") && shown.contains("U+200B"), "{shown}");

    // Title, description and schema on the page of a tool, and in the form of Try. Then a result and an error.
    open_try(&mut browser, "tool1");
    browser.fill("#json", &json!({PAYLOADS[1]: all}).to_string());
    browser.click("role=button[name=\"Run\"]");
    let call = children.hears("tools/call");
    call.result(json!({"content": [
        {"type": "text", "text": all},
        {"type": "resource", "resource": {"uri": PAYLOADS[5], "text": all}},
        {"type": "resource_link", "uri": PAYLOADS[5], "name": all},
        {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"},
    ], "structuredContent": {PAYLOADS[2]: all}}));
    browser.wait("text=structured content");
    assert!(browser.text(".out").contains(&PAYLOADS[..19].join(" ")));
    browser.click("role=button[name=\"Run\"]");
    children.hears("tools/call").error(-32000, &all, &json!({"why": all}));
    browser.wait(".notice.bad");

    // A call of a client with such a name, to a tool that does not exist: calls, audit log, denials.
    let client = StatelessClient::new(console.server.address()).named(&all);
    let unknown = format!("{} unknown", PAYLOADS[1]);
    std::thread::scope(|scope| {
        scope.spawn(|| client.call(&unknown, json!({"x": all})));
        children.hears("tools/call").error(-32602, &all, &json!({"why": all}));
    });
    for page in ["#/calls", "#/audit", "#/denials", "#/sessions", "#/overview"] {
        browser.open(page);
        browser.wait("main h1");
        browser.wait_gone(".loading");
    }
    // Standard error: on the page of the upstream, and in the log.
    browser.open("#/upstreams/up");
    browser.wait("text=Standard error");
    let shown = browser.text("main");
    for text in &PAYLOADS[..19] {
        assert!(shown.contains(text), "{text} is not in: {shown}");
    }
    assert!(shown.contains("\\u{202e}"), "escaped by the server: {shown}");
    browser.open("#/log");
    browser.wait(".page-head >> text=live");
    // Lines of standard error are less important than the log writes them: they are made for this page.
    let restarted = browser.evaluate(
        "fetch('/api/v1/upstreams/up/restart', { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json', \
         Authorization: `Bearer ${sessionStorage.getItem('creole.bearer')}` } }).then((it) => it.status)",
    );
    assert_eq!(restarted, 202);
    browser.wait(&format!("td >> text={}", PAYLOADS[1]));
    browser.open("#/calls");
    browser.click("td >> role=link >> nth=0");
    browser.wait("text=Timeline");
    browser.open("#/audit");
    browser.click("role=button[name=\"Open\"]");
    browser.open("#/config");
    browser.wait(".source");
    assert!(browser.text(".source").contains(PAYLOADS[1]));
    // Addresses that others write: a link of the console with such a filter or path.
    for place in
        ["#/tools?q=", "#/calls?q=", "#/audit?q=", "#/upstreams/", "#/approvals/up/", "#/try/"]
    {
        let encoded = browser.evaluate(&format!("encodeURIComponent({})", json!(PAYLOADS[1])));
        browser.open(&format!("{place}{}", encoded.as_str().unwrap()));
        browser.wait("main h1");
    }
    browser.assert_harmless();
}
