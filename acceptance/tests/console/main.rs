//! Tests of the console in Debian's Chromium, against the real binary with real upstreams.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod approvals;
mod captures;
mod forms;
mod hostile;
mod keyboard;
mod live;
mod modules;
mod pages;
mod sign_in;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::browser::Browser;
use creole_acceptance::peers::if_installed;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::process_under_test::serve;
use creole_acceptance::stage::stdio::{binary, repository};
use tempfile::TempDir;

/// A running `creole serve` with an admin listener.
struct Console {
    server: ListeningServer,
    folder: TempDir,
}

impl Console {
    /// Serves this configuration with the table `[admin]`, unless it has one.
    fn start(config: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), config)
    }

    fn start_in(folder: TempDir, config: &str) -> Self {
        let admin =
            if config.contains("[admin]") { "" } else { "\n[admin]\nlisten = \"127.0.0.1:0\"\n" };
        fs::write(folder.path().join("creole.toml"), format!("{config}{admin}")).unwrap();
        let file = folder.path().join("creole.toml").display().to_string();
        let mut command = serve(folder.path(), &["--http", "127.0.0.1:0", &file]);
        command.env("XDG_RUNTIME_DIR", folder.path());
        let server = ListeningServer::other(command).unwrap();
        Self { server, folder }
    }

    /// A new link that signs in, as `creole console` prints it.
    #[track_caller]
    fn link(&self) -> String {
        let mut command = Command::new(binary().unwrap());
        command.arg("console").env("CREOLE_DATA_DIR", self.folder.path());
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        let finished = FinishedCommand::run(&mut command, "");
        let line = finished.stdout.lines().find(|line| line.contains("/#t=")).map(str::trim);
        line.unwrap_or_else(|| panic!("no link: {finished:?}\n{}", self.server.log())).to_owned()
    }

    /// The address of the admin listener.
    #[track_caller]
    fn origin(&self) -> String {
        self.server.until_said("console");
        let log = self.server.log();
        let line = log.lines().find_map(|line| line.split_once(" at http://"));
        let (_, rest) = line.unwrap_or_else(|| panic!("no address of the console: {log}"));
        let address: String =
            rest.chars().take_while(|it| !it.is_whitespace() && *it != ';').collect();
        format!("http://{address}")
    }

    /// A browser that is signed in by a link. `None` if there is no browser.
    #[track_caller]
    fn browser(&self) -> Option<Browser> {
        let mut browser = self.browser_outside()?;
        browser.open(&self.link());
        browser.wait(".places");
        Some(browser)
    }

    /// A browser that has not opened the console.
    #[track_caller]
    fn browser_outside(&self) -> Option<Browser> {
        if_installed("Chromium", Browser::start(&self.origin()))
    }
}

/// The folder of the console's files.
fn console_files() -> PathBuf {
    repository().join("crates/admin/console")
}

/// Where pictures of the pages are kept, for people to look at.
fn pictures() -> PathBuf {
    let folder = repository().join("target/console");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A command as an array of TOML.
fn toml_command(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("command = [{}]\n", words.join(", "))
}

/// Opens a tool by its name, and its page to try it.
#[track_caller]
fn open_try(browser: &mut Browser, tool: &str) {
    browser.open("#/tools");
    browser.click(&format!("td >> role=link[name=\"{tool}\"]"));
    browser.click("role=link[name=\"Try\"]");
    browser.wait("role=button[name=\"Run\"]");
}

/// All files of a folder with this ending.
fn files_with(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_with(&path, end));
        } else if path.extension().is_some_and(|it| it == end) {
            files.push(path);
        }
    }
    files.sort();
    files
}
