//! An authorization server of another author, `oidc-provider`, and the MCP servers that it protects.
//!
//! `acceptance/peers/README.md` describes them. Its pages log `alice` in and consent by themselves.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use super::if_installed;
use super::install::{Missing, node, npm_packages};
use crate::canaries::{SourceGuard, watch_source};
use crate::http::Request;
use crate::process_under_test::ChildGuard;

/// A running authorization server with its protected servers. It ends when dropped.
pub struct IdentityProvider {
    _process: ChildGuard,
    description: Value,
    _secrets: SourceGuard,
}

/// A running authorization server with these options. `None` if it cannot be installed, as for [`if_installed`].
#[track_caller]
#[must_use]
pub fn provider(options: &[&str]) -> Option<IdentityProvider> {
    if_installed("oidc-provider", IdentityProvider::start(options))
}

/// The command that starts the servers. Installs them if needed.
pub fn command() -> Result<Vec<OsString>, Missing> {
    let names = ["main", "provider", "server", "dpop", "assertions", "client_document"];
    let scripts = names.map(|name| format!("idp/{name}.mjs"));
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let folder = npm_packages("idp", "idp", &scripts)?;
    Ok(vec![node()?.into(), folder.join("main.mjs").into()])
}

impl IdentityProvider {
    /// Starts the servers with these options, and waits until they listen.
    pub fn start(options: &[&str]) -> Result<Self, Missing> {
        Self::start_with(options, &[])
    }

    /// The same with these variables.
    pub fn start_with(options: &[&str], variables: &[(&str, &OsStr)]) -> Result<Self, Missing> {
        let words = command()?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(options).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = ChildGuard::start(&mut command);
        let mut line = String::new();
        if let Some(output) = process.child().stdout.take() {
            let mut output = BufReader::new(output);
            // An empty line is reported below.
            let _ = output.read_line(&mut line);
            // The provider fails if its further output is not read.
            thread::spawn(move || io::copy(&mut output, &mut io::sink()));
        }
        let description: Value = serde_json::from_str(&line)
            .map_err(|error| Missing(format!("oidc-provider did not start: {error}: {line}")))?;
        let origin = description["origin"].as_str().unwrap_or_default().to_owned();
        let secrets = watch_source(move || secrets(&origin));
        Ok(Self { _process: process, description, _secrets: secrets })
    }

    /// A member of what the servers say about themselves, such as `/origin` or `/service/secret`.
    #[must_use]
    pub fn told(&self, pointer: &str) -> String {
        let value = self.description.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_else(|| panic!("no {pointer}: {}", self.description)).to_owned()
    }

    /// The issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        self.told("/issuer")
    }

    /// The address of a protected server: `/mcp`, `/opaque`, `/dpop`, `/never` or, without protection, `/open`.
    #[must_use]
    pub fn server(&self, path: &str) -> String {
        format!("{}{path}", self.told("/origin"))
    }

    /// Sends a form to an endpoint of the authorization server, as any other program could.
    #[must_use]
    pub fn post(&self, path: &str, form: &str) -> crate::http::Response {
        let request = Request::to("POST", path, form);
        let request = request.with("Content-Type", "application/x-www-form-urlencoded");
        request.send(address(&self.issuer())).expect("a response")
    }

    /// Makes the protected servers refuse an access token, although the authorization server has not revoked it.
    pub fn refuse(&self, access_token: &str) {
        let request = Request::to("POST", "/test/refuse", access_token);
        let response =
            request.with("Content-Type", "text/plain").send(address(&self.told("/origin")));
        assert_eq!(response.expect("a response").head.status, 200);
    }

    /// The requests that the authorization server has answered so far, without their secrets.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.counter("/test/requests").as_array().cloned().unwrap_or_default()
    }

    /// How many token requests with this grant it has answered with this status.
    #[must_use]
    pub fn token_requests(&self, grant: &str, status: u16) -> usize {
        let is_counted =
            |request: &&Value| request["grant"] == grant && request["status"] == status;
        self.requests().iter().filter(is_counted).count()
    }

    /// How many requests to this path it has answered.
    #[must_use]
    pub fn visits(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request["path"] == path).count()
    }

    /// How often the tool `write` has run.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.counter("/test/writes").as_u64().expect("a number")
    }

    fn counter(&self, path: &str) -> Value {
        let response = Request::new("GET", path).send(address(&self.told("/origin")));
        response.expect("a response").message()
    }
}

/// The codes and tokens that the authorization server has issued so far.
fn secrets(origin: &str) -> Vec<String> {
    let response = Request::new("GET", "/test/secrets").send(address(origin));
    // It may have ended already.
    let listed = response.map(|response| response.message()).unwrap_or_default();
    let listed = listed.as_array().into_iter().flatten();
    listed.filter_map(|secret| secret.as_str().map(str::to_owned)).collect()
}

/// The socket of an origin of this machine.
fn address(origin: &str) -> SocketAddr {
    let socket = origin.trim_start_matches("http://").parse();
    socket.unwrap_or_else(|error| panic!("{origin} is not an origin: {error}"))
}
