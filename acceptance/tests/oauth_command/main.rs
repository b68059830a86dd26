//! Logs in with the command line, at `oidc-provider` and at an authorization server that misbehaves.
//!
//! The first needs Node.js. If it cannot be installed, this is reported on stderr, and with `CI=true` the test fails.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod client_document;
mod connect;
mod gateways;
mod headless;
mod hold;
mod messages;
mod processes;
mod programs;
mod verbs;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use creole_acceptance::canaries;
use creole_acceptance::peers::idp::provider;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use serde_json::{Value, json};
use tempfile::TempDir;

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
        fs::read_to_string(self.0.path().join("browser.log")).unwrap_or_default()
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

    /// Writes a secret into a file in the folder `secrets`.
    fn write_secret(&self, name: &str, secret: &str) {
        canaries::watch(secret);
        let folder = self.0.path().join("secrets");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), format!("{secret}\n")).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Runs a command to its end.
    #[track_caller]
    fn run(&self, words: &[&str]) -> FinishedCommand {
        FinishedCommand::run(&mut self.command(words), "")
    }

    /// The file of the only login.
    #[track_caller]
    fn login_file(&self) -> PathBuf {
        let entries = fs::read_dir(self.logins()).unwrap();
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let is_login = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".json") && !name.starts_with("client-")
        };
        paths.iter().find(is_login).unwrap_or_else(|| panic!("no login: {paths:?}")).clone()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let folders = [self.logins(), self.0.path().join("secrets")];
        let is_for_secrets = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
        canaries::assert_absent_in_files(self.0.path(), is_for_secrets);
    }
}

/// Makes the access token of a stored login look expired.
fn expire(login_file: &Path) {
    let mut login: Value = serde_json::from_slice(&fs::read(login_file).unwrap()).unwrap();
    (login["created_at"], login["expires_at"]) = (json!(0), json!(1));
    fs::write(login_file, login.to_string()).unwrap();
}

/// The last line of stderr.
fn last(finished: &FinishedCommand) -> &str {
    finished.stderr.lines().last().unwrap_or_default()
}
