//! Tests of upstreams on the command line: `connect`, `serve -- COMMAND`, and the chain of the preset `mcp-chain`.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod chain;
mod named;
mod pages;

use std::fs;
use std::path::Path;
use std::process::Command;

use creole_acceptance::process_under_test::{Server, serve};
use creole_acceptance::stage::stdio::binary;
use serde_json::{Value, json};

/// The path of the binary under test.
fn creole() -> String {
    binary().expect("the binary under test").display().to_string()
}

/// The command `creole` with these arguments. The folder is its working and data directory.
fn command(folder: &Path, words: &[&str]) -> Command {
    let at_home = serve(folder, &[]);
    let mut command = Command::new(at_home.get_program());
    for (name, value) in at_home.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(words).current_dir(folder);
    command
}

/// Starts a server and performs the handshake. Returns the result of `initialize`.
#[track_caller]
fn initialized(command: Command) -> (Server, Value) {
    let mut server = Server::start_command(command);
    let params = json!({
        "protocolVersion": "2025-03-26",
        "capabilities": {},
        "clientInfo": {"name": "acceptance", "version": "1"},
    });
    let initialize_result = server.request("initialize", &params);
    server.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    (server, initialize_result["result"].clone())
}

/// Writes a configuration file into a folder.
fn write(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).expect("the folder can be written");
}
