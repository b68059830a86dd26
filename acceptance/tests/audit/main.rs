//! The audit log of the real binary: the hash chain, a full file system, secrets, stdout, and the search.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod chain;
mod failures;
mod lines;
mod search;

use std::fs;
use std::path::Path;
use std::process::Command;

use creole_acceptance::process_under_test::Server;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use serde_json::{Value, json};

/// Writes a configuration with the tool `calculate` and an audit log with these keys.
fn configure(folder: &Path, keys: &str) {
    let server = "[server]\nname = \"acme\"\npacks = [\"calculate\"]\n";
    let text = format!("{server}[[server.chain]]\nkind = \"audit\"\n{keys}\n");
    fs::write(folder.join("creole.toml"), text).unwrap();
}

/// A server of this configuration on stdin and stdout.
fn start(folder: &Path) -> Server {
    Server::start_in(folder, &["creole.toml"]).greeted()
}

/// Calls the tool this many times, some at once.
fn call_many(server: &mut Server, count: u64) {
    const AT_ONCE: u64 = 250;
    for first in (0..count).step_by(250) {
        let ids = first..(first + AT_ONCE).min(count);
        let message = |id: u64| {
            let arguments = json!({ "expression": "6*7" });
            creole_acceptance::process_under_test::call(id + 1, "calculate", &arguments)
        };
        server.write(ids.clone().map(message).collect::<String>());
        for _ in ids {
            let response = server.answer();
            assert!(response["result"].is_object(), "{response}");
        }
    }
}

/// Runs `creole audit` in this folder.
fn audit(folder: &Path, words: &[&str]) -> FinishedCommand {
    let mut command = Command::new(binary().unwrap());
    command.arg("audit").args(words).current_dir(folder);
    FinishedCommand::run(&mut command, "")
}

/// The names of the files of the log in this folder, the newest first.
fn log_names(folder: &Path) -> Vec<String> {
    let rotated = (1..100).map(|number| format!("audit.log.{number}"));
    let names = std::iter::once("audit.log".to_owned()).chain(rotated);
    names.filter(|name| folder.join(name).exists()).collect()
}

/// The lines of a file.
fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
