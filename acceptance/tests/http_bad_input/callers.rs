//! Rows about the identity of callers and about requests from web pages (D14, D23, D32).

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use creole_acceptance::gateway::{HandshakeClient, ScriptedChildren, ScriptedReplies};
use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::stage::stdio::binary;
use serde_json::json;
use tempfile::TempDir;

const ALICE: &str = "alice-secret-key-of-the-test";
const BOB: &str = "bob-secret-key-of-the-test";

/// The configuration of the callers' keys, with their hashes.
const KEYS: &str = r#"
[server]
packs = ["hello"]

[auth]
keys = [
    { name = "alice", sha256 = "fdedecbe137a31fb1ee084b0a8a53f3a6247bff209ab14e288af55aac40e5ed8" },
    { name = "bob", sha256 = "0a0ae130c452513bcca2c6b1d87601038383846f3313e4b24b768c6d9c64c8f0" },
]
"#;

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

fn configured(text: &str) -> (ListeningServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    fs::write(&file, text).unwrap();
    (ListeningServer::start(&[file.to_str().unwrap()]).unwrap(), folder)
}

#[test]
fn a_session_of_another_is_one_that_never_was() {
    let (server, _folder) = configured(KEYS);
    let alice = HandshakeClient::open(server.address(), "2025-11-25", json!({}), Some(ALICE));
    let requests = |session: &str, key: &str| {
        let all = [
            Request::post(LIST).with("Mcp-Session-Id", session),
            Request::get(session),
            Request::delete(session),
        ];
        let version = ("MCP-Protocol-Version", "2025-11-25");
        let key = format!("Bearer {key}");
        all.map(|one| one.with(version.0, version.1).with("Authorization", &key))
    };
    let never = "0".repeat(alice.session().len());
    let theirs = requests(alice.session(), BOB);
    for (theirs, unclaimed) in theirs.iter().zip(requests(&never, BOB)) {
        let theirs = theirs.send(server.address()).unwrap();
        let unclaimed = unclaimed.send(server.address()).unwrap();
        assert_eq!(theirs.head.status, 404, "D32: {}", theirs.text());
        assert_eq!(theirs.text(), unclaimed.text(), "D32");
        assert_eq!(theirs.head.names(), unclaimed.head.names(), "D32");
    }
    let response = alice.call("hello", json!({"name": "Alice"}));
    assert_eq!(
        response["result"]["content"][0]["text"], "Hello, Alice!",
        "D32: her session still works"
    );
}

/// The processor time of login attempts with these credentials, which all fail.
fn time_of(server: &ListeningServer, attempts: &[&str]) -> Duration {
    let before = server.weight().processor;
    for basic in attempts {
        let request = Request::post(LIST).with("Authorization", &format!("Basic {basic}"));
        assert_eq!(request.send(server.address()).unwrap().head.status, 401, "D14");
    }
    server.weight().processor - before
}

#[test]
fn an_unknown_user_costs_as_much_as_a_wrong_password() {
    let folder = tempfile::tempdir().unwrap();
    let mut passwd = Command::new(binary().unwrap())
        .args(["passwd", "users.txt", "alice"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    passwd.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
    assert!(passwd.wait().unwrap().success());
    let file = folder.path().join("creole.toml");
    fs::write(&file, "[server]\npacks = [\"hello\"]\n[auth]\nusers = \"users.txt\"\n").unwrap();
    let server = ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
    // nobody:a, nobody:b, nobody:c and alice:a, alice:b, alice:c.
    let unknown = ["bm9ib2R5OmE=", "bm9ib2R5OmI=", "bm9ib2R5OmM="];
    let invalid = ["YWxpY2U6YQ==", "YWxpY2U6Yg==", "YWxpY2U6Yw=="];
    let (unknown, wrong) = (time_of(&server, &unknown), time_of(&server, &invalid));
    // Processor time, not wall-clock time, so that the load of the machine does not count. One slow hash takes so much
    // more time than the rest that a missing hash would show.
    let least = Duration::from_millis(20);
    assert!(unknown > least && wrong > least, "D14: {unknown:?}, {wrong:?}");
    assert!(unknown < wrong * 2 && wrong < unknown * 2, "D14: {unknown:?}, {wrong:?}");
}

#[test]
fn a_web_page_has_nothing_done() {
    let children =
        ScriptedChildren::new(ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"]));
    let command = children.command();
    let server = ListeningServer::start(&["--", &command[0], &command[1]]).unwrap();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    // The requests that a form or `fetch` without CORS can send: these types, no custom header, and an origin.
    let types =
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"];
    let cross = [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "no-cors"),
        ("Sec-Fetch-Dest", "empty"),
    ];
    for origin in [Some("https://evil.example"), Some("null"), None] {
        for kind in types {
            let mut request = Request::post(call).replacing("Content-Type", kind);
            for (name, value) in cross {
                request = request.with(name, value);
            }
            if let Some(origin) = origin {
                request = request.with("Origin", origin);
            }
            let refused = request.send(server.address()).unwrap().head.status;
            let right = if origin.is_some() { 403 } else { 415 };
            assert_eq!(refused, right, "D23: {kind} from {origin:?}");
        }
        // A form or an image sends a GET.
        let mut request = Request::new("GET", "/mcp?method=tools%2Fcall");
        if let Some(origin) = origin {
            request = request.with("Origin", origin);
        }
        let refused = request.send(server.address()).unwrap().head.status;
        assert!(matches!(refused, 400 | 403 | 405 | 406), "D23: {refused} from {origin:?}");
    }
    assert!(children.within(Duration::from_millis(300)).is_none(), "D23: no tool was run");
}
