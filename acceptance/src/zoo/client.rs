//! A client of either era that returns every message.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::wire::ClientTransport;
use super::{Folder, answers};

/// The newest revision with a handshake.
pub(super) const HANDSHAKE: &str = "2025-11-25";

/// The stateless revision.
const STATELESS: &str = "2026-07-28";

/// How long the client waits: only a server that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The maximum number of rounds of one call.
const ROUNDS: usize = 8;

/// The method of log messages.
pub(super) const LOG: &str = "notifications/message";

const PREFIX: &str = "io.modelcontextprotocol/";

/// The era of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZooEra {
    /// With `initialize`, of 2025-11-25.
    Handshake,
    /// Without a session, of 2026-07-28.
    Stateless,
}

/// A client that is connected to one server.
pub struct ZooClient {
    wire: ClientTransport,
    era: ZooEra,
    folder: Folder,
    last_id: u64,
    level: Option<String>,
    heard: Vec<Value>,
}

/// The response to a request, and the messages before it.
#[derive(Debug)]
pub(super) struct ZooResponse {
    /// The result or the error.
    pub(super) answer: Value,
    /// The input requests meanwhile: objects with `method` and `params`.
    pub(super) asked: Vec<Value>,
    /// The progress notifications, without the token.
    pub(super) progress: Vec<Value>,
}

impl ZooClient {
    /// A client on this transport.
    #[must_use]
    pub fn new(wire: ClientTransport, era: ZooEra, folder: Folder) -> Self {
        Self { wire, era, folder, last_id: 0, level: None, heard: Vec::new() }
    }

    /// The era of the client.
    #[must_use]
    pub fn era(&self) -> ZooEra {
        self.era
    }

    /// The folder of the run.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Connects, and returns the server's description: `server`, `capabilities`, `instructions`.
    pub fn connect(&mut self) -> Result<Value, String> {
        let stated = |value: &Value, server: &Value| {
            let (capabilities, instructions) = (&value["capabilities"], &value["instructions"]);
            json!({"server": server, "capabilities": capabilities, "instructions": instructions})
        };
        match self.era {
            ZooEra::Handshake => {
                let params = json!({
                    "protocolVersion": HANDSHAKE,
                    "capabilities": answers::capabilities(),
                    "clientInfo": {"name": "zoo", "version": "1"},
                });
                let initialize_result = self.result("initialize", params)?;
                self.send_notification("notifications/initialized")?;
                Ok(stated(&initialize_result, &initialize_result["serverInfo"]))
            }
            ZooEra::Stateless => {
                let value = self.result("server/discover", json!({}))?;
                // A server without change notifications may refuse.
                let _ = self.listen(json!({
                    "toolsListChanged": true, "resourcesListChanged": true,
                    "promptsListChanged": true,
                }));
                Ok(stated(&value, &value["_meta"][format!("{PREFIX}serverInfo")]))
            }
        }
    }

    /// Requests log messages from this level on.
    pub(super) fn set_level(&mut self, level: &str) -> Result<(), String> {
        if self.era == ZooEra::Handshake {
            self.result("logging/setLevel", json!({"level": level}))?;
        }
        self.level = Some(level.to_owned());
        Ok(())
    }

    /// Subscribes to a resource.
    pub(super) fn subscribe(&mut self, uri: &str) -> Result<(), String> {
        match self.era {
            ZooEra::Handshake => self.result("resources/subscribe", json!({"uri": uri})).map(drop),
            ZooEra::Stateless => self.listen(json!({"resourceSubscriptions": [uri]})),
        }
    }

    /// Notifies the server that the roots have changed. The stateless era has no such notification.
    pub(super) fn change_roots(&mut self) -> Result<(), String> {
        match self.era {
            ZooEra::Handshake => self.send_notification("notifications/roots/list_changed"),
            ZooEra::Stateless => Ok(()),
        }
    }

    /// Waits for a notification of this method that belongs to no request, and takes it.
    pub(super) fn wait_for_notification(
        &mut self,
        method: &str,
        within: Duration,
    ) -> Option<Value> {
        self.hear_one(within, |message| message["method"] == method)
    }

    /// Waits for a log message that contains this text, and takes it. Earlier messages stay.
    pub(super) fn hear_log(&mut self, text: &str, within: Duration) -> Option<Value> {
        self.hear_one(within, |message| {
            let data = message["params"]["data"].as_str();
            message["method"] == LOG && data.is_some_and(|data| data.contains(text))
        })
    }

    fn hear_one(&mut self, within: Duration, is_match: impl Fn(&Value) -> bool) -> Option<Value> {
        let end = Instant::now() + within;
        loop {
            if let Some(index) = self.heard.iter().position(&is_match) {
                return Some(self.heard.remove(index));
            }
            let wait = end.checked_duration_since(Instant::now())?;
            let message = self.wire.receive(wait)?;
            // Messages of an ended request are ignored.
            self.take(message, &mut Vec::new(), &mut Vec::new()).ok()?;
        }
    }

    /// Sends a request and answers input requests until it is done.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Result<ZooResponse, String> {
        let mut all = ZooResponse { answer: Value::Null, asked: Vec::new(), progress: Vec::new() };
        let mut next = params.clone();
        for _ in 0..ROUNDS {
            let last = self.exchange(method, next)?;
            all.asked.extend(last.asked);
            all.progress.extend(last.progress);
            if last.answer["result"]["resultType"] != "input_required" {
                all.answer = last.answer;
                return Ok(all);
            }
            let result = &last.answer["result"];
            let mut responses = Map::new();
            for (key, received) in result["inputRequests"].as_object().into_iter().flatten() {
                let method = received["method"].as_str().unwrap_or_default();
                all.asked.push(json!({"method": method, "params": received["params"]}));
                let response = answers::answer(method, &received["params"], &self.folder);
                responses.insert(key.clone(), response.unwrap_or_default());
            }
            next = params.clone();
            next["inputResponses"] = Value::Object(responses);
            next["requestState"] = result["requestState"].clone();
        }
        Err(format!("{method} was answered {ROUNDS} times with questions"))
    }

    /// The result of a request, or its error as text.
    fn result(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let response = self.request(method, params)?.answer;
        response.get("result").cloned().ok_or_else(|| format!("{method}: {response}"))
    }

    /// Opens a stream of change notifications and waits for its acknowledgement.
    fn listen(&mut self, notifications: Value) -> Result<(), String> {
        let id = self.send("subscriptions/listen", json!({"notifications": notifications}))?;
        let end = Instant::now() + PATIENCE;
        while let Some(wait) = end.checked_duration_since(Instant::now()) {
            let Some(message) = self.wire.receive(wait) else { break };
            if message["method"] == "notifications/subscriptions/acknowledged" {
                return Ok(());
            }
            if message["id"] == id && message.get("method").is_none() {
                return Err(format!("subscriptions/listen: {message}"));
            }
            self.take(message, &mut Vec::new(), &mut Vec::new())?;
        }
        Err("subscriptions/listen was not acknowledged".to_owned())
    }

    /// Sends a request and waits for its response.
    fn exchange(&mut self, method: &str, params: Value) -> Result<ZooResponse, String> {
        let id = self.send(method, params)?;
        let (mut requests, mut progress) = (Vec::new(), Vec::new());
        let end = Instant::now() + PATIENCE;
        while let Some(wait) = end.checked_duration_since(Instant::now()) {
            let Some(message) = self.wire.receive(wait) else { break };
            if message["id"] == id && message.get("method").is_none() {
                return Ok(ZooResponse { answer: message, asked: requests, progress });
            }
            self.take(message, &mut requests, &mut progress)?;
        }
        Err(format!("{method} was not answered:\n{}", self.wire.notes()))
    }

    /// Handles a message that is not a response: answers input requests, and keeps notifications.
    fn take(
        &mut self,
        message: Value,
        requests: &mut Vec<Value>,
        progress: &mut Vec<Value>,
    ) -> Result<(), String> {
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            self.heard.push(message);
            return Ok(());
        };
        let params = message["params"].clone();
        if let Some(id) = message.get("id") {
            let response = match answers::answer(&method, &params, &self.folder) {
                Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                None => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    json!({"jsonrpc": "2.0", "id": id, "error": error})
                }
            };
            requests.push(json!({"method": method, "params": params}));
            return self.wire.send(&response);
        }
        if method == "notifications/progress" {
            progress.push(params);
        } else {
            self.heard.push(message);
        }
        Ok(())
    }

    /// Sends a request with a progress token and returns its id.
    fn send(&mut self, method: &str, mut params: Value) -> Result<Value, String> {
        self.last_id += 1;
        let id = json!(self.last_id);
        let mut meta = json!({"progressToken": format!("progress-{}", self.last_id)});
        if self.era == ZooEra::Stateless {
            meta[format!("{PREFIX}protocolVersion")] = json!(STATELESS);
            meta[format!("{PREFIX}clientInfo")] = json!({"name": "zoo", "version": "1"});
            meta[format!("{PREFIX}clientCapabilities")] = answers::capabilities();
            if let Some(level) = &self.level {
                meta[format!("{PREFIX}logLevel")] = json!(level);
            }
        }
        params["_meta"] = meta;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.wire.send(&request)?;
        Ok(id)
    }

    fn send_notification(&mut self, method: &str) -> Result<(), String> {
        self.wire.send(&json!({"jsonrpc": "2.0", "method": method}))
    }
}
