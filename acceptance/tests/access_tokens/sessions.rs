//! Scopes, sessions, streams and the audit log of callers with access tokens.

use std::fs;
use std::time::{Duration, Instant};

use creole_acceptance::http::{Connection, ListeningServer, Request, Response};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::issuer::{TestIssuer, now};
use crate::{TokenServer, message, table};

/// Two tools with a scope each, of which one implies the other.
const SCOPES: &str = "[auth.oauth]\nrequired_scopes = [\"mcp\"]\n\
    [auth.scopes.\"files:read\"]\ntools = [\"ech*\"]\n\
    [auth.scopes.\"files:write\"]\ntools = [\"hello\"]\nimplies = [\"files:read\"]\n";

/// A server with the tools `echo` and `hello`.
fn start(issuer: &TestIssuer, further: &str) -> TokenServer {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let server = "[server]\nname = \"protected\"\npacks = [\"echo\", \"hello\"]\n";
    let text = format!("{server}{further}{SCOPES}{}", table("corp", issuer, ""));
    fs::write(&file, text).unwrap();
    let server = ListeningServer::start(&[file.to_str().unwrap()]);
    TokenServer { server: server.unwrap_or_else(|error| panic!("{error}")), _folder: folder }
}

fn bearer(request: Request, token: &str) -> Request {
    request.with("Authorization", &format!("Bearer {token}"))
}

/// A stateless call of a tool.
fn modern_call(tool: &str) -> Request {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments(tool), "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Request::post(body.to_string()).with("MCP-Protocol-Version", "2026-07-28");
    request.with("Mcp-Method", "tools/call").with("Mcp-Name", tool)
}

fn arguments(tool: &str) -> Value {
    match tool {
        "hello" => json!({ "name": "Ada" }),
        _ => json!({ "message": "hi" }),
    }
}

/// Opens a session and returns its id.
fn open(protected: &TokenServer, token: &str) -> String {
    let response = protected.send(&bearer(message(), token));
    assert_eq!(response.head.status, 200, "{}", response.text());
    response.head.field("mcp-session-id").unwrap().to_owned()
}

/// A call in a session.
fn call(protected: &TokenServer, session: &str, tool: &str, token: &str) -> Response {
    let params = json!({ "name": tool, "arguments": arguments(tool) });
    let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let request = Request::post(body.to_string()).with("MCP-Protocol-Version", "2025-11-25");
    protected.send(&bearer(request.with("Mcp-Session-Id", session), token))
}

/// The scopes that a refusal asks for.
#[track_caller]
fn asked(response: &Response) -> String {
    assert_eq!(response.head.status, 403, "{}", response.text());
    let challenge = response.head.field("www-authenticate").unwrap_or_default();
    assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
    let scopes = challenge.split("scope=\"").nth(1).and_then(|rest| rest.split('"').next());
    scopes.unwrap_or_default().to_owned()
}

#[test]
fn a_missing_scope_is_asked_for_and_the_tool_does_not_run() {
    let issuer = TestIssuer::start();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let audit = format!("[[server.chain]]\nkind = \"audit\"\nfile = \"{}\"\n", log.display());
    let protected = start(&issuer, &audit);
    let token = |scope: &str| issuer.token(&protected.url(), json!({ "scope": scope }));
    let reader = token("mcp files:read");
    let refused = protected.send(&bearer(modern_call("hello"), &reader));
    assert_eq!(asked(&refused), "mcp files:write");
    let session = open(&protected, &reader);
    let refused = call(&protected, &session, "hello", &reader);
    assert_eq!(asked(&refused), "mcp files:read files:write");
    // No layer saw the calls, and each has a line.
    let calls = || -> Vec<Value> {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["method"] == "tools/call").collect()
    };
    eventually(|| format!("two lines: {:?}", calls()), || calls().len() == 2);
    for (line, revision) in calls().iter().zip(["2026-07-28", "2025-11-25"]) {
        assert_eq!((&line["outcome"], &line["target"]), (&json!("fault"), &json!("hello")));
        assert_eq!(
            (&line["layer"], &line["fault"]),
            (&json!("scopes"), &json!("insufficient-scope"))
        );
        assert_eq!((&line["revision"], &line["remote"]), (&json!(revision), &json!("127.0.0.1")));
        assert_eq!(line["scopes"], json!(["mcp", "files:read"]));
        assert_eq!(line["session"].is_string(), revision == "2025-11-25", "{line}");
    }
    // The session goes on with a better token of the same client, and the implied scope is enough.
    let writer = token("mcp files:write");
    assert_eq!(call(&protected, &session, "hello", &writer).head.status, 200);
    assert_eq!(call(&protected, &session, "echo", &writer).head.status, 200);
    assert_eq!(
        asked(&protected.send(&bearer(message(), &token("files:write")))),
        "mcp files:write"
    );
}

#[test]
fn a_session_belongs_to_one_person_and_one_client() {
    let issuer = TestIssuer::start();
    let protected = start(&issuer, "");
    let token = |sub: &str, client: &str| {
        let changes = json!({ "sub": sub, "client_id": client, "scope": "mcp files:write",
            "jti": format!("{}", now()) });
        issuer.token(&protected.url(), changes)
    };
    let session = open(&protected, &token("ada", "editor"));
    let status = |token: &str| call(&protected, &session, "echo", token).head.status;
    assert_eq!(status(&token("ada", "phone")), 404);
    assert_eq!(status(&token("bob", "editor")), 404);
    assert_eq!(status(&token("ada", "editor")), 200);
    // A person and a program whose names are equal.
    let (person, program) = (token("ci", "app"), token("ci", "ci"));
    let (of_person, of_program) = (open(&protected, &person), open(&protected, &program));
    assert_eq!(call(&protected, &of_person, "echo", &program).head.status, 404);
    assert_eq!(call(&protected, &of_program, "echo", &person).head.status, 404);
    assert_eq!(call(&protected, &of_program, "echo", &program).head.status, 200);
}

#[test]
fn a_stream_ends_soon_after_its_token_and_the_session_goes_on() {
    let issuer = TestIssuer::start();
    let protected = start(&issuer, "");
    let token = |expires: u64| {
        let changes = json!({ "exp": expires, "scope": "mcp files:read" });
        issuer.token(&protected.url(), changes)
    };
    let session = open(&protected, &token(now() + 600));
    // Such a token is still accepted, because clocks differ by up to a minute.
    let started = Instant::now();
    let listen = Request::get(&session).with("MCP-Protocol-Version", "2025-11-25");
    let mut connection = Connection::open(protected.server.address()).unwrap();
    let listen = bearer(listen, &token(now() - 56));
    connection.write(&listen.bytes(protected.server.address())).unwrap();
    let head = connection.head().unwrap();
    assert_eq!(head.status, 200);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut connection.body(&head), &mut rest).unwrap();
    let lasted = started.elapsed();
    assert!(lasted > Duration::from_secs(2) && lasted < Duration::from_secs(15), "{lasted:?}");
    assert_eq!(call(&protected, &session, "echo", &token(now() + 600)).head.status, 200);
}

#[test]
fn the_audit_log_names_the_caller_in_plain_characters() {
    let issuer = TestIssuer::start();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.log");
    let audit = format!("[[server.chain]]\nkind = \"audit\"\nfile = \"{}\"\n", log.display());
    let mut protected = start(&issuer, &audit);
    let sub = "a:b\u{202e}\u{2066}";
    let token = issuer.token(&protected.url(), json!({ "sub": sub, "scope": "mcp files:read" }));
    let long = issuer.token(&protected.url(), json!({ "sub": "x".repeat(400) }));
    assert_eq!(protected.send(&bearer(modern_call("echo"), &token)).head.status, 200);
    assert_eq!(protected.send(&bearer(modern_call("hello"), &long)).head.status, 403);
    protected.server.stop().unwrap();
    let text = fs::read_to_string(&log).unwrap();
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line["principal"], "oauth:corp:a%3Ab%E2%80%AE%E2%81%A6");
    assert_eq!((&line["issuer"], &line["client"]), (&json!("corp"), &json!("editor")));
    assert_eq!((&line["auth"], &line["scopes"]), (&json!("jwt"), &json!(["mcp", "files:read"])));
    assert_eq!(line["token"].as_str().map(str::len), Some(8));
    assert!(!text.contains(&token) && !protected.server.log().contains(&token));
    let shown = protected.server.log();
    assert!(shown.contains("oauth:corp:~") && !shown.contains(&"x".repeat(100)), "{shown}");
}
