//! Logs in with the command line, at `oidc-provider` and at an authorization server that misbehaves.
//!
//! The first needs Node.js. If it cannot be installed, this is reported on stderr, and with `CI=true` the test fails.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stderr, reason = "a skipped test is reported on stderr")]

mod connect;
mod headless;
mod messages;
mod processes;
mod verbs;

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use creole_acceptance::peers::idp::IdentityProvider;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use tempfile::TempDir;

/// A running `oidc-provider`, or nothing if it cannot be installed.
#[track_caller]
fn provider(options: &[&str]) -> Option<IdentityProvider> {
    let started = IdentityProvider::start(options).map_err(|missing| {
        assert!(env::var("CI").as_deref() != Ok("true"), "{missing}");
        eprintln!("NOT TESTED: {missing}");
    });
    started.ok()
}

/// The home of a user whose browser needs no person.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The folder of the logins.
    fn logins(&self) -> PathBuf {
        self.0.path().join("logins")
    }

    /// The arguments that the browser was started with, one line for each start.
    fn browser_log(&self) -> String {
        std::fs::read_to_string(self.0.path().join("browser.log")).unwrap_or_default()
    }

    /// A command of this user.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary().unwrap());
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("CREOLE_") || name.contains("DISPLAY") {
                command.env_remove(name);
            }
        }
        command.args(words).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("CREOLE_DATA_DIR", self.0.path()).env("NO_COLOR", "1");
        command.env("BROWSER", env!("CARGO_BIN_EXE_test-browser"));
        command.env("TEST_BROWSER_LOG", self.0.path().join("browser.log"));
        command
    }

    /// Runs a command to its end.
    #[track_caller]
    fn run(&self, words: &[&str]) -> FinishedCommand {
        FinishedCommand::run(&mut self.command(words), "")
    }

    /// The file of the only login.
    #[track_caller]
    fn login_file(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.logins()).unwrap();
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let is_login = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".json") && !name.starts_with("client-")
        };
        paths.iter().find(is_login).unwrap_or_else(|| panic!("no login: {paths:?}")).clone()
    }
}

/// The last line of stderr.
fn last(finished: &FinishedCommand) -> &str {
    finished.stderr.lines().last().unwrap_or_default()
}
