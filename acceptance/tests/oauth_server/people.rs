//! People who log in to a server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use creole_acceptance::canaries;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use serde_json::Value;
use tempfile::TempDir;

/// A person with a browser and a home of their own.
pub(crate) struct Person {
    home: TempDir,
    name: &'static str,
}

impl Person {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { home: tempfile::tempdir().unwrap(), name }
    }

    /// The program that opens an address and fills in the forms of a login as this person.
    pub(crate) fn browser(&self) -> PathBuf {
        let path = self.home.path().join("browser");
        let program = env!("CARGO_BIN_EXE_test-browser");
        let script =
            format!("#!/bin/sh\nTEST_BROWSER_PERSON={} exec {program} \"$@\"\n", self.name);
        if !path.exists() {
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        path
    }

    /// Runs a command of this person.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> FinishedCommand {
        let mut command = Command::new(binary().unwrap());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("CREOLE_") || name.contains("DISPLAY") {
                command.env_remove(name);
            }
        }
        command.args(words).current_dir(self.home.path()).stdin(Stdio::null());
        command.env("CREOLE_DATA_DIR", self.home.path()).env("NO_COLOR", "1");
        FinishedCommand::run(command.env("BROWSER", self.browser()), "")
    }

    /// Logs in with `creole login`, and returns the access token.
    #[track_caller]
    pub(crate) fn log_in(&self, url: &str) -> String {
        self.run(&["login", url]).succeeded();
        let entries = fs::read_dir(self.home.path().join("logins")).unwrap();
        let names = entries.map(|entry| entry.unwrap().path());
        let mut files = names.filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".json") && !name.starts_with("client-")
        });
        let login = fs::read(files.next().unwrap()).unwrap();
        let login: Value = serde_json::from_slice(&login).unwrap();
        let token = login["access_token"].as_str().unwrap().to_owned();
        canaries::watch(&token);
        token
    }
}
