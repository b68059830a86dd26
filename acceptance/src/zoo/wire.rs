//! The client's transport to a server: the lines of a process, or HTTP.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Connection, Events, Request, required_headers};
use crate::stage::Stage;
use crate::stage::stdio::StdioChild;

/// The client's end of a connection.
pub enum ClientTransport {
    /// The standard streams of a process.
    Lines(StdioChild),
    /// Streamable HTTP.
    Http(Http),
}

/// Streamable HTTP. Each request has its own connection and thread. The messages of all of them arrive in one queue.
pub struct Http {
    address: SocketAddr,
    session: Arc<Mutex<Option<String>>>,
    heard: Sender<Value>,
    messages: Receiver<Value>,
}

impl ClientTransport {
    /// Sends a message.
    pub(super) fn send(&mut self, message: &Value) -> Result<(), String> {
        match self {
            Self::Lines(process) => {
                process.send(format!("{message}\n").as_bytes());
                Ok(())
            }
            Self::Http(http) => http.send(message),
        }
    }

    /// The next message, if one arrives in time.
    pub(super) fn receive(&mut self, wait: Duration) -> Option<Value> {
        match self {
            Self::Lines(process) => {
                let line = process.receive(wait)?;
                Some(serde_json::from_str(&line).unwrap_or_else(|_| json!({"noMessage": line})))
            }
            Self::Http(http) => http.messages.recv_timeout(wait).ok(),
        }
    }

    /// Details for a failure report.
    pub(super) fn notes(&mut self) -> String {
        match self {
            Self::Lines(process) => process.notes(),
            Self::Http(_) => String::new(),
        }
    }
}

impl Http {
    /// A transport without a session.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        let (sender, messages) = channel();
        Self { address, session: Arc::default(), heard: sender, messages }
    }

    fn send(&self, message: &Value) -> Result<(), String> {
        let request = self.addressed(message);
        if message.get("method").is_none() || message.get("id").is_none() {
            let response = request.send(self.address)?;
            if response.head.status != 202 {
                return Err(format!("{message}: {} {}", response.head.status, response.text()));
            }
            if message["method"] == "notifications/initialized" {
                self.listen();
            }
            return Ok(());
        }
        self.begin(request, message["id"].clone());
        Ok(())
    }

    /// A message with the header fields that it requires.
    fn addressed(&self, message: &Value) -> Request {
        let request =
            Request::post(message.to_string()).with_all(required_headers::fields(message));
        match self.session() {
            Some(session) => {
                let request = request.with("Mcp-Session-Id", &session);
                request.with("MCP-Protocol-Version", super::client::HANDSHAKE)
            }
            None => request,
        }
    }

    /// Opens the stream for messages that belong to no request.
    fn listen(&self) {
        let Some(session) = self.session() else { return };
        let request = Request::get(&session);
        self.begin(request.with("MCP-Protocol-Version", super::client::HANDSHAKE), Value::Null);
    }

    /// Sends a request in a thread, and receives the messages of its response.
    fn begin(&self, request: Request, id: Value) {
        let (address, sender) = (self.address, self.heard.clone());
        let session = Arc::clone(&self.session);
        thread::spawn(move || {
            if let Err(problem) = exchange(address, &request, &session, &sender) {
                // A request without a response ends with the error. The receiver may be gone.
                let error = json!({"transport": problem});
                let _ = sender.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        });
    }

    fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sends a request and forwards each message of its response.
fn exchange(
    address: SocketAddr,
    request: &Request,
    session: &Mutex<Option<String>>,
    sender: &Sender<Value>,
) -> Result<(), String> {
    let mut connection = Connection::open(address)?;
    connection.write(&request.bytes(address))?;
    let head = connection.head()?;
    if let Some(named) = head.field("mcp-session-id") {
        *session.lock().unwrap_or_else(PoisonError::into_inner) = Some(named.to_owned());
    }
    let parse = |text: &[u8]| {
        let shown = || json!({"noMessage": String::from_utf8_lossy(text)});
        serde_json::from_slice(text).unwrap_or_else(|_| shown())
    };
    if !head.is_events() {
        let mut body = Vec::new();
        let read = std::io::Read::read_to_end(&mut connection.body(&head), &mut body);
        read.map_err(|error| error.to_string())?;
        // The receiver may be gone.
        let _ = sender.send(parse(&body));
        return Ok(());
    }
    for event in Events::new(connection.body(&head)).filter(|event| !event.data.is_empty()) {
        if sender.send(parse(event.data.as_bytes())).is_err() {
            break;
        }
    }
    Ok(())
}
