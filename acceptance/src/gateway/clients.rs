//! Clients of both eras that return every message of a call unchanged.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::canaries;
use crate::http::client::ConnectionCloser;
use crate::http::{Connection, Events, Request, Response, required_headers};

/// How long a test waits: only a server that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client of the stateless era. Each request has its own connection.
#[derive(Clone, Debug)]
pub struct StatelessClient {
    address: SocketAddr,
    capabilities: Value,
    key: Option<String>,
    meta: Value,
}

/// A client of the handshake era, with its session.
#[derive(Clone, Debug)]
pub struct HandshakeClient {
    address: SocketAddr,
    session: String,
    version: String,
    key: Option<String>,
    /// The result of `initialize`.
    pub welcome: Value,
}

/// A request whose response is pending.
pub struct PendingResponse {
    messages: Receiver<Value>,
    ender: ConnectionCloser,
}

/// The member that holds another client name.
const CLIENT: &str = "client";

impl StatelessClient {
    /// A client without capabilities.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self { address, capabilities: json!({}), key: None, meta: json!({}) }
    }

    /// The same with these capabilities.
    #[must_use]
    pub fn that_can(&self, capabilities: Value) -> Self {
        Self { capabilities, ..self.clone() }
    }

    /// The same with this API key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    /// The same with further members of `_meta`, such as `progressToken`.
    #[must_use]
    pub fn with_meta(&self, meta: Value) -> Self {
        Self { meta, ..self.clone() }
    }

    /// The same under another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        self.with_meta(json!({CLIENT: name}))
    }

    /// Begins a request with this id.
    #[track_caller]
    #[must_use]
    pub fn begin(&self, id: &Value, method: &str, params: Value) -> PendingResponse {
        PendingResponse::begin(self.address, &self.written(id, method, params))
    }

    /// A request with this id, to be sent by the test.
    #[must_use]
    pub fn written(&self, id: &Value, method: &str, mut params: Value) -> Request {
        let mut meta = self.meta.clone();
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        let name = meta.as_object_mut().and_then(|meta| meta.remove(CLIENT));
        let name = name.unwrap_or_else(|| json!("modern"));
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": name, "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        params["_meta"] = meta;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let request = Request::post(body.to_string()).with_all(required_headers::fields(&body));
        authorized(request, self.key.as_deref())
    }

    /// Sends a request and returns its response.
    #[track_caller]
    #[must_use]
    pub fn request(&self, method: &str, params: Value) -> Value {
        self.begin(&json!(1), method, params).answer()
    }

    /// Calls a tool and returns the response.
    #[track_caller]
    #[must_use]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Begins a tool call.
    #[track_caller]
    #[must_use]
    pub fn begin_call(&self, tool: &str, arguments: Value) -> PendingResponse {
        self.begin(&json!(1), "tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Begins the next round of a tool call, with input responses to the input requests in this result.
    #[track_caller]
    #[must_use]
    pub fn begin_again(
        &self,
        tool: &str,
        arguments: Value,
        state: &Value,
        responses: Value,
    ) -> PendingResponse {
        let params = json!({
            "name": tool, "arguments": arguments, "inputResponses": responses, "requestState": state,
        });
        self.begin(&json!(2), "tools/call", params)
    }

    /// Makes the next round of a tool call and returns the response.
    #[track_caller]
    #[must_use]
    pub fn again(&self, tool: &str, arguments: Value, state: &Value, responses: Value) -> Value {
        self.begin_again(tool, arguments, state, responses).answer()
    }
}

impl HandshakeClient {
    /// Performs the handshake.
    #[track_caller]
    #[must_use]
    pub fn open(
        address: SocketAddr,
        version: &str,
        capabilities: Value,
        key: Option<&str>,
    ) -> Self {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "legacy", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let request = authorized(Request::post(body.to_string()), key);
        let response = request.send(address).expect("an answer to the handshake");
        let session = response.head.field("mcp-session-id").unwrap_or_default().to_owned();
        assert!(!session.is_empty(), "{} {}", response.head.status, response.text());
        let client = Self {
            address,
            session,
            version: version.to_owned(),
            key: key.map(str::to_owned),
            welcome: response.message()["result"].clone(),
        };
        client.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    /// The same session at another address.
    #[must_use]
    pub fn at(&self, address: SocketAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// Begins a request with this id.
    #[track_caller]
    #[must_use]
    pub fn begin(&self, id: &Value, method: &str, params: &Value) -> PendingResponse {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        PendingResponse::begin(self.address, &self.written(&body))
    }

    /// The id of its session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Opens the stream for messages that belong to no request.
    #[track_caller]
    #[must_use]
    pub fn listen(&self) -> PendingResponse {
        PendingResponse::begin(self.address, &self.written_stream(None))
    }

    /// The request for that stream, or for the rest of a stream after its event with this id, to be sent by the test.
    #[must_use]
    pub fn written_stream(&self, last_event: Option<&str>) -> Request {
        let request = Request::get(&self.session).with("MCP-Protocol-Version", &self.version);
        let request = match last_event {
            Some(id) => request.with("Last-Event-ID", id),
            None => request,
        };
        authorized(request, self.key.as_deref())
    }

    /// Sends a request and returns its response.
    #[track_caller]
    #[must_use]
    pub fn request(&self, method: &str, params: &Value) -> Value {
        self.begin(&json!(1), method, params).answer()
    }

    /// Calls a tool and returns the response.
    #[track_caller]
    #[must_use]
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a notification, or an input response.
    #[track_caller]
    pub fn tell(&self, message: &Value) {
        let response = self.written(message).send(self.address).expect("a response");
        assert_eq!(response.head.status, 202, "{message}: {}", response.text());
    }

    /// Sends any message and returns the whole HTTP response.
    #[track_caller]
    #[must_use]
    pub fn exchange(&self, message: &Value) -> Response {
        self.written(message).send(self.address).expect("a response")
    }

    /// A call of a tool, to be sent by the test.
    #[must_use]
    pub fn written_call(&self, id: &Value, tool: &str, arguments: Value) -> Request {
        let params = json!({"name": tool, "arguments": arguments});
        self.written(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    /// Ends the session.
    #[track_caller]
    pub fn end(&self) {
        let request = authorized(Request::delete(&self.session), self.key.as_deref());
        let response = request.send(self.address).expect("a response");
        assert!(response.head.status < 300, "{}", response.text());
    }

    /// Any message, to be sent by the test.
    #[must_use]
    pub fn written(&self, message: &Value) -> Request {
        let request = Request::post(message.to_string())
            .with("Mcp-Session-Id", &self.session)
            .with("MCP-Protocol-Version", &self.version);
        authorized(request, self.key.as_deref())
    }
}

fn authorized(request: Request, key: Option<&str>) -> Request {
    match key {
        Some(key) => request.with("Authorization", &format!("Bearer {key}")),
        None => request,
    }
}

impl PendingResponse {
    #[track_caller]
    fn begin(address: SocketAddr, request: &Request) -> Self {
        let mut connection = Connection::open(address).expect("a connection");
        connection.write(&request.bytes(address)).expect("a request");
        let closer = connection.ender().expect("a second handle");
        let (sender, messages) = channel();
        thread::spawn(move || {
            let Ok(head) = connection.head() else { return };
            let parse = |text: &[u8]| serde_json::from_slice(text).unwrap_or(Value::Null);
            if !head.is_events() {
                let mut body = Vec::new();
                let read = std::io::Read::read_to_end(&mut connection.body(&head), &mut body);
                // The receiver may be gone.
                _ = read.map(|_| sender.send(parse(&body)));
                return;
            }
            for event in Events::new(connection.body(&head)).filter(|event| !event.data.is_empty())
            {
                if sender.send(parse(event.data.as_bytes())).is_err() {
                    return;
                }
            }
        });
        Self { messages, ender: closer }
    }

    /// The next message.
    #[track_caller]
    pub fn message(&mut self) -> Value {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => {
                canaries::assert_unrevealed("a message", &message.to_string());
                message
            }
            Err(RecvTimeoutError::Timeout) => panic!("no message arrived within {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("the stream ended without a response"),
        }
    }

    /// The next message, if one arrives in time.
    pub fn within(&mut self, wait: Duration) -> Option<Value> {
        self.messages.recv_timeout(wait).ok()
    }

    /// The response, and the messages before it.
    #[track_caller]
    pub fn all(&mut self) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.message();
            if message.get("method").is_none() {
                return (before, message);
            }
            before.push(message);
        }
    }

    /// The response, without the messages before it.
    #[track_caller]
    pub fn answer(&mut self) -> Value {
        self.all().1
    }

    /// The port that the request was sent from.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.ender.port()
    }

    /// Cuts the connection: the server receives nothing any more, not even the end.
    #[cfg(target_os = "linux")]
    pub fn cut(&self) {
        self.ender.cut();
    }

    /// Closes the connection.
    pub fn hang_up(self) {
        self.ender.end();
    }
}
