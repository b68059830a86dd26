//! Builds the requests of a client of each era.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::{Value, json};

/// The two eras of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// The handshake era.
    Legacy,
    /// The stateless era.
    Modern,
}

impl Era {
    /// Both eras.
    pub const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    /// The revision that a client of this era uses here.
    #[must_use]
    pub fn revision(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// Builds the requests of one client.
#[derive(Clone, Debug)]
pub struct Requests {
    server: SocketAddr,
    era: Era,
    session: Option<String>,
}

impl Requests {
    /// Requests to this server.
    #[must_use]
    pub fn new(server: SocketAddr, era: Era) -> Self {
        Self { server, era, session: None }
    }

    /// The same in a session.
    #[must_use]
    pub fn in_session(self, session: String) -> Self {
        Self { session: Some(session), ..self }
    }

    /// The era.
    #[must_use]
    pub fn era(&self) -> Era {
        self.era
    }

    /// The request that opens a session.
    #[must_use]
    pub fn initialize(&self) -> Vec<u8> {
        let params = json!({
            "protocolVersion": Era::Legacy.revision(),
            "capabilities": {},
            "clientInfo": {"name": "load", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        self.write("POST", "", Some(&body))
    }

    /// The end of the handshake.
    #[must_use]
    pub fn initialized(&self) -> Vec<u8> {
        let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.write("POST", &self.versioned(), Some(&body))
    }

    /// A request, with the headers that this era requires.
    #[must_use]
    pub fn request(&self, id: &Value, method: &str, mut params: Value) -> Vec<u8> {
        let mut headers = self.versioned();
        if self.era == Era::Modern {
            // Writing to a string cannot fail.
            let _ = write!(headers, "Mcp-Method: {method}\r\n");
            if let Some(name) = params["name"].as_str() {
                let _ = write!(headers, "Mcp-Name: {name}\r\n");
            }
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.era.revision(),
                "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write("POST", &headers, Some(&body))
    }

    /// A `tools/call`.
    #[must_use]
    pub fn call(&self, id: &Value, tool: &str, arguments: &Value) -> Vec<u8> {
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The request that opens a stream of change notifications: `GET`, or `subscriptions/listen` with this id.
    #[must_use]
    pub fn listen(&self, id: &Value) -> Vec<u8> {
        match self.era {
            Era::Legacy => self.write("GET", &self.versioned(), None),
            Era::Modern => {
                let filter = json!({"notifications": {"toolsListChanged": true}});
                self.request(id, "subscriptions/listen", filter)
            }
        }
    }

    /// The request that ends a session.
    #[must_use]
    pub fn delete(&self) -> Vec<u8> {
        self.write("DELETE", &self.versioned(), None)
    }

    fn versioned(&self) -> String {
        format!("MCP-Protocol-Version: {}\r\n", self.era.revision())
    }

    fn write(&self, method: &str, headers: &str, body: Option<&Value>) -> Vec<u8> {
        let accept = if method == "GET" {
            "text/event-stream"
        } else {
            "application/json, text/event-stream"
        };
        let mut text = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n{headers}",
            self.server
        );
        if let Some(session) = &self.session {
            let _ = write!(text, "Mcp-Session-Id: {session}\r\n");
        }
        if let Some(body) = body {
            let body = body.to_string();
            let length = body.len();
            let _ = write!(
                text,
                "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        } else {
            text.push_str("\r\n");
        }
        text.into_bytes()
    }
}
