//! Child processes of a gateway that a test controls and whose received messages the test sees.
//!
//! The binary `puppet` is such a child: it connects its standard streams to a [`ScriptedChildren`]. Requests that every
//! server answers, such as the handshake and the lists, are answered here. All others become a [`ReceivedMessage`] for
//! the test.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::stdio::beside;

/// How long a test waits: only a gateway that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The automatic replies of a scripted server, by method: results, or errors with a code.
#[derive(Clone, Debug)]
pub struct ScriptedReplies(HashMap<String, Value>);

impl ScriptedReplies {
    /// A server of the handshake era with this revision, these capabilities and these tools.
    #[must_use]
    pub fn new(version: &str, capabilities: Value, tools: &[&str]) -> Self {
        let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
        let tools: Vec<Value> = tools.iter().map(tool).collect();
        let initialize_result = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": {"name": "puppet", "version": "1"},
        });
        Self(HashMap::new())
            .answering("server/discover", json!({"code": -32601, "message": "Method not found"}))
            .answering("initialize", initialize_result)
            .answering("ping", json!({}))
            .answering("tools/list", json!({"tools": tools}))
            .answering("resources/list", json!({"resources": []}))
            .answering("resources/templates/list", json!({"resourceTemplates": []}))
            .answering("prompts/list", json!({"prompts": []}))
            .answering("logging/setLevel", json!({}))
    }

    /// The same with this reply to a method: a result, or an error with its `code`.
    #[must_use]
    pub fn answering(mut self, method: &str, response: Value) -> Self {
        self.0.insert(method.to_owned(), response);
        self
    }

    /// The same, with this method left to the test.
    #[must_use]
    pub fn leaving(mut self, method: &str) -> Self {
        self.0.remove(method);
        self
    }

    /// The automatic reply; null for a message that needs no reply.
    pub(crate) fn answer(&self, message: &Value) -> Option<Value> {
        let method = message["method"].as_str()?;
        if method == "notifications/initialized" {
            return Some(Value::Null);
        }
        let (id, response) = (&message["id"], self.0.get(method)?);
        let kind = if response.get("code").is_some() { "error" } else { "result" };
        Some(json!({"jsonrpc": "2.0", "id": id, kind: response}))
    }
}

/// Controls all children of a test.
pub struct ScriptedChildren {
    port: String,
    heard: Receiver<ReceivedMessage>,
    children: Arc<Mutex<Vec<ScriptedChild>>>,
}

/// A message that a child received.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// The child.
    pub by: ScriptedChild,
    /// The message.
    pub message: Value,
}

/// One child.
#[derive(Clone, Debug)]
pub struct ScriptedChild {
    /// Its process.
    pub pid: u32,
    strings: Arc<Mutex<TcpStream>>,
    told: Arc<Mutex<Vec<Value>>>,
}

impl ScriptedChildren {
    /// Waits for children, which all have the same replies.
    #[must_use]
    pub fn new(show: ScriptedReplies) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its port").to_string();
        let (sender, receiver) = channel();
        let children = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&children);
        thread::spawn(move || {
            for strings in listener.incoming().map_while(Result::ok) {
                let (show, sender, known) = (show.clone(), sender.clone(), Arc::clone(&known));
                thread::spawn(move || hold(strings, &show, &sender, &known));
            }
        });
        Self { port, heard: receiver, children }
    }

    /// The command that starts a child.
    #[must_use]
    pub fn command(&self) -> Vec<String> {
        let child = beside("puppet").expect("the program");
        vec![child.display().to_string(), self.port.clone()]
    }

    /// The next message for the test, which must have this method.
    #[track_caller]
    pub fn hears(&self, method: &str) -> ReceivedMessage {
        let message = self.next();
        assert_eq!(message.message["method"], method, "{}", message.message);
        message
    }

    /// The next message for the test.
    #[track_caller]
    pub fn next(&self) -> ReceivedMessage {
        match self.heard.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("no child received a message"),
            Err(RecvTimeoutError::Disconnected) => panic!("there are no children"),
        }
    }

    /// The next message, if one arrives in time.
    pub fn within(&self, wait: Duration) -> Option<ReceivedMessage> {
        self.heard.recv_timeout(wait).ok()
    }

    /// All children that have connected.
    #[must_use]
    pub fn children(&self) -> Vec<ScriptedChild> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ReceivedMessage {
    /// Responds with a result.
    pub fn result(&self, result: Value) {
        self.by.says(&json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}));
    }

    /// Responds with a text, as a tool does.
    pub fn text(&self, text: &str) {
        self.result(json!({"content": [{"type": "text", "text": text}]}));
    }

    /// Responds with an error.
    pub fn error(&self, code: i64, message: &str, data: &Value) {
        let error = json!({"code": code, "message": message, "data": data});
        self.by.says(&json!({"jsonrpc": "2.0", "id": self.message["id"], "error": error}));
    }
}

impl ScriptedChild {
    /// Makes it send a message.
    pub fn says(&self, message: &Value) {
        self.writes(&format!("{message}\n"));
    }

    /// Makes it send a request.
    pub fn asks(&self, id: Value, method: &str, params: Value) {
        let id = &id;
        self.says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Makes it send several requests in one write, each with an id, a method and parameters.
    pub fn asks_at_once(&self, questions: &[(Value, &str, Value)]) {
        let lines = questions.iter().map(|(id, method, params)| {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            format!("{message}\n")
        });
        self.writes(&lines.collect::<String>());
    }

    /// Makes it send a notification.
    pub fn tells(&self, method: &str, params: &Value) {
        self.says(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Makes it write any text.
    pub fn writes(&self, text: &str) {
        let mut strings = self.strings.lock().unwrap_or_else(PoisonError::into_inner);
        // If it has ended, the test notices missing messages.
        _ = strings.write_all(text.as_bytes());
    }

    /// Makes it end.
    pub fn ends(&self) {
        let strings = self.strings.lock().unwrap_or_else(PoisonError::into_inner);
        _ = strings.shutdown(Shutdown::Both);
    }

    /// All messages that it received, in order.
    #[must_use]
    pub fn told(&self) -> Vec<Value> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads the messages of one child until it ends.
fn hold(
    strings: TcpStream,
    show: &ScriptedReplies,
    sender: &Sender<ReceivedMessage>,
    known: &Mutex<Vec<ScriptedChild>>,
) {
    let Ok(reading) = strings.try_clone() else { return };
    let mut lines = BufReader::new(reading).lines().map_while(Result::ok);
    let Some(pid) = lines.next().and_then(|line| line.parse().ok()) else { return };
    let child = ScriptedChild { pid, strings: Arc::new(Mutex::new(strings)), told: Arc::default() };
    known.lock().unwrap_or_else(PoisonError::into_inner).push(child.clone());
    for line in lines {
        let message: Value = serde_json::from_str(&line).unwrap_or(Value::String(line));
        child.told.lock().unwrap_or_else(PoisonError::into_inner).push(message.clone());
        match show.answer(&message) {
            Some(Value::Null) => {}
            Some(response) => child.says(&response),
            None => _ = sender.send(ReceivedMessage { by: child.clone(), message }),
        }
    }
}
