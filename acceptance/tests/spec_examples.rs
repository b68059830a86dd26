//! Checks the official example messages, and every shape that Creole can write, against the official rules.
//!
//! The examples are not part of this repository: `MCP_SPEC_DIR` names the folder that holds
//! `2026-07-28/examples/<Definition>/<example>.json`. Without it, the tests check only against the published types and
//! report that.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

#[path = "spec_examples/encodings.rs"]
mod encodings;
#[path = "spec_examples/server_messages.rs"]
mod server_messages;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use creole::proto::dialect::builtin;
use creole::proto::method::Method;
use creole::proto::model::Reference;
use creole::proto::operation::Operation;
use creole::proto::revision::{Era, Revision};
use creole::proto::server::{Action, Call, Machine, Outbox, Profile, ServerLimits};
use creole::proto::wire;
use creole::proto::wire::meta;
use creole::proto::wire::{Fields, Frame, Object, Raw, canonical, scan, unquote};
use creole_acceptance::referee::{Referee, schema};
use creole_acceptance::transcript::Direction;
use serde_json::{Value, json};

/// The minimum number of examples in the folder.
const FEWEST: usize = 100;

/// The method of each definition of params with its own examples.
const PARAMS: &[(&str, &str)] = &[
    ("CallToolRequestParams", "tools/call"),
    ("CompleteRequestParams", "completion/complete"),
    ("GetPromptRequestParams", "prompts/get"),
    ("PaginatedRequestParams", "tools/list"),
];

/// The method of each definition of a result with examples.
const ANSWERS: &[(&str, &str)] = &[
    ("CallToolResultResponse", "tools/call"),
    ("CompleteResultResponse", "completion/complete"),
    ("DiscoverResultResponse", "server/discover"),
    ("GetPromptResultResponse", "prompts/get"),
    ("ListPromptsResultResponse", "prompts/list"),
    ("ListResourceTemplatesResultResponse", "resources/templates/list"),
    ("ListResourcesResultResponse", "resources/list"),
    ("ListToolsResultResponse", "tools/list"),
    ("ReadResourceResultResponse", "resources/read"),
];

/// Official examples that violate the official rules, with the rule. They validate as results only because the schema
/// also accepts them as an `InputRequiredResult` without any request.
const SLIPS: &[(&str, &str)] = &[(
    "ReadResourceResultResponse/read-resource-result-response.json",
    "missing field `cacheScope`",
)];

struct Example {
    name: String,
    definition: String,
    text: String,
    value: Value,
}

#[test]
fn every_official_example_is_read_and_kept_as_it_is() {
    let Some(examples) = examples() else { return };
    let complaints = examples.iter().filter_map(|example| {
        let kept = kept_as_it_is(example);
        let valid = || schema::validate(newest(), &example.definition, &example.value);
        kept.and_then(|()| valid()).err().map(|reason| format!("{}: {reason}", example.name))
    });
    fail_on(complaints.collect());
    aloud(&format!("{} official examples are read and kept as they are", examples.len()));
}

#[test]
fn every_official_example_of_a_request_is_understood() {
    let Some(examples) = examples() else { return };
    let requests: Vec<_> = examples.iter().filter_map(|it| Some((it, as_request(it)?))).collect();
    let complaints = requests.iter().filter_map(|(example, (method, request))| {
        understood(method, request).err().map(|reason| format!("{}: {reason}", example.name))
    });
    fail_on(complaints.collect());
    assert!(requests.len() >= 15, "only {} examples are requests", requests.len());
    aloud(&format!("{} official examples of requests are understood", requests.len()));
}

#[test]
fn every_official_example_of_input_responses_reaches_the_call() {
    let Some(examples) = examples() else { return };
    for example in examples.iter().filter(|example| example.definition == "InputResponses") {
        let params = json!({"name": "t", "inputResponses": example.value, "requestState": "s"});
        let call = started(&request("tools/call", params)).unwrap();
        let brought = call.caller.input_responses.unwrap().responses.unwrap();
        assert_eq!(brought.decode::<Value>().unwrap(), example.value, "{}", example.name);
    }
}

#[test]
fn every_official_example_of_a_cancellation_cancels() {
    let Some(examples) = examples() else { return };
    for example in examples.iter().filter(|it| it.definition == "CancelledNotification") {
        let mut machine = machine();
        let mut out = Outbox::default();
        let mut started = request("tools/call", json!({"name": "t"}));
        started["id"] = example.value["params"]["requestId"].clone();
        machine.receive(started.to_string().as_bytes(), Duration::ZERO, &mut out);
        assert_eq!(machine.in_flight(), 1, "{}", example.name);
        machine.receive(example.text.as_bytes(), Duration::ZERO, &mut out);
        assert_eq!(machine.in_flight(), 0, "{}", example.name);
        assert!(out.bytes().is_empty(), "{}", example.name);
    }
}

#[test]
fn every_official_example_of_an_answer_pleases_the_referee() {
    let Some(examples) = examples() else { return };
    let mut problems = Vec::new();
    for example in &examples {
        let Some((_, method)) = ANSWERS.iter().find(|(name, _)| *name == example.definition) else {
            continue;
        };
        let mut referee = Referee::new(&builtin("spec").unwrap());
        let mut received = request(method, json!({"name": "t", "uri": "test://x"}));
        received["id"] = example.value["id"].clone();
        referee.observe(Direction::ToServer, &format!("{received}\n")).unwrap();
        let result = referee.observe(Direction::ToClient, &example.value.to_string());
        match (result, SLIPS.iter().find(|(name, _)| *name == example.name)) {
            (Ok(()), None) => {}
            (Err(reason), Some((_, slip))) if reason.contains(slip) => {}
            (result, _) => problems.push(format!("{}: {result:?}", example.name)),
        }
    }
    fail_on(problems);
}

/// The official examples. `None` if no folder is configured, which is reported on stderr.
fn examples() -> Option<Vec<Example>> {
    let Some(folder) = schema::folder() else {
        aloud("MCP_SPEC_DIR is not set: there are no official examples to check");
        return None;
    };
    let folder = folder.join(newest().rules().name).join("examples");
    let mut examples = Vec::new();
    for definition in entries(&folder) {
        for file in entries(&definition) {
            let text = fs::read_to_string(&file).unwrap();
            let value = serde_json::from_str(&text).unwrap();
            let definition = definition.file_name().unwrap().to_string_lossy().into_owned();
            let name = file.strip_prefix(&folder).unwrap().display().to_string();
            examples.push(Example { name, definition, text, value });
        }
    }
    let found = examples.len();
    assert!(found >= FEWEST, "{} holds only {found} examples", folder.display());
    Some(examples)
}

fn entries(folder: &PathBuf) -> Vec<PathBuf> {
    let listed =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Writes to stderr directly, because the test harness captures the output of the macros.
fn aloud(news: &str) {
    _ = writeln!(io::stderr(), "{news}");
}

fn fail_on(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

fn newest() -> Revision {
    Revision::newest(Era::Stateless)
}

fn kept_as_it_is(example: &Example) -> Result<(), String> {
    let Example { text, value, .. } = example;
    let frame =
        scan(text.as_bytes(), &wire::ScanLimits::default()).map_err(|error| error.to_string())?;
    let Frame::One(fields) = frame else { return Err("not one message".to_owned()) };
    check_fields(&fields, value)?;
    agree(text.trim_ascii(), value)?;
    let raw = Raw::parse(text).map_err(|error| error.to_string())?;
    let form = canonical(raw.as_str());
    let same = |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value);
    if raw.as_str() != text.trim_ascii() || !same(&form) || canonical(&form) != form {
        return Err(format!("its canonical form differs: {form}"));
    }
    Ok(())
}

fn check_fields(fields: &Fields<'_>, value: &Value) -> Result<(), String> {
    let seen = [
        ("jsonrpc", fields.jsonrpc),
        ("id", fields.id),
        ("method", fields.method),
        ("params", fields.params),
        ("result", fields.result),
        ("error", fields.error),
    ];
    for (key, raw) in seen {
        match (raw, value.get(key)) {
            (None, None) => {}
            (Some(raw), Some(value)) => agree(raw, value)?,
            _ => return Err(format!("`{key}` is seen by one reader only")),
        }
    }
    Ok(())
}

/// Whether our parser and `serde_json` agree on the text, at every depth.
fn agree(raw: &str, value: &Value) -> Result<(), String> {
    let differ = || Err(format!("{raw} is read as {value} by others"));
    match value {
        Value::Object(members) => {
            let Some(object) = Object::new(raw) else { return differ() };
            if object.members().count() != members.len() {
                return differ();
            }
            members.iter().try_for_each(|(key, value)| match object.get(key) {
                Some(raw) => agree(raw, value),
                None => Err(format!("`{key}` is not seen")),
            })
        }
        Value::Array(values) => {
            let held = format!("{{\"held\":{raw}}}");
            let elements =
                Object::new(&held).and_then(|object| object.array("held").ok().flatten());
            match elements {
                Some(elements) if elements.len() == values.len() => {
                    elements.iter().zip(values).try_for_each(|(raw, value)| agree(raw, value))
                }
                _ => differ(),
            }
        }
        Value::String(text) if unquote(raw).as_deref() != Some(text) => differ(),
        Value::String(_) => Ok(()),
        scalar => match serde_json::from_str::<Value>(raw) {
            Ok(read) if read == *scalar => Ok(()),
            _ => differ(),
        },
    }
}

/// The example as a client request with its method, if it is one or the params of one.
fn as_request(example: &Example) -> Option<(String, Value)> {
    let value = &example.value;
    if let Some((_, method)) = PARAMS.iter().find(|(name, _)| *name == example.definition) {
        return Some(((*method).to_owned(), request(method, value.clone())));
    }
    let method = value["method"].as_str().filter(|_| example.definition.ends_with("Request"))?;
    // Input requests are requests too, but clients send none.
    Method::from_name(method)?;
    let mut whole = request(method, value.get("params").cloned().unwrap_or_else(|| json!({})));
    whole["id"] = value.get("id").cloned().unwrap_or_else(|| json!(1));
    Some((method.to_owned(), whole))
}

/// A request with the members that every request must have, unless the params contain them.
fn request(method: &str, mut params: Value) -> Value {
    for (key, value) in [
        (meta::PROTOCOL_VERSION, json!(newest().rules().name)),
        (meta::CLIENT_CAPABILITIES, json!({})),
    ] {
        if params["_meta"].get(key).is_none() {
            params["_meta"][key] = value;
        }
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn understood(method: &str, request: &Value) -> Result<(), String> {
    let call = started(request)?;
    if call.operation.method() != method {
        return Err(format!("understood as {}", call.operation.method()));
    }
    let params = &request["params"];
    let target = params.get("name").or_else(|| params.get("uri"));
    if let Some(target) = target.filter(|_| !call.operation.target().is_empty())
        && target != call.operation.target()
    {
        return Err(format!("understood to be about {}", call.operation.target()));
    }
    match carries(&call.operation, params) {
        true => Ok(()),
        false => Err(format!("not all of it is handed on: {:?}", call.operation)),
    }
}

/// Whether the operation contains the values of the params.
fn carries(operation: &Operation, params: &Value) -> bool {
    match operation {
        Operation::List(_, cursor) => cursor.as_deref() == params["cursor"].as_str(),
        Operation::Complete(request) => {
            let reference = match &request.reference {
                Reference::Prompt(name) => json!({"type": "ref/prompt", "name": name}),
                Reference::Resource(uri) => json!({"type": "ref/resource", "uri": uri}),
            };
            let argument = json!({"name": request.argument, "value": request.value});
            let settled = &params["context"]["arguments"];
            reference == params["ref"]
                && argument == params["argument"]
                && (json!(request.context) == *settled || settled.is_null())
        }
        Operation::Listen(filter) => {
            let expected = &params["notifications"];
            let uris = expected.get("resourceSubscriptions").cloned().unwrap_or_else(|| json!([]));
            filter.tools == (expected["toolsListChanged"] == true)
                && filter.prompts == (expected["promptsListChanged"] == true)
                && filter.resources == (expected["resourcesListChanged"] == true)
                && json!(filter.uris) == uris
                && filter.tasks.is_empty()
        }
        other => {
            let arguments = other.arguments().map(|raw| raw.decode::<Value>().unwrap());
            arguments.as_ref() == params.get("arguments")
        }
    }
}

/// The call that a request starts.
fn started(request: &Value) -> Result<Call, String> {
    let mut out = Outbox::default();
    machine().receive(request.to_string().as_bytes(), Duration::ZERO, &mut out);
    match out.next_action() {
        Some(Action::Start(call)) if out.bytes().is_empty() => Ok(call),
        other => Err(format!("{other:?}, {}", String::from_utf8_lossy(out.bytes()))),
    }
}

fn machine() -> Machine {
    Machine::new(Profile::new(builtin("spec").unwrap(), ServerLimits::default()).into())
}
