//! An upstream that remembers what each of its sessions heard, and asks before it answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use creole_acceptance::oauth::{RogueRequest, RogueResponse, RogueServer};
use serde_json::{Value, json};

/// The texts that each session heard.
type Heard = BTreeMap<String, Vec<String>>;

/// A server of the handshake era. It answers each call with all texts that the session of the call has heard.
pub(crate) struct RememberingServer {
    server: RogueServer,
    heard: Arc<Mutex<Heard>>,
}

impl RememberingServer {
    pub(crate) fn start() -> Self {
        let heard = Arc::<Mutex<Heard>>::default();
        let remembered = Arc::clone(&heard);
        let server = RogueServer::start(move |request, _| Some(answer(request, &remembered)));
        Self { server, heard }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// The texts that each session heard.
    pub(crate) fn heard(&self) -> Vec<Vec<String>> {
        self.heard.lock().unwrap().values().cloned().collect()
    }

    /// The credentials that requests had.
    pub(crate) fn credentials(&self) -> Vec<String> {
        self.server.requests().into_iter().filter_map(|request| request.authorization).collect()
    }
}

/// The tools: `note` remembers a text, and `recall` only reads.
fn tools() -> Value {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!([
        {"name": "note", "inputSchema": text},
        {"name": "recall", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
    ])
}

fn answer(request: &RogueRequest, heard: &Mutex<Heard>) -> RogueResponse {
    let message = request.message();
    let mut heard = heard.lock().unwrap();
    let (mut head, session) = (String::new(), request.session.clone().unwrap_or_default());
    let result = match message["method"].as_str() {
        Some("initialize") => {
            let session = format!("session-{}", heard.len());
            head = format!("Mcp-Session-Id: {session}\r\n");
            heard.insert(session, Vec::new());
            json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "remembering", "version": "1"},
            })
        }
        Some("tools/list") => json!({"tools": tools()}),
        Some("tools/call") => {
            let texts = heard.entry(session).or_default();
            if let Some(text) = message["params"]["arguments"]["text"].as_str() {
                texts.push(text.to_owned());
            }
            json!({"content": [{"type": "text", "text": texts.join(" ")}]})
        }
        Some("ping") => json!({}),
        _ => return RogueResponse::Text(202, String::new(), String::new()),
    };
    if request.method != "POST" {
        return RogueResponse::Text(405, String::new(), String::new());
    }
    let head = format!("Content-Type: application/json\r\n{head}");
    let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    RogueResponse::Text(200, head, response.to_string())
}
