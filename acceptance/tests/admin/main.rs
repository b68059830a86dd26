//! Tests of the admin listener with the real binary: its roles, its answers, its headers, and its commands.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod answers;
mod commands;
mod exposure;
mod observation;
mod roles;
mod state;

use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use creole_acceptance::http::{ListeningServer, Request, Response};
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::process_under_test::serve;
use creole_acceptance::stage::stdio::binary;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// What the message of a server has before the address of an admin listener with a port.
pub(crate) const HTTP_PLACE: &str = " at http://";

/// A server with a pack, an upstream, a pinned tool and an audit log. The secrets must never be shown.
const CONFIG: &str = r#"
[server]
name = "team"
packs = ["echo"]
chain = [{ kind = "rate-limit", overall_calls = 10000, seconds = 60 }, { kind = "audit", file = "audit.log" }]

[upstreams.files]
command = ["CREOLE", "serve", "--log", "off"]
env = { API_TOKEN = "canary-environment-token" }
chain = [{ kind = "pin", file = "pins.json" }, { kind = "circuit-breaker" }]
"#;

/// The keys of the test, by their roles.
pub(crate) const ROLES: [&str; 3] = ["admin:read", "admin:operate", "admin:approve"];

/// A running server with an admin listener.
pub(crate) struct Admin {
    pub(crate) server: ListeningServer,
    pub(crate) folder: TempDir,
    address: SocketAddr,
}

impl Admin {
    /// Starts a server whose admin listener has a key for each role, and one without a role.
    pub(crate) fn with_keys() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut keys: String =
            ROLES.iter().map(|role| key_line(&role.replace(':', "-"), role)).collect();
        keys.push_str(&key_line("client", "mcp"));
        write_keys(&folder, &keys);
        Self::start(folder, "keys_file = \"keys.txt\"\ncapture = \"ask\"\n")
    }

    /// Starts a server without users, which a link signs in to.
    pub(crate) fn with_link(more: &str) -> Self {
        Self::start(tempfile::tempdir().unwrap(), more)
    }

    /// Starts a server with these packs, which a link signs in to.
    pub(crate) fn with_packs(packs: &[&str]) -> Self {
        let config = CONFIG.replace("[\"echo\"]", &format!("{packs:?}"));
        Self::start_with(tempfile::tempdir().unwrap(), &config, "")
    }

    /// Starts a server whose clients need a key with the role `caller`, and which a link signs in to.
    pub(crate) fn with_auth() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_keys(&folder, &key_line("client", "mcp"));
        let config = format!("{CONFIG}\n[auth]\nkeys_file = \"keys.txt\"\nrole = \"caller\"\n");
        Self::start_with(folder, &config, "")
    }

    fn start(folder: TempDir, more: &str) -> Self {
        Self::start_with(folder, CONFIG, more)
    }

    fn start_with(folder: TempDir, config: &str, more: &str) -> Self {
        Self::start_at(folder, config, more, HTTP_PLACE)
    }

    /// Starts a server whose message has this text before the address of the admin listener.
    pub(crate) fn start_at(folder: TempDir, config: &str, more: &str, place: &str) -> Self {
        Self::start_changed(folder, config, more, place, |_| {})
    }

    /// The same with a change of its command, such as a variable of its environment.
    pub(crate) fn start_changed(
        folder: TempDir,
        config: &str,
        more: &str,
        place: &str,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let config = config.replace("CREOLE", binary().unwrap().to_str().unwrap());
        let admin = format!("[admin]\nlisten = \"127.0.0.1:0\"\n{more}");
        fs::write(folder.path().join("creole.toml"), format!("{config}{admin}")).unwrap();
        let file = folder.path().join("creole.toml").display().to_string();
        let mut command = serve(folder.path(), &["--http", "127.0.0.1:0", &file]);
        command.env("XDG_RUNTIME_DIR", folder.path());
        change(&mut command);
        let server = ListeningServer::other(command).unwrap();
        server.until_said(place);
        let log = server.log();
        let start = log.find(place).unwrap() + place.len();
        let address = log[start..].split([';', '\n']).next().unwrap().trim().parse().unwrap();
        Self { server, folder, address }
    }

    /// The address of the admin listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The command `creole` of the same user.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary().unwrap());
        command
            .args(words)
            .env("CREOLE_DATA_DIR", self.folder.path())
            .env_remove("CREOLE_ADMIN_KEY");
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env("NO_COLOR", "1");
        command
    }

    /// Runs the command.
    pub(crate) fn creole(&self, words: &[&str]) -> FinishedCommand {
        FinishedCommand::run(&mut self.command(words), "")
    }

    /// A bearer from the one-time link.
    pub(crate) fn sign_in(&self) -> String {
        let link = self.creole(&["console"]).stdout;
        let token = link.trim().split_once("/#t=").expect("a link").1.to_owned();
        let answer = self.login(&json!({ "token": token }));
        assert_eq!(answer.head.status, 200, "{}", answer.text());
        body(&answer)["bearer"].as_str().unwrap().to_owned()
    }

    pub(crate) fn login(&self, credential: &Value) -> Response {
        self.send(&request("POST", "/api/v1/login", Some(credential)))
    }

    pub(crate) fn send(&self, request: &Request) -> Response {
        request.send(self.address()).unwrap()
    }

    /// The answer to a request with this credential.
    pub(crate) fn call(
        &self,
        bearer: &str,
        method: &str,
        path: &str,
        json: Option<&Value>,
    ) -> Response {
        let request = request(method, &format!("/api/v1{path}"), json);
        self.send(&request.with("Authorization", &format!("Bearer {bearer}")))
    }

    /// The document of a route that reads.
    #[track_caller]
    pub(crate) fn get(&self, bearer: &str, path: &str) -> Value {
        let answer = self.call(bearer, "GET", path, None);
        assert_eq!(answer.head.status, 200, "{path}: {}", answer.text());
        body(&answer)
    }
}

/// The line of a key in a file of keys.
fn key_line(name: &str, roles: &str) -> String {
    let digest = Sha256::digest(key(name));
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}:$sha256${hex}:{roles}\n")
}

/// Writes the file of keys, which only its owner may read.
fn write_keys(folder: &TempDir, keys: &str) {
    let file = folder.path().join("keys.txt");
    fs::write(&file, keys).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&file, mode).unwrap();
}

/// The key of this name.
pub(crate) fn key(name: &str) -> String {
    format!("{name}-key-of-the-test-which-is-long-enough")
}

/// A request without the headers of MCP.
pub(crate) fn request(method: &str, target: &str, json: Option<&Value>) -> Request {
    match json {
        None => Request::new(method, target),
        Some(json) => Request::to(method, target, json.to_string())
            .replacing("Content-Type", "application/json"),
    }
}

/// The body of an answer as JSON.
#[track_caller]
pub(crate) fn body(answer: &Response) -> Value {
    serde_json::from_str(&answer.text()).unwrap_or_else(|_| panic!("JSON: {}", answer.text()))
}
