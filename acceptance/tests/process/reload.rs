//! Tests of reloads while the server runs: the whole configuration takes effect, or nothing changes.

use std::fs;
use std::path::Path;
use std::process::Command;

use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::process_under_test::{Server, call, request, serve};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

/// Replaces a configuration in one step, as careful editors do.
fn write(folder: &Path, text: &str) {
    let fresh = folder.join("creole.toml.new");
    fs::write(&fresh, text).unwrap();
    fs::rename(fresh, folder.join("creole.toml")).unwrap();
}

fn start(folder: &Path) -> Server {
    let file = folder.join("creole.toml");
    Server::start_in(folder, &[file.to_str().unwrap()]).greeted()
}

/// The names of the server's tools. Notifications before the response are skipped.
#[track_caller]
fn tools(server: &mut Server) -> Vec<String> {
    server.write(request(800, "tools/list", &json!({})));
    let response = loop {
        let response = server.answer();
        if response["id"] == 800 {
            break response;
        }
    };
    let tools = response["result"]["tools"].as_array().unwrap_or_else(|| panic!("{response}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_file_that_changes_changes_the_lists_and_drops_no_call() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "[server]\nname = \"t\"\npacks = [\"hello\", \"tasks\"]\n");
    let mut server = start(folder.path());
    let created = server.call("create_task", &json!({"description": "wait for it"}));
    let task: Value =
        serde_json::from_str(created["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    let id = &task["id"];
    // A call that runs during the reload.
    let waits = json!({"id": id, "status": "done", "timeout_seconds": 60});
    server.write(call(900, "wait_task", &waits));

    write(folder.path(), "[server]\nname = \"t\"\npacks = [\"hello\", \"echo\", \"tasks\"]\n");
    assert_eq!(server.answer()["method"], "notifications/tools/list_changed");
    assert_eq!(tools(&mut server)[..2], ["hello", "echo"]);
    let echoed = server.call("echo", &json!({"message": "here"}));
    assert_eq!(echoed["result"]["content"][0]["text"], "here", "{echoed}");

    server.write(request(
        901,
        "tools/call",
        &json!({"name": "update_task",
        "arguments": {"id": id, "status": "done"}}),
    ));
    let mut ids = [server.answer()["id"].clone(), server.answer()["id"].clone()];
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [json!(900), json!(901)]);
    let ended = server.finish();
    assert_eq!(ended.code, Some(0));
    assert!(ended.log.contains("was reloaded; changed: tools"), "{}", ended.log);
}

#[test]
fn an_invalid_configuration_changes_nothing_and_is_reported_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "[server]\nname = \"t\"\npacks = [\"hello\"]\n");
    let mut server = start(folder.path());
    write(folder.path(), "[server]\nname = \"t\"\npacks = [\"hello\", \"echoo\"]\n");
    server.until_said("the previous configuration stays active");
    assert_eq!(tools(&mut server), ["hello"]);
    write(folder.path(), "[server]\nname = \"other\"\npacks = [\"hello\", \"echo\"]\n");
    server.until_said("`name` cannot change while the server runs; restart the server");
    assert_eq!(tools(&mut server), ["hello"]);
    write(folder.path(), "[server]\nname = \"t\"\npacks = [\"echo\"]\n");
    assert_eq!(server.answer()["method"], "notifications/tools/list_changed");
    assert_eq!(tools(&mut server), ["echo"]);
    let ended = server.finish();
    assert!(ended.log.contains("creole.toml:3:19"), "{}", ended.log);
}

#[test]
fn unchanged_upstreams_are_not_restarted() {
    let folder = tempfile::tempdir().unwrap();
    let preset = |name: &str| format!("[upstreams.{name}]\npreset = \"everything\"\n");
    let head = "[server]\nname = \"t\"\npacks = [\"hello\"]\n";
    write(folder.path(), &format!("{head}{}", preset("one")));
    let mut server = start(folder.path());
    assert!(tools(&mut server)[1..].iter().all(|tool| tool.starts_with("one__")));
    let before = children(&server);

    write(folder.path(), &format!("{head}{}{}", preset("one"), preset("two")));
    server.until_said("was reloaded");
    let listed = until(&mut server, |tools| tools.iter().any(|tool| tool.starts_with("two__")));
    assert_eq!(listed[0], "hello");
    let during = children(&server);
    assert!(before.iter().all(|child| during.contains(child)), "{before:?} {during:?}");

    write(folder.path(), &format!("{head}{}", preset("two")));
    let left = until(&mut server, |tools| !tools.iter().any(|tool| tool.starts_with("one__")));
    assert!(left.iter().any(|tool| tool.starts_with("two__")), "{left:?}");
    assert_eq!(server.finish().code, Some(0));
}

#[test]
fn a_signal_has_the_file_read_again_on_stdio_too() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "[server]\nname = \"t\"\npacks = [\"hello\"]\n");
    let mut server = start(folder.path());
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    server.until_said("creole.toml was reloaded; the lists are unchanged");
    server.ping();
    assert_eq!(server.finish().code, Some(0));
}

#[test]
fn later_http_requests_see_the_reloaded_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, log: &str| {
        format!("[server]\nname = \"{name}\"\npacks = [\"hello\"]\n[log]\nlevel = \"{log}\"\n")
    };
    write(folder.path(), &of("before", "warn"));
    let command = serve(folder.path(), &["--http", "127.0.0.1:0", "creole.toml"]);
    let mut server = ListeningServer::other(command).unwrap();
    let (session, name) = initialize(&server);
    assert_eq!(name, "before");

    write(folder.path(), &of("after", "info"));
    server.until_said("was reloaded; the lists are unchanged");
    assert_eq!(initialize(&server).1, "after");
    let call = Request::post(call(1, "hello", &json!({"name": "Ann"})))
        .with("Mcp-Session-Id", &session)
        .with("MCP-Protocol-Version", "2025-06-18");
    let response = call.send(server.address()).unwrap().message();
    assert_eq!(response["result"]["content"][0]["text"], "Hello, Ann!", "{response}");
    server.until_said("request completed");

    write(folder.path(), &of("last", "warn").replace("level", "format").replace("warn", "json"));
    server
        .until_said("`format` in `[log]` cannot change while the server runs; restart the server");
    assert_eq!(initialize(&server).1, "after");
    server.stop().unwrap();
}

/// Opens a session. Returns its id and the server's name.
#[track_caller]
fn initialize(server: &ListeningServer) -> (String, String) {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let response = Request::post(request(0, "initialize", &params)).send(server.address()).unwrap();
    let session = response.head.field("mcp-session-id").unwrap().to_owned();
    let name = response.message()["result"]["serverInfo"]["name"].as_str().unwrap().to_owned();
    (session, name)
}

/// Lists tools until the list satisfies the condition.
#[track_caller]
fn until(server: &mut Server, is_right: impl Fn(&[String]) -> bool) -> Vec<String> {
    eventually("the expected tools are listed", || {
        let found = tools(server);
        is_right(&found).then_some(found)
    })
}

/// The child processes of a server.
fn children(server: &Server) -> Vec<String> {
    let id = server.id();
    let listed = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    listed.split_whitespace().map(str::to_owned).collect()
}
