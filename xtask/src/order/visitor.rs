//! The client of the scenes on HTTP: each request on a connection of its own, as short-lived clients make them.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::scenes::{CALL, HANDSHAKE, LIST};

/// A client of the server at an address.
pub(super) struct Visitor {
    pub(super) address: String,
}

impl Visitor {
    /// Lists and calls without a session.
    pub(super) fn stand_alone(&self) -> io::Result<()> {
        for (headers, body) in [
            ("Mcp-Method: tools/list\r\n", LIST),
            ("Mcp-Method: tools/call\r\nMcp-Name: echo\r\n", CALL),
        ] {
            let headers = format!("MCP-Protocol-Version: 2026-07-28\r\n{headers}");
            self.ask("POST", &headers, body, 200)?;
        }
        Ok(())
    }

    /// Opens a session, listens in it, says what the handshake scene says, and ends it.
    pub(super) fn in_session(&self) -> io::Result<()> {
        let mut messages = HANDSHAKE.lines();
        let opened = self.ask("POST", "", messages.next().unwrap_or_default(), 200)?;
        let id = opened
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "))
            .ok_or_else(|| io::Error::other("no session was opened"))?;
        let headers = format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {id}\r\n");
        let mut listening = self.send("GET", &headers, "")?;
        listening.read_exact(&mut [0; 12])?;
        for message in messages {
            let status = if message.contains("\"id\"") { 200 } else { 202 };
            self.ask("POST", &headers, message, status)?;
        }
        self.ask("DELETE", &headers, "", 204)?;
        // The end of the session is the end of its stream.
        listening.read_to_end(&mut Vec::new()).map(drop)
    }

    /// One request and its whole answer.
    fn ask(&self, method: &str, headers: &str, body: &str, status: u16) -> io::Result<String> {
        let headers = format!("{headers}Connection: close\r\n");
        let mut answer = String::new();
        self.send(method, &headers, body)?.read_to_string(&mut answer)?;
        if answer.starts_with(&format!("HTTP/1.1 {status} ")) {
            return Ok(answer);
        }
        let first = answer.lines().next().unwrap_or_default();
        Err(io::Error::other(format!("{status} was expected of {method}, and it is {first}")))
    }

    fn send(&self, method: &str, headers: &str, body: &str) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        Ok(stream)
    }
}
