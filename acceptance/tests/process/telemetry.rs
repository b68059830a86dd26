//! Tests of the log on stderr: exactly the events that seed 000 requires, as lines of JSON.

use std::fs;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::ListeningServer;
use creole_acceptance::process_under_test::{Server, ServerExit, call, request};
use serde_json::{Value, json};

use crate::json_of;

/// The log of a server with telemetry for these messages.
fn logged(words: &[&str], messages: &str) -> (ServerExit, Vec<Value>) {
    let mut server = Server::start(words);
    server.write(messages);
    let ended = server.finish();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let events = ended.log.lines().map(json_of).collect();
    (ended, events)
}

const BB: [&str; 4] = ["--preset", "bb-mcp-server", "--log", "json"];

fn initialize() -> String {
    let hello = json!({"protocolVersion": "1.0", "clientInfo": {"name": "x", "version": "1"}});
    request(1, "initialize", &hello)
}

/// The fields of the events with this message.
fn events<'a>(events: &'a [Value], message: &str) -> Vec<&'a Value> {
    let fields = events.iter().map(|event| &event["fields"]);
    fields.filter(|fields| fields["message"] == message).collect()
}

#[test]
fn each_request_is_logged_at_its_start_and_end() {
    let messages = initialize()
        + &call(2, "echo", &json!({"message": "hi"}))
        + &request(3, "no/such/method", &json!({}))
        + &call(4, "calculate", &json!({"expression": "1/0"}));
    let (_, log) = logged(&BB, &messages);
    let received: Vec<_> = events(&log, "request received");
    let completed: Vec<_> = events(&log, "request completed");
    let methods = ["initialize", "tools/call", "no/such/method", "tools/call"];
    let outcomes = ["success", "success", "error", "error"];
    assert_eq!((received.len(), completed.len()), (4, 4), "{log:#?}");
    for (index, method) in methods.into_iter().enumerate() {
        let id = json!((index + 1).to_string());
        assert_eq!((&received[index]["method"], &received[index]["id"]), (&json!(method), &id));
        assert_eq!((&completed[index]["method"], &completed[index]["id"]), (&json!(method), &id));
        assert_eq!(completed[index]["outcome"], outcomes[index]);
        assert!(completed[index]["duration_us"].is_u64(), "{}", completed[index]);
    }
    for event in &log {
        assert!(event["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
        assert_eq!(event["level"], "INFO");
    }
}

#[test]
fn each_tool_that_ran_is_logged_with_its_outcome() {
    let messages = initialize()
        + &call(2, "echo", &json!({"message": "hi"}))
        + &call(3, "calculate", &json!({"expression": "1/0"}));
    let (_, log) = logged(&BB, &messages);
    let tools = events(&log, "tool invoked");
    let told: Vec<_> = tools.iter().map(|event| (&event["tool"], &event["outcome"])).collect();
    assert_eq!(told, [(&json!("echo"), &json!("success")), (&json!("calculate"), &json!("error"))]);
    assert!(tools.iter().all(|event| event["duration_us"].is_u64()), "{tools:?}");
}

#[test]
fn the_log_is_not_on_stdout() {
    let messages = initialize() + &call(2, "echo", &json!({"message": "hi"})) + "garbage\n";
    for words in [&BB[..], &["--preset", "bb-mcp-server", "--debug", "--log", "text"]] {
        let mut server = Server::start(words);
        server.write(&messages);
        let ended = server.finish();
        assert!(!ended.log.is_empty());
        assert_eq!(ended.output.len(), 3, "{:?}", ended.output);
        for line in &ended.output {
            assert_eq!(json_of(line)["jsonrpc"], "2.0");
        }
    }
}

const SECRET: &str = "s3cr3t-of-the-client";

#[test]
fn arguments_and_results_are_not_logged() {
    let messages = initialize()
        + &call(2, "hello", &json!({"name": SECRET}))
        + &call(3, "echo", &json!({"message": SECRET, "unknown": SECRET}))
        + &call(4, "calculate", &json!({"expression": SECRET}));
    for words in [&BB[..], &["--preset", "bb-mcp-server", "--debug", "--log", "json"]] {
        let (ended, _) = logged(words, &messages);
        assert!(ended.output[1].contains(SECRET), "{:?}", ended.output);
        assert!(!ended.log.contains(SECRET), "{words:?}: {}", ended.log);
    }
}

/// The log of a server that logs whole messages.
fn logged_whole(messages: &str) -> (ServerExit, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let text = "[server]\ndialect = \"bb-mcp-server\"\npacks = [\"hello\"]\n\
                [log]\nformat = \"json\"\npayloads = true\n";
    fs::write(&file, text).unwrap();
    logged(&[file.to_str().unwrap()], messages)
}

#[test]
fn arguments_and_results_are_logged_if_configured() {
    let messages = initialize() + &call(2, "hello", &json!({"name": SECRET}));
    let (ended, log) = logged_whole(&messages);
    assert!(ended.output[1].contains("Hello, "), "{:?}", ended.output);
    let shown =
        |text: &str| log.iter().any(|event| event["fields"]["frame"].to_string().contains(text));
    assert!(shown(&format!(r#"\"name\":\"{SECRET}\""#)), "the arguments: {}", ended.log);
    assert!(shown(&format!("Hello, {SECRET}!")), "the result: {}", ended.log);
}

/// The stderr of a server over HTTP with this log configuration, after a call in each era.
fn logged_over_http(log: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    fs::write(&file, format!("[server]\npacks = [\"hello\"]\n[log]\n{log}")).unwrap();
    let mut server = ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
    let arguments = json!({"name": SECRET});
    let alone = StatelessClient::new(server.address()).call("hello", arguments.clone());
    let session = HandshakeClient::open(server.address(), "2025-11-25", json!({}), None);
    let within = session.call("hello", arguments);
    for response in [alone, within] {
        assert_eq!(response["result"]["content"][0]["text"], format!("Hello, {SECRET}!"));
    }
    server.stop().unwrap();
    server.log()
}

#[test]
fn arguments_and_results_are_logged_over_http_if_configured() {
    let text = logged_over_http("format = \"json\"\npayloads = true\n");
    let log: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let frames = events(&log, "message");
    let told = |direction: &str, words: &str| {
        let frames = frames.iter().filter(|event| event["direction"] == direction);
        frames.filter(|event| event["frame"].as_str().unwrap().contains(words)).count()
    };
    assert_eq!(told("received", &format!(r#""name":"{SECRET}""#)), 2, "{text}");
    assert_eq!(told("sent", &format!("Hello, {SECRET}!")), 2, "{text}");
    assert_eq!(told("received", "initialize"), 2, "the handshake has two messages: {text}");
    let text = logged_over_http("format = \"json\"\nlevel = \"trace\"\n");
    assert!(!text.contains(SECRET), "{text}");
}

#[test]
fn a_last_message_without_its_newline_is_logged_like_the_others() {
    let (ended, log) = logged_whole(initialize().trim_end());
    let frames = events(&log, "message");
    let directions: Vec<_> = frames.iter().map(|event| &event["direction"]).collect();
    assert_eq!(directions, [&json!("received"), &json!("sent")], "{}", ended.log);
}

#[test]
fn control_characters_of_a_client_cannot_forge_or_colour_the_log() {
    let nasty = "a\u{1b}[2J\r\n{\"level\":\"ERROR\"}\u{7}\u{9b}31m\u{2028}";
    let messages = initialize()
        + &format!("{}\n", json!({"jsonrpc": "2.0", "id": nasty, "method": nasty}))
        + &call(3, nasty, &json!({}));
    for format in ["json", "text"] {
        let mut server = Server::start(&["--preset", "bb-mcp-server", "--log", format]);
        server.write(&messages);
        let ended = server.finish();
        assert!(ended.log.contains("[2J"), "the method is logged: {}", ended.log);
        let bad = ended.log.chars().find(|character| {
            (character.is_control() && *character != '\n')
                || matches!(character, '\u{2028}' | '\u{2029}')
        });
        assert_eq!(bad, None, "{format}: {}", ended.log.escape_debug());
        assert!(!ended.log.lines().any(|line| line.starts_with("{\"level\"")), "{}", ended.log);
        if format == "json" {
            let log: Vec<Value> = ended.log.lines().map(json_of).collect();
            let received = events(&log, "request received");
            assert!(received.iter().any(|event| event["method"] == nasty), "{}", ended.log);
        }
    }
}

#[test]
fn refused_messages_are_logged_too() {
    let (_, log) = logged(&BB, "garbage\n{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}\n[]\n");
    assert_eq!(log.len(), 3, "{log:#?}");
}

#[test]
fn other_presets_log_requests_only_if_configured() {
    let mut server = Server::start(&["--log", "json"]).greeted();
    server.ping();
    assert_eq!(server.finish().log, "");

    let mut server = Server::start(&["--log", "json", "--debug"]).greeted();
    server.ping();
    let log: Vec<Value> = server.finish().log.lines().map(json_of).collect();
    assert_eq!(events(&log, "request completed").len(), 2, "{log:#?}");
}
