//! A connection to a replica that is kept, and the responses on it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection that is kept.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
}

/// A response with a length.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) session: Option<String>,
    pub(super) body: String,
}

impl Connection {
    /// Connects to a replica.
    pub(super) fn open(address: SocketAddr) -> Result<Self, String> {
        let explain = |error| format!("cannot connect to {address}: {error}");
        let stream = TcpStream::connect(address).map_err(explain)?;
        stream.set_nodelay(true).map_err(explain)?;
        Ok(Self { stream: BufReader::new(stream), address })
    }

    /// Sends a message and returns its response. `fields` are header fields, each with its line end.
    pub(super) fn post(&mut self, fields: &str, body: &str) -> Result<Response, String> {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let explain = |error| format!("a connection failed: {error}");
        self.stream.get_mut().write_all(request.as_bytes()).map_err(explain)?;
        let mut response = Response { status: 0, session: None, body: String::new() };
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).map_err(explain)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value)) {
                Some((name, value)) if name == "content-length" => {
                    length = value.parse().map_err(|_| format!("a wrong length: {value}"))?;
                }
                Some((name, value)) if name == "mcp-session-id" => {
                    response.session = Some(value.to_owned());
                }
                Some(_) => {}
                None => {
                    let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
                    response.status = status.ok_or(format!("not a response: {line}"))?;
                }
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).map_err(explain)?;
        response.body = String::from_utf8(body).map_err(|_| "a body is not text".to_owned())?;
        Ok(response)
    }
}
