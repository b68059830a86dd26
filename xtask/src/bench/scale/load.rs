//! The load: connections to all replicas, which are used in turns.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// The number of clients. Each has a connection to every replica.
const CLIENTS: usize = 8;

/// The kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Of 2026-07-28, without a session.
    Stateless,
    /// Of 2025-11-25, in one session per client.
    Session,
}

impl CallKind {
    pub(super) const ALL: [Self; 2] = [Self::Stateless, Self::Session];

    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stateless => "stateless",
            Self::Session => "session",
        }
    }

    /// The header fields and the body of a call. `session` is that of the client, if it has one.
    fn call(self, session: Option<&str>) -> (String, String) {
        let params = "\"name\":\"echo\",\"arguments\":{\"message\":\"sixteen letters.\"}";
        match self {
            Self::Stateless => {
                let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                            \"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench\",\"version\":\"1\"},\
                            \"io.modelcontextprotocol/clientCapabilities\":{}}";
                let fields = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n";
                (fields.to_owned(), request("tools/call", &format!("{params},{meta}")))
            }
            Self::Session => {
                (session_fields(session.unwrap_or_default()), request("tools/call", params))
            }
        }
    }
}

fn session_fields(session: &str) -> String {
    format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
}

fn request(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params}}}}}")
}

/// Clients with open connections.
pub(super) struct Load {
    clients: Vec<Client>,
}

struct Client {
    connections: Vec<Connection>,
    /// The whole request, for each replica: it names the host.
    calls: Vec<Vec<u8>>,
}

impl Load {
    /// Connects all clients, and opens their sessions.
    pub(super) fn open(kind: CallKind, addresses: &[SocketAddr]) -> Result<Self, String> {
        let clients = (0..CLIENTS).map(|number| Client::open(kind, addresses, number));
        Ok(Self { clients: clients.collect::<Result<_, _>>()? })
    }

    /// The number of connections.
    pub(super) fn connections(&self) -> usize {
        self.clients.iter().map(|client| client.connections.len()).sum()
    }

    /// Makes this many calls, each client its share. Returns how long that took.
    pub(super) fn run(&mut self, calls: usize) -> Result<Duration, String> {
        let started = Instant::now();
        let share = calls / CLIENTS;
        thread::scope(|scope| {
            let running: Vec<_> =
                self.clients.iter_mut().map(|client| scope.spawn(|| client.run(share))).collect();
            running.into_iter().try_for_each(|client| {
                client.join().unwrap_or_else(|_| Err("a client panicked".to_owned()))
            })
        })?;
        Ok(started.elapsed())
    }
}

impl Client {
    fn open(kind: CallKind, addresses: &[SocketAddr], number: usize) -> Result<Self, String> {
        let connections = addresses.iter().map(|address| Connection::open(*address));
        let mut connections: Vec<Connection> = connections.collect::<Result<_, _>>()?;
        let session = match kind {
            CallKind::Stateless => None,
            CallKind::Session => {
                let home = number % addresses.len();
                Some(open_session(&mut connections[home], addresses[home])?)
            }
        };
        let (fields, body) = kind.call(session.as_deref());
        let calls = addresses.iter().map(|address| post(*address, &fields, &body)).collect();
        Ok(Self { connections, calls })
    }

    fn run(&mut self, calls: usize) -> Result<(), String> {
        for number in 0..calls {
            let at = number % self.connections.len();
            let response = self.connections[at].exchange(&self.calls[at])?;
            if response.status != 200 || !response.body.contains("sixteen letters.") {
                return Err(format!("a call got {}: {}", response.status, response.body));
            }
        }
        Ok(())
    }
}

/// Opens a session and returns its id.
fn open_session(connection: &mut Connection, address: SocketAddr) -> Result<String, String> {
    let params = "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\
                  \"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}";
    let opened = connection.exchange(&post(address, "", &request("initialize", params)))?;
    let session = opened.session.ok_or(format!("no session was opened: {}", opened.body))?;
    let body = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    connection.exchange(&post(address, &session_fields(&session), body))?;
    Ok(session)
}

fn post(address: SocketAddr, fields: &str, body: &str) -> Vec<u8> {
    let text = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    text.into_bytes()
}

/// A connection that is kept.
struct Connection {
    stream: BufReader<TcpStream>,
}

/// A response with a length.
struct Response {
    status: u16,
    session: Option<String>,
    body: String,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Self, String> {
        let explain = |error| format!("cannot connect to {address}: {error}");
        let stream = TcpStream::connect(address).map_err(explain)?;
        stream.set_nodelay(true).map_err(explain)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    fn exchange(&mut self, request: &[u8]) -> Result<Response, String> {
        let explain = |error| format!("a connection failed: {error}");
        self.stream.get_mut().write_all(request).map_err(explain)?;
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
