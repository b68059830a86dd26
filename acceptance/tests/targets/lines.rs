//! Tests of a server's stderr: JSON if it is requested, and the reasons for rejected callers.

use std::io::Write;
use std::process::{Command, Stdio};

use creole_acceptance::http::server::ListeningServer;
use creole_acceptance::stage::stdio::binary;
use serde_json::Value;

use super::Sandbox;

/// The level of each line, which must be a JSON object with a message.
#[track_caller]
fn levels(log: &str) -> Vec<String> {
    let level = |line: &str| {
        let read: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert!(read["fields"]["message"].is_string() && read["timestamp"].is_string(), "{line}");
        read["level"].as_str().unwrap_or_default().to_owned()
    };
    log.lines().map(level).collect()
}

#[test]
fn every_line_is_json_if_the_log_is() {
    let text = "[server]\npacks = [\"echo\"]\n[log]\nformat = \"json\"\n";
    let sandbox = Sandbox::with(text);
    let file = sandbox.path().join("creole.toml").display().to_string();
    let mut listening = ListeningServer::start(&[&file]).unwrap();
    sandbox.write("creole.toml", &text.replace("\"echo\"", "\"echo\", \"hello\""));
    listening.until_said("was reloaded; changed: tools");
    sandbox.write("creole.toml", &text.replace("\"echo\"", "\"ehco\""));
    listening.until_said("the previous configuration stays active");
    listening.stop().unwrap();
    listening.until_said("shutting down after the running calls");
    let log = listening.log();
    let levels = levels(&log);
    assert!(levels.contains(&"ERROR".to_owned()) && levels.len() >= 4, "{log}");
}

#[test]
fn an_error_at_the_start_is_json_too() {
    let sandbox = Sandbox::with("[server]\npakcs = []\n[log]\nformat = \"json\"\n");
    let output = sandbox.run(&["serve", "creole.toml"]);
    assert_eq!(
        (output.code, levels(&output.stderr)),
        (Some(2), vec!["ERROR".to_owned()]),
        "{output:?}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = sandbox.run(&["serve", "--log", "json", "--http", &address]);
    assert_eq!(
        (output.code, levels(&output.stderr)),
        (Some(1), vec!["ERROR".to_owned()]),
        "{output:?}"
    );
}

#[test]
fn a_refused_caller_is_logged_with_the_reason_and_without_the_secret() {
    let sandbox = Sandbox::with("");
    let key = |name: &str, words: &[&str]| {
        let output = sandbox.run(&[&["passwd", "keys.txt", "--key", name], words].concat());
        output.stdout.trim().to_owned()
    };
    let (old, poor) = (key("old", &["--expires", "2099-01-31"]), key("poor", &[]));
    let keys = std::fs::read_to_string(sandbox.path().join("keys.txt")).unwrap();
    sandbox.write("keys.txt", &keys.replace("2099-", "2020-"));
    let text = "[server]\npacks = [\"echo\"]\n[auth]\nkeys_file = \"keys.txt\"\nrole = \"mcp\"\n";
    sandbox.write("creole.toml", text);
    let file = sandbox.path().join("creole.toml").display().to_string();
    let listening = ListeningServer::start(&[&file]).unwrap();
    for (sent, reason) in [
        (Some("hunter2-unknown"), "unknown key"),
        (Some(old.as_str()), "expired key"),
        (Some(poor.as_str()), "missing role"),
        (None, "no credentials"),
    ] {
        let header = sent.map(|key| format!("Authorization: Bearer {key}"));
        let mut words = vec!["list", "tools"];
        let url = listening.url();
        words.insert(1, &url);
        words.extend(header.iter().flat_map(|header| ["--header", header]));
        let output = sandbox.run(&words);
        assert_eq!(output.code, Some(1), "{output:?}");
        listening.until_said(&format!("reason=\"{reason}\""));
        let message = match (sent, reason) {
            (None, _) => "or send a key with --header",
            (_, "missing role") => "requires the scopes `mcp` (status 403)",
            _ => "refused these credentials (status 401)",
        };
        assert!(output.stderr.contains(message), "{output:?}");
    }
    let log = listening.log();
    assert!(!log.contains("hunter2") && !log.contains(&old) && !log.contains(&poor), "{log}");
}

#[test]
fn connect_to_a_dead_port_fails_after_its_client_left() {
    let mut child = Command::new(binary().unwrap())
        .args(["connect", "http://127.0.0.1:1/mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\
                 \"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n";
    child.stdin.take().unwrap().write_all(hello.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("error: `127.0.0.1:1` refuses connections"), "{text}");
}
