//! The kinds of clients of the history.

use std::io::Read;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::http::{Connection, Events};
use serde_json::{Value, json};

use super::client::{BegunCall, HistoryClient, is_temporary};

/// How often a client returns for a call that waits for its input.
const MAX_RETRIES: usize = 60;

/// A kind of client.
#[derive(Clone, Copy, Debug)]
pub(super) enum Caller {
    /// Of the stateless era, without input.
    Stateless,
    /// Of the stateless era: it returns to any replica with its input.
    Parking,
    /// With a session of this revision: it sends its input to any replica while the call runs.
    Session(&'static str),
    /// Its calls run as tasks, which it reads at any replica.
    Tasks,
}

impl Caller {
    pub(super) const ALL: [Self; 8] = [
        Self::Stateless,
        Self::Parking,
        Self::Parking,
        Self::Parking,
        Self::Session("2025-06-18"),
        Self::Session("2025-11-25"),
        Self::Tasks,
        Self::Tasks,
    ];

    /// Opens the session of a client that has one.
    pub(super) fn open_session(self, client: &mut HistoryClient<'_>) -> Option<HandshakeClient> {
        let Self::Session(revision) = self else { return None };
        let (key, capabilities) = (client.key(), json!({"elicitation": {}}));
        Some(HandshakeClient::open(client.address(), revision, capabilities, Some(&key)))
    }

    /// Calls until the run is over.
    pub(super) fn drive(self, client: &mut HistoryClient<'_>, session: Option<&HandshakeClient>) {
        match self {
            Self::Stateless => {
                while !client.run.is_over() {
                    let tool =
                        any(client, &["handshake_run", "stateless_run", "handshake_run_again"]);
                    call(client, tool);
                }
            }
            Self::Parking => {
                while !client.run.is_over() {
                    let tool =
                        any(client, &["handshake_ask", "handshake_ask_again", "stateless_ask"]);
                    call_with_input(client, tool);
                }
            }
            Self::Session(_) => {
                let session = session.unwrap();
                while !client.run.is_over() {
                    let tool = any(client, &["handshake_run", "handshake_ask", "stateless_ask"]);
                    call_in_session(client, session, tool);
                }
            }
            Self::Tasks => {
                while !client.run.is_over() {
                    let tool = any(client, &["handshake_job", "stateless_job"]);
                    super::tasks::run(client, tool);
                }
            }
        }
    }
}

fn any<'a>(client: &mut HistoryClient<'_>, tools: &[&'a str]) -> &'a str {
    tools[client.random.below(tools.len() as u64) as usize]
}

/// Calls a tool once.
fn call(client: &mut HistoryClient<'_>, tool: &str) {
    let call = client.begin(tool);
    let params = json!({"name": call.tool, "arguments": call.arguments});
    let request = client.stateless(json!({})).written(&call.id, "tools/call", params);
    let messages = client.send(&request).unwrap_or_default();
    let expected = call.nonce.clone();
    client.end(call, &messages, expected);
}

/// The answer of a client: a name that only this call knows.
fn input(call: &BegunCall) -> (String, Value) {
    let name = format!("person of {}", call.nonce);
    let content = json!({"action": "accept", "content": {"name": name}});
    (format!("{} by {name}", call.nonce), content)
}

/// Calls a tool that asks for input, and returns with the input to any replica.
fn call_with_input(client: &mut HistoryClient<'_>, tool: &str) {
    let call = client.begin(tool);
    let stateless = client.stateless(json!({"elicitation": {}}));
    let params = json!({"name": call.tool, "arguments": call.arguments});
    let first = stateless.written(&call.id, "tools/call", params.clone());
    let mut messages = client.send(&first).unwrap_or_default();
    let (expected, response) = input(&call);
    // An upstream of the stateless era executes the call again whenever a client returns.
    let may_return = tool.starts_with("handshake_");
    for _ in 0..MAX_RETRIES {
        let Some(required) =
            messages.pop_if(|message| message["result"]["resultType"] == "input_required")
        else {
            break;
        };
        messages = return_with_input(client, &stateless, &call, &required, &response, may_return);
    }
    client.end(call, &messages, expected);
}

/// Returns with the input until a replica says how the call ended, or what else it asks.
fn return_with_input(
    client: &mut HistoryClient<'_>,
    stateless: &StatelessClient,
    call: &BegunCall,
    required: &Value,
    response: &Value,
    may_return: bool,
) -> Vec<Value> {
    let required = &required["result"];
    let keys = required["inputRequests"].as_object().unwrap().keys();
    let responses: Value = keys.map(|key| (key.clone(), response.clone())).collect();
    let params = json!({
        "name": call.tool, "arguments": call.arguments,
        "inputResponses": responses, "requestState": required["requestState"],
    });
    let request = stateless.written(&call.id, "tools/call", params);
    for _ in 0..MAX_RETRIES {
        match client.send(&request) {
            Some(messages) if !messages.iter().any(is_temporary) => return messages,
            None if !may_return => return Vec::new(),
            _ => _ = client.pause(),
        }
    }
    Vec::new()
}

/// Calls a tool in a session. If it asks for input, any replica gets the input.
fn call_in_session(client: &mut HistoryClient<'_>, session: &HandshakeClient, tool: &str) {
    let call = client.begin(tool);
    let (with_input, response) = input(&call);
    let expected = if tool.ends_with("_ask") { with_input } else { call.nonce.clone() };
    let messages = exchange_in_session(client, session, &call, &response).unwrap_or_default();
    client.end(call, &messages, expected);
}

fn exchange_in_session(
    client: &mut HistoryClient<'_>,
    session: &HandshakeClient,
    call: &BegunCall,
    response: &Value,
) -> Option<Vec<Value>> {
    let request = session.written_call(&call.id, &call.tool, call.arguments.clone());
    let address = client.address();
    let mut connection = Connection::open(address).ok()?;
    connection.write(&request.bytes(address)).ok()?;
    client.run.watch(client.tenant, connection.ender().ok()?);
    let head = connection.head().ok()?;
    assert_ne!(head.status, 404, "the session is lost");
    if !head.is_events() {
        let mut body = Vec::new();
        connection.body(&head).read_to_end(&mut body).ok()?;
        let message: Value = serde_json::from_slice(&body).ok()?;
        return (head.status == 200).then(|| vec![message]);
    }
    let mut messages = Vec::new();
    for event in Events::new(connection.body(&head)).filter(|event| !event.data.is_empty()) {
        let message: Value = serde_json::from_str(&event.data).ok()?;
        if message["method"] == "elicitation/create" {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": response});
            // A replica that cannot take the answer now may take it later.
            while client.send_answer(session, &answer).is_none() {
                client.pause().then_some(())?;
            }
        } else {
            messages.push(message);
        }
    }
    Some(messages)
}
