//! Builds the requests of each era.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::OnceLock;

use crate::dialect::{self, Era};

/// The request that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A call of this tool with a message, which it returns.
    Call(String),
    /// The list of tools, with this many entries.
    List(usize),
}

impl Asked {
    /// Parses `list:N` or the name of a tool.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word.strip_prefix("list:") {
            Some(count) => {
                let count = count
                    .parse()
                    .map_err(|_| format!("`{word}` is not `list:` with a number of tools"))?;
                Ok(Self::List(count))
            }
            None => Ok(Self::Call(word.to_owned())),
        }
    }
}

/// Builds the requests of one client.
#[derive(Clone)]
pub struct Requests {
    era: Era,
    server: SocketAddr,
    session: Option<String>,
    /// The head of the repeated request, up to the value of `Content-Length`.
    head: Vec<u8>,
    body: Vec<u8>,
}

/// The path of the endpoint, if it is not `/mcp`. One run of this program uses one server.
pub static PATH: OnceLock<String> = OnceLock::new();

/// The API key that every request carries, if the server requires one.
pub static KEY: OnceLock<String> = OnceLock::new();

fn authorization() -> String {
    KEY.get().map_or(String::new(), |key| format!("Authorization: Bearer {key}\r\n"))
}

fn path() -> &'static str {
    PATH.get().map_or("/mcp", String::as_str)
}

impl Requests {
    /// A client without a session.
    pub fn new(era: Era, server: SocketAddr) -> Self {
        Self { era, server, session: None, head: Vec::new(), body: Vec::new() }
    }

    /// The same client in this session, if there is one.
    pub fn in_session(mut self, session: Option<String>) -> Self {
        self.session = session;
        self.head.clear();
        self
    }

    /// The handshake's first request.
    pub fn initialize(&self) -> Vec<u8> {
        self.post("", trimmed(dialect::INITIALIZE))
    }

    /// The notification that ends the handshake.
    pub fn initialized(&self) -> Vec<u8> {
        self.post(VERSION_LEGACY, trimmed(dialect::INITIALIZED))
    }

    /// The request that opens a stream on which no event is expected.
    pub fn listen(&self, id: usize) -> Vec<u8> {
        if self.era == Era::Modern {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{META}}}}}"#
            );
            let headers = format!("{VERSION_MODERN}Mcp-Method: subscriptions/listen\r\n");
            return self.post(&headers, body.as_bytes());
        }
        let mut request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{}{VERSION_LEGACY}",
            path(),
            self.server,
            authorization(),
        );
        if let Some(session) = &self.session {
            request.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        }
        request.push_str("\r\n");
        request.into_bytes()
    }

    /// Appends the repeated request.
    pub fn ask(&mut self, asked: &Asked, id: u64, out: &mut Vec<u8>) {
        if self.head.is_empty() {
            self.head = self.head_of(asked);
        }
        self.body.clear();
        match asked {
            Asked::Call(tool) => self.era.write_call_of(tool, id, &mut self.body),
            Asked::List(_) => write_list(self.era, id, &mut self.body),
        }
        out.extend_from_slice(&self.head);
        // Writing to memory cannot fail.
        let _ = write!(out, "{}\r\n\r\n", self.body.len());
        out.extend_from_slice(&self.body);
    }

    fn head_of(&self, asked: &Asked) -> Vec<u8> {
        let headers = match (self.era, asked) {
            (Era::Legacy, _) => VERSION_LEGACY.to_owned(),
            (Era::Modern, Asked::List(_)) => {
                format!("{VERSION_MODERN}Mcp-Method: tools/list\r\n")
            }
            (Era::Modern, Asked::Call(tool)) => {
                format!("{VERSION_MODERN}Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n")
            }
        };
        self.head(&headers)
    }

    fn post(&self, headers: &str, body: &[u8]) -> Vec<u8> {
        let mut request = self.head(headers);
        // Writing to memory cannot fail.
        let _ = write!(request, "{}\r\n\r\n", body.len());
        request.extend_from_slice(body);
        request
    }

    fn head(&self, headers: &str) -> Vec<u8> {
        let session = self.session.as_ref();
        let session = session.map_or(String::new(), |id| format!("Mcp-Session-Id: {id}\r\n"));
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\n{}{headers}{session}Content-Length: ",
            path(),
            self.server,
            authorization(),
        )
        .into_bytes()
    }
}

fn write_list(era: Era, id: u64, out: &mut Vec<u8>) {
    let params = match era {
        Era::Legacy => "{}".to_owned(),
        Era::Modern => format!("{{{META}}}"),
    };
    // Writing to memory cannot fail.
    let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{params}}}"#);
}

/// A line without its line ending.
fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

const VERSION_LEGACY: &str = "MCP-Protocol-Version: 2025-11-25\r\n";
const VERSION_MODERN: &str = "MCP-Protocol-Version: 2026-07-28\r\n";

const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench-driver","version":"0.1.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}}"#,
);

#[cfg(test)]
mod tests {
    use super::{Asked, Requests};
    use crate::dialect::Era;

    #[test]
    fn the_length_of_a_body_is_told() {
        for era in [Era::Legacy, Era::Modern] {
            for asked in [Asked::Call("echo".to_owned()), Asked::List(3)] {
                let mut out = Vec::new();
                let address = "127.0.0.1:1".parse().unwrap();
                let requests = Requests::new(era, address).in_session(Some("s".to_owned()));
                requests.clone().ask(&asked, 7, &mut out);
                let text = String::from_utf8(out).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.contains("Mcp-Session-Id: s\r\n"));
                assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
                assert_eq!(head.contains("Mcp-Method: tools/"), era == Era::Modern);
                let body: serde_json::Value = serde_json::from_str(body).unwrap();
                assert_eq!(body["id"], 7);
            }
        }
    }

    #[test]
    fn a_list_is_told_from_a_tool() {
        assert_eq!(Asked::parse("list:10"), Ok(Asked::List(10)));
        assert_eq!(Asked::parse("echo"), Ok(Asked::Call("echo".to_owned())));
        assert!(Asked::parse("list:many").is_err());
    }
}
