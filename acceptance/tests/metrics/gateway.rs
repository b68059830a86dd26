//! A gateway with an admin listener, and traffic of both eras through it.

use std::fs;
use std::net::SocketAddr;

use creole_acceptance::http::required_headers::{VERSION_KEY, fields};
use creole_acceptance::http::{ListeningServer, Request, Response};
use creole_acceptance::stage::stdio::binary;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// The key that callers send.
pub(crate) const KEY: &str = "creole_canary-key-of-the-metrics-test";

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) server: ListeningServer,
    pub(crate) admin: SocketAddr,
    folder: TempDir,
}

impl Gateway {
    /// Starts a gateway with this configuration and an admin listener.
    pub(crate) fn start(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("creole.toml");
        fs::write(&file, with_admin(configuration)).unwrap();
        let server = ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
        server.until_said("the admin API is at http://");
        let log = server.log();
        let address = log.split("the admin API is at http://").nth(1).unwrap();
        let end = address.find(|char: char| !(char.is_ascii_digit() || ".:".contains(char)));
        let admin = address[..end.unwrap_or(address.len())].parse().unwrap();
        Self { server, admin, folder }
    }

    /// Replaces the configuration, and waits until the gateway has reloaded it.
    pub(crate) fn reload(&self, configuration: &str, expected: &str) {
        fs::write(self.folder.path().join("creole.toml"), with_admin(configuration)).unwrap();
        self.server.until_said(expected);
    }

    /// The metrics as a scraper gets them that accepts these formats.
    pub(crate) fn scrape_as(&self, accept: &str) -> Response {
        let request = Request::new("GET", "/metrics").with("Accept", accept);
        request.send(self.admin).unwrap()
    }

    /// The metrics as Prometheus text.
    pub(crate) fn scrape(&self) -> String {
        let response = self.scrape_as("text/plain");
        assert_eq!(response.head.status, 200, "{}", response.text());
        response.text()
    }

    /// Sends a message of the stateless era.
    pub(crate) fn stateless(&self, method: &str, params: Value) -> Response {
        let mut params = params;
        params["_meta"] = json!({
            VERSION_KEY: "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "stateless", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}},
        });
        self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), None)
    }

    /// Opens a session of the handshake era; returns its id.
    pub(crate) fn open_session(&self, client: &str) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": client, "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = self.post(&message, None);
        let session = response.head.field("mcp-session-id").expect("a session").to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.post(&ready, Some(&session));
        session
    }

    /// Sends a message in a session.
    pub(crate) fn in_session(&self, session: &str, method: &str, params: &Value) -> Response {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&message, Some(session))
    }

    fn post(&self, message: &Value, session: Option<&str>) -> Response {
        let mut request = Request::post(message.to_string())
            .with("Authorization", &format!("Bearer {KEY}"))
            .with_all(fields(message));
        if let Some(session) = session {
            request = request.with("Mcp-Session-Id", session);
        }
        request.send(self.server.address()).unwrap()
    }

    /// Sends these bytes as a message.
    pub(crate) fn post_text(&self, body: &str, key: &str) -> Response {
        let request = Request::post(body).with("Authorization", &format!("Bearer {key}"));
        request.send(self.server.address()).unwrap()
    }

    /// Sends a message that is no JSON.
    pub(crate) fn post_garbage(&self) -> Response {
        self.post_text("{no json", KEY)
    }
}

/// The table of callers.
pub(crate) fn auth() -> String {
    let digest = Sha256::digest(KEY);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "
[auth]

[[auth.keys]]
name = \"ada\"
sha256 = \"{hex}\"
"
    )
}

fn with_admin(configuration: &str) -> String {
    let admin = "\n[admin]\nlisten = \"127.0.0.1:0\"\nconsole = false\nmetrics_open = true\n";
    format!("{configuration}{admin}")
}

/// A gateway of two upstreams, one of each era, with layers, keys and a state file.
pub(crate) fn both_eras() -> String {
    // A session of `old` ends with its call.
    let upstream = |name: &str, era: &str, affinity: &str| {
        format!(
            "\n[upstreams.{name}]\ncommand = [{}, \"serve\", \"--stdio\", \"--preset\", \
             \"everything\"]\nera = \"{era}\"\naffinity = \"{affinity}\"\n",
            json!(binary().unwrap()),
        )
    };
    format!(
        "[server]\nname = \"gate\"\npacks = [\"echo\"]\n\n[[server.chain]]\nkind = \"filter\"\ndeny = [\"*test_image*\"]\n{}\n\
         [state]\nfile = \"state.db\"\n{}{}",
        auth(),
        upstream("old", "handshake", "request"),
        upstream("new", "stateless", "principal"),
    )
}
