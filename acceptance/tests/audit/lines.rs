//! The lines of calls over HTTP: their members, the schema, secrets, and stdout.

use std::fs;
use std::process::{Command, Stdio};

use creole_acceptance::canaries;
use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::process_under_test::shell;
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use super::{audit, configure, lines};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A stateless call.
fn call(expression: &str) -> Request {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": format!("00-{TRACE}-b7ad6b7169203331-00"),
    });
    let arguments = json!({ "expression": expression });
    let params = json!({ "name": "calculate", "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Request::post(body.to_string()).with("MCP-Protocol-Version", "2026-07-28");
    request.with("Mcp-Method", "tools/call").with("Mcp-Name", "calculate")
}

#[test]
fn a_line_is_valid_against_the_schema_and_reveals_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "canary-audit-0123456789";
    canaries::watch(secret);
    configure(
        folder.path(),
        "file = \"audit.log\"\nchain = true\narguments = \"redacted\"\npatterns = ['canary-[a-z0-9-]+']",
    );
    let config = folder.path().join("creole.toml");
    let mut server = ListeningServer::start(&[config.to_str().unwrap()]).unwrap();
    let request = call(&format!("6*7 {secret}")).with("Authorization", &format!("Bearer {secret}"));
    request.send(server.address()).unwrap();
    call("6*7").send(server.address()).unwrap();
    server.stop().unwrap();
    let file = folder.path().join("audit.log");
    canaries::assert_absent("the audit log", &fs::read_to_string(&file).unwrap());
    let written = lines(&file);
    assert_eq!(written.len(), 2);
    let line = &written[1];
    let told = |key: &str| line[key].as_str().unwrap_or_default();
    assert_eq!((told("era"), told("revision")), ("stateless", "2026-07-28"));
    assert_eq!((told("remote"), told("via"), told("trace")), ("127.0.0.1", "mcp", TRACE));
    assert_eq!(line["arguments"], json!({ "expression": "6*7" }));
    assert!(written[0]["arguments"].to_string().contains("[redacted]"), "{}", written[0]);
    let schema: Value = serde_json::from_str(&audit(folder.path(), &["schema"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for line in &written {
        let errors: Vec<String> = validator.iter_errors(line).map(|it| it.to_string()).collect();
        assert_eq!(errors, [""; 0], "{line}");
    }
    let gap = json!({ "v": 1, "time": "2026-11-18T12:00:00.000Z", "lost": 3 });
    assert!(validator.is_valid(&gap));
    assert!(!validator.is_valid(&json!({ "v": 2, "time": "2026-11-18T12:00:00.000Z", "lost": 3 })));
}

#[test]
fn lines_on_stdout_are_a_chain_of_their_writer() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "to = \"stdout\"\nchain = true\nremote = false");
    let script = "exec creole serve creole.toml --http 127.0.0.1:0 > lines";
    let mut command = shell(folder.path(), script);
    command.stdin(Stdio::null());
    let mut server = ListeningServer::other(command).unwrap();
    for _ in 0..3 {
        call("6*7").send(server.address()).unwrap();
    }
    let file = folder.path().join("lines");
    eventually("three lines", || lines(&file).len() == 3);
    server.stop().unwrap();
    let written = lines(&file);
    assert!(written.iter().all(|line| line["writer"] == written[0]["writer"]), "{written:?}");
    assert!(written.iter().all(|line| line.get("remote").is_none()));
    let text = fs::read_to_string(&file).unwrap();
    let verify = |text: &str| {
        FinishedCommand::run(Command::new(binary().unwrap()).args(["audit", "verify", "-"]), text)
    };
    assert_eq!(verify(&text).code, Some(0));
    let changed = text.replacen("\"outcome\":\"ok\"", "\"outcome\":\"OK\"", 1);
    assert_eq!(verify(&changed).stderr, "error: -:1: the line was changed: its hash is wrong\n");
}
