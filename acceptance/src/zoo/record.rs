//! The steps of a client in a run, and the record of what it receives.

use std::time::Duration;

use creole_test_wait::blocking::within;
use serde_json::{Value, json};

use super::client::{LOG, ZooClient, ZooEra, ZooResponse};

/// How long a client waits for a server's own notifications.
const WHILE: Duration = Duration::from_secs(20);

/// The maximum number of pages of a list.
const PAGES: usize = 50;

/// One step of a client. `{folder}` in a string stands for the folder of the run.
#[derive(Clone, Debug)]
pub enum ZooStep {
    /// Lists tools, resources, templates and prompts.
    Lists,
    /// Lists tools until this one is among them.
    ListsUntil(&'static str),
    /// Calls a tool.
    Call(&'static str, Value),
    /// Calls a tool until its result has this text.
    CallUntil(&'static str, &'static str),
    /// Reads a resource.
    Read(&'static str),
    /// Gets a prompt.
    Prompt(&'static str, Value),
    /// Completes an argument: the reference, and the argument.
    Complete(Value, Value),
    /// Subscribes to a resource.
    Subscribe(&'static str),
    /// Requests log messages from this level on.
    Level(&'static str),
    /// Notifies the server that the roots have changed.
    ChangeRoots,
    /// Waits for a notification of this method that belongs to no request.
    Hear(&'static str),
    /// Waits for a log message that contains this text and belongs to no request. The stateless era has none.
    HearLog(&'static str),
}

/// The record of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedStep {
    /// The step.
    pub name: String,
    /// The received data.
    pub seen: Value,
}

/// The record of a whole run, in order.
pub type Record = Vec<RecordedStep>;

/// The lists that a client fetches: the method, and the member with the items.
const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
];

/// Connects and performs the steps.
pub fn perform(client: &mut ZooClient, steps: &[ZooStep]) -> Record {
    let mut record = Record::new();
    match client.connect() {
        Ok(server) => note(client, &mut record, "connect".to_owned(), &server),
        Err(problem) => {
            note(client, &mut record, "connect".to_owned(), &json!({"failed": problem}));
            return record;
        }
    }
    for step in steps {
        step.perform(client, &mut record);
    }
    record
}

fn note(client: &ZooClient, record: &mut Record, name: String, seen: &Value) {
    record.push(RecordedStep { name, seen: client.folder().hide(seen) });
}

impl ZooStep {
    fn perform(&self, client: &mut ZooClient, record: &mut Record) {
        match self {
            Self::Lists => {
                for (method, member) in LISTS {
                    let listed = list(client, method, member);
                    note(client, record, method.to_owned(), &listed);
                }
            }
            Self::ListsUntil(tool) => {
                let has = |listed: &Value| {
                    let tools = listed["items"].as_array();
                    tools.is_some_and(|tools| tools.iter().any(|one| one["name"] == *tool))
                };
                let mut listed = Value::Null;
                // What was listed last is recorded, also when the tool is missing.
                let _ = within(WHILE, || {
                    listed = list(client, "tools/list", "tools");
                    has(&listed)
                });
                note(client, record, format!("tools/list with {tool}"), &listed);
            }
            Self::Call(tool, arguments) => {
                let params = json!({"name": tool, "arguments": client.folder().fill_in(arguments)});
                ask(client, record, format!("call {tool} {arguments}"), "tools/call", params);
            }
            Self::CallUntil(tool, text) => {
                let text = client.folder().fill(text);
                let has = |client: &mut ZooClient| {
                    let result = client.request("tools/call", json!({"name": tool}));
                    let content = result
                        .map(|zoo_response| zoo_response.answer["result"]["content"][0].clone());
                    content.is_ok_and(|value| {
                        value["text"].as_str().is_some_and(|output| output.contains(&text))
                    })
                };
                let found = within(WHILE, || has(client)).is_some();
                note(client, record, format!("call {tool} until {text}"), &json!(found));
            }
            Self::Read(uri) => {
                let params = json!({"uri": client.folder().fill(uri)});
                ask(client, record, format!("read {uri}"), "resources/read", params);
            }
            Self::Prompt(name, arguments) => {
                let params = json!({"name": name, "arguments": client.folder().fill_in(arguments)});
                ask(client, record, format!("prompt {name}"), "prompts/get", params);
            }
            Self::Complete(reference, argument) => {
                let params = json!({"ref": reference, "argument": argument});
                let name = format!("complete {argument}");
                ask(client, record, name, "completion/complete", params);
            }
            Self::Subscribe(uri) => {
                let done = client.subscribe(uri);
                note(client, record, format!("subscribe {uri}"), &outcome(done));
            }
            Self::Level(level) => {
                let done = client.set_level(level);
                note(client, record, format!("level {level}"), &outcome(done));
            }
            Self::ChangeRoots => {
                let done = client.change_roots();
                note(client, record, "change roots".to_owned(), &outcome(done));
            }
            Self::Hear(method) => {
                let is_listening = client.wait_for_notification(method, WHILE).is_some();
                note(client, record, format!("hear {method}"), &json!(is_listening));
            }
            Self::HearLog(text) => {
                let has_logs = client.era() == ZooEra::Handshake;
                let is_listening = has_logs && client.hear_log(text, WHILE).is_some();
                note(client, record, format!("hear {LOG} {text}"), &json!(is_listening));
            }
        }
    }
}

fn outcome(done: Result<(), String>) -> Value {
    done.map_or_else(|problem| json!({"failed": problem}), |()| json!("done"))
}

/// Sends a request and records its response, its input requests and its progress.
fn ask(client: &mut ZooClient, record: &mut Record, name: String, method: &str, params: Value) {
    let seen = match client.request(method, params) {
        Ok(ZooResponse { answer, asked, progress }) => {
            let member = if answer.get("result").is_some() { "result" } else { "error" };
            json!({member: answer[member], "asked": asked, "progress": progress})
        }
        Err(problem) => json!({"failed": problem}),
    };
    note(client, record, name, &seen);
}

/// All items of a list, page by page, and the server that the pages name in `_meta`.
fn list(client: &mut ZooClient, method: &str, member: &str) -> Value {
    let (mut items, mut params) = (Vec::new(), json!({}));
    for _ in 0..PAGES {
        let response = match client.request(method, params) {
            Ok(returned) => returned.answer,
            Err(problem) => return json!({"failed": problem}),
        };
        let result = &response["result"];
        if let Some(error) = response.get("error") {
            return json!({"error": error});
        }
        let Some(page) = result[member].as_array() else {
            // A gateway cannot forward it as a list, and has to report it.
            let message = format!("Internal error: the server's list has no `{member}`");
            return json!({"error": {"code": -32603, "message": message}});
        };
        items.extend(page.iter().cloned());
        let Some(cursor) = result["nextCursor"].as_str() else {
            return json!({"items": items, "server": result["_meta"][super::compare::SERVER]});
        };
        params = json!({"cursor": cursor});
    }
    json!({"failed": format!("{method} has more than {PAGES} pages")})
}
