//! Tests of many published servers behind one gateway: all are listed, and none survives the gateway.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use creole_acceptance::process_under_test::{Server, serve};
use creole_acceptance::zoo::{Folder, Package, Published};
use creole_test_wait::blocking::within;
use serde_json::{Value, json};

use Package::{Npm, Python};

/// The timeout for all servers to start or to exit.
const PATIENCE: Duration = Duration::from_secs(120);

/// The environment variable that identifies the processes of this test.
const MARK: &str = "ZOO_CROWD";

/// The servers, each with one of its tools.
const CROWD: [(&str, Published, &str); 10] = [
    (
        "memory",
        Published::new(Npm("@modelcontextprotocol/server-memory/dist/index.js")),
        "read_graph",
    ),
    (
        "thinking",
        Published::new(Npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js")),
        "sequentialthinking",
    ),
    (
        "postgres",
        Published::new(Npm("@modelcontextprotocol/server-postgres/dist/index.js"))
            .with(&["postgres://user@127.0.0.1:9/none"]),
        "query",
    ),
    (
        "obsidian",
        Published::new(Npm("mcp-obsidian/dist/index.js")).with(&["{folder}"]),
        "read_notes",
    ),
    ("commands", Published::new(Npm("mcp-server-commands/build/index.js")), "run_command"),
    ("hello", Published::new(Npm("mcp-hello-world/build/stdio.js")), "echo"),
    ("terraform", Published::new(Npm("terraform-mcp-server/dist/index.js")), "moduleDetails"),
    ("calculator", Published::new(Python("python-1", "mcp-server-calculator")), "calculate"),
    (
        "sqlite",
        Published::new(Python("python-1", "mcp-server-sqlite"))
            .with(&["--db-path", "{folder}/a.db"]),
        "list_tables",
    ),
    (
        "time",
        Published::new(Python("python-old", "mcp-server-time")).with(&["--local-timezone", "UTC"]),
        "convert_time",
    ),
];

#[test]
fn a_gateway_that_is_asked_to_end_leaves_none_of_ten_servers_behind() {
    let Some((gateway, folder)) = started() else { return };
    gateway.signal("TERM");
    let _ = gateway.until_ended();
    all_gone(folder.path());
}

#[test]
fn a_gateway_that_is_killed_leaves_none_of_ten_servers_behind() {
    let Some((gateway, folder)) = started() else { return };
    let _ = gateway.kill();
    all_gone(folder.path());
}

/// A gateway whose servers are all listed.
fn started() -> Option<(Server, Folder)> {
    let folder = Folder::new().unwrap();
    let text = configuration(&folder)?;
    fs::write(folder.path().join("creole.toml"), text).unwrap();
    let command = serve(folder.path(), &["creole.toml", "--stdio"]);
    let mut gateway = Server::start_command(command).greeted();
    let mut missing = Vec::new();
    let listed = within(PATIENCE, || {
        missing = not_listed(&mut gateway);
        missing.is_empty()
    });
    assert!(listed.is_some(), "not listed: {missing:?}");
    let running = marked(folder.path());
    assert!(running.len() >= CROWD.len(), "{running:?}");
    Some((gateway, folder))
}

/// The configuration of all servers. `None` if one cannot be installed here.
fn configuration(folder: &Folder) -> Option<String> {
    let mut text = String::new();
    for (name, server, _) in CROWD {
        let command = crate::command(&server, folder)?;
        let words: Vec<_> = command.iter().map(|word| json!(word.to_str().unwrap())).collect();
        let mark = folder.path().display();
        let _ = writeln!(text, "[upstreams.{name}]\ncommand = {}", json!(words));
        let _ = writeln!(text, "env = {{ {MARK} = \"{mark}\" }}\n");
    }
    Some(text)
}

/// The servers of which no tool is listed yet.
fn not_listed(gateway: &mut Server) -> Vec<&'static str> {
    gateway.write(format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})));
    // Change notifications may arrive before the response.
    let mut listed = gateway.answer();
    while listed.get("id").is_none() {
        listed = gateway.answer();
    }
    let tools = listed["result"]["tools"].as_array().cloned().unwrap_or_default();
    let has = |name: &str| tools.iter().any(|tool: &Value| tool["name"] == name);
    let missing = CROWD.iter().filter(|(name, _, tool)| !has(&format!("{name}__{tool}")));
    missing.map(|(name, ..)| *name).collect()
}

/// Waits until no process with the mark is left.
#[track_caller]
fn all_gone(folder: &Path) {
    let gone = within(PATIENCE, || marked(folder).is_empty());
    assert!(gone.is_some(), "processes left: {:?}", marked(folder));
}

/// The command lines of the processes with the mark of this folder. An ended process has no environment any more.
fn marked(folder: &Path) -> Vec<String> {
    let mark = format!("{MARK}={}\0", folder.display());
    let has_mark = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    let shown = |process: &Path| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        format!("{}: {}", process.display(), String::from_utf8_lossy(&words).replace('\0', " "))
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    processes.filter(|process| has_mark(process)).map(|process| shown(&process)).collect()
}
