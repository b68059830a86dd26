//! Tests of configured tools with the binary: a configuration, a client on stdio, and programs and services that check
//! their input.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stdout, reason = "measurements are reported")]

mod command;
mod endings;
mod examples;
mod http;
mod openapi;
mod reach;
mod secrets;
mod service;

use std::fs;
use std::path::Path;

use creole_acceptance::canaries;
use creole_acceptance::process_under_test::{Server, serve, told};
use serde_json::Value;
use tempfile::TempDir;

/// A server with its own configuration, and the folder of the configuration.
struct ConfiguredServer {
    server: Server,
    folder: TempDir,
}

impl ConfiguredServer {
    /// Starts a server with these tables besides `[server]`.
    fn start(tables: &str) -> Self {
        Self::start_with(tables, &[], &[])
    }

    /// The same with additional arguments and environment variables.
    fn start_with(tables: &str, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("creole.toml"), format!("[server]\n{tables}")).unwrap();
        let words = [&["creole.toml"], words].concat();
        let mut command = serve(folder.path(), &words);
        command.envs(variables.iter().copied());
        for (_, secret) in variables.iter().filter(|(name, _)| *name == "SECRET") {
            canaries::watch(secret);
        }
        let server = Server::start_command(command).greeted();
        Self { server, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Calls a tool. Returns the text of its result, or of the error.
    #[track_caller]
    fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        told(&self.server.call(tool, &arguments))
    }
}

/// The child processes of a process, including zombies.
fn children(of: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let of_each = tasks.map(|task| task.unwrap().path().join("children"));
    let listed: Vec<String> =
        of_each.map(|path| fs::read_to_string(path).unwrap_or_default()).collect();
    listed.iter().flat_map(|children| children.split_whitespace()).map(str::to_owned).collect()
}

/// The reapers among them.
fn reapers(of: u32) -> Vec<String> {
    let words = |child: &String| fs::read_to_string(format!("/proc/{child}/cmdline"));
    let is_reaper = |child: &String| words(child).is_ok_and(|text| text.ends_with("\0reap\0"));
    children(of).into_iter().filter(is_reaper).collect()
}
