//! Tests of configurations on the command line: as targets, with `config check`, and with their status.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod checked;
mod dead;
mod inside;
mod lines;
mod messages;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use tempfile::TempDir;

/// A folder with a configuration, in which commands run.
struct Sandbox(TempDir);

impl Sandbox {
    /// A folder with a `creole.toml` of this text.
    fn with(text: &str) -> Self {
        let sandbox = Self(tempfile::tempdir().unwrap());
        sandbox.write("creole.toml", text);
        sandbox
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    /// Runs `creole` with an empty stdin and one secret in the environment.
    fn run(&self, words: &[&str]) -> FinishedCommand {
        Command::new(binary().expect("the binary under test"))
            .args(words)
            .current_dir(self.path())
            .env("CREOLE_DATA_DIR", self.path())
            .env("CREOLE_TEST_SECRET", "hunter2")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap()
            .into()
    }
}
