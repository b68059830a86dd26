//! A small client in the same process, of either era.

use std::collections::VecDeque;
use std::time::Duration;

use creole::stream::{MemoryConnection, memory_pair};
use creole::{Server, Service};
use creole_tools::{PackOptions, add};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The timeout of each step.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a server, and its messages other than responses.
pub(crate) struct PackClient {
    transport: MemoryConnection,
    buffer: Vec<u8>,
    queued: VecDeque<Value>,
    modern: Option<Value>,
    next_id: u64,
    /// Notifications, in the order of their arrival.
    pub(crate) notifications: Vec<Value>,
    /// The input responses, by method.
    pub(crate) input_responses: Vec<(&'static str, Value)>,
    /// The input requests during a call.
    pub(crate) input_requests: Vec<Value>,
    _server: JoinHandle<()>,
}

/// A server with these packs.
pub(crate) fn serve_packs(packs: &[&str], options: &PackOptions) -> Service {
    let start = Server::new("test");
    let added = packs.iter().try_fold(start, |server, pack| add(server, pack, options));
    added.expect("known packs").start()
}

impl PackClient {
    /// A client of 2025-11-25, with the handshake done.
    pub(crate) async fn session(service: &Service, capabilities: Value) -> Self {
        let mut client = Self::connect(service, None);
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        client.request("initialize", params).await;
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    /// A client of 2026-07-28, which needs no handshake.
    pub(crate) fn modern(service: &Service, capabilities: Value) -> Self {
        Self::connect(service, Some(capabilities))
    }

    fn connect(service: &Service, modern: Option<Value>) -> Self {
        let (near, far) = memory_pair();
        let service = service.clone();
        let server = tokio::spawn(async move {
            let (input, output) = far.split();
            service.serve(input, output).await.expect("a connection that ends well");
        });
        Self {
            transport: near,
            buffer: Vec::new(),
            queued: VecDeque::new(),
            modern,
            next_id: 1,
            notifications: Vec::new(),
            input_responses: Vec::new(),
            input_requests: Vec::new(),
            _server: server,
        }
    }

    /// Sends a request and returns the whole response.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.response(id).await
    }

    /// Sends a request and returns its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if let Some(capabilities) = &self.modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
        }
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Sends a notification.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Waits for the response to a request. Meanwhile responds to input requests and keeps notifications.
    pub(crate) async fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message.get("method").is_none() && message["id"] == json!(id) {
                return message;
            }
            self.take(message).await;
        }
    }

    /// Waits for a response to one of these requests and returns its id.
    pub(crate) async fn any_response(&mut self, ids: &[u64]) -> u64 {
        loop {
            let message = self.next().await;
            if let Some(id) = ids.iter().find(|id| message["id"] == json!(id)) {
                return *id;
            }
            self.take(message).await;
        }
    }

    /// Waits for a notification of that method.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(index) = self.notifications.iter().position(|sent| sent["method"] == method)
            {
                return self.notifications.remove(index);
            }
            let message = self.next().await;
            self.take(message).await;
        }
    }

    /// The result of a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let response =
            self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(response.get("result").is_some(), "{response}");
        response["result"].clone()
    }

    /// The text of a tool call that must succeed.
    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_ne!(result["isError"], json!(true), "{result}");
        text_of(&result)
    }

    /// The text of a tool call that must fail.
    pub(crate) async fn failure(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], json!(true), "{result}");
        text_of(&result)
    }

    async fn take(&mut self, message: Value) {
        let Some(method) = message["method"].as_str() else { panic!("unexpected: {message}") };
        if message.get("id").is_none() {
            self.notifications.push(message);
            return;
        }
        let index = self.input_responses.iter().position(|(known, _)| *known == method);
        let (_, result) = self.input_responses.remove(index.expect("a question that is expected"));
        let id = message["id"].clone();
        self.input_requests.push(message);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    async fn write(&mut self, message: &Value) {
        self.transport.send(format!("{message}\n").as_bytes()).await.expect("an open connection");
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Some(message) = self.queued.pop_front() {
                return message;
            }
            let bytes =
                timeout(TIMEOUT, self.transport.receive()).await.expect("an answer in time");
            self.buffer.extend(bytes.expect("an open connection"));
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.buffer.drain(..=end).collect();
                self.queued.push_back(serde_json::from_slice(&line).expect("a message"));
            }
        }
    }
}

/// The text of a result's first block.
pub(crate) fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// Options with the data directory of the test.
pub(crate) fn options_for(directory: &tempfile::TempDir) -> PackOptions {
    PackOptions { data_dir: Some(directory.path().join("data")), ..PackOptions::default() }
}
