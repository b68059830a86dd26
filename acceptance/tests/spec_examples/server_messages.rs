//! Tests of our client with the official examples of servers' messages.

use std::sync::Arc;
use std::time::Duration;

use creole::proto::client::{
    CallKey, CallOptions, CallRequest, ClientEvent, ClientLimits, Machine, OpenMode, Outbox,
    Profile,
};
use creole::proto::dialect::builtin;
use creole::proto::fault::FaultKind;
use creole::proto::model::{
    ClientCapabilities, CompletionRequest, Definition, Level, ListKind, Reference,
};
use creole::proto::operation::{Operation, Outcome, Payload, SubscriptionFilter};
use creole::proto::revision::Revision;
use creole::proto::wire::Raw;
use serde_json::{Value, json};

use super::{Example, aloud, examples, fail_on, newest};

/// The fault kinds of the official errors.
const ERRORS: &[(&str, &[FaultKind])] = &[
    ("HeaderMismatchError", &[FaultKind::HeaderMismatch]),
    ("InternalError", &[FaultKind::Internal]),
    // Only the text says what is invalid: a tool, a cursor or a prompt.
    (
        "InvalidParamsError",
        &[FaultKind::InvalidParams, FaultKind::UnknownTool, FaultKind::UnknownPrompt],
    ),
    ("MethodNotFoundError", &[FaultKind::MethodNotFound]),
    ("MissingRequiredClientCapabilityError", &[FaultKind::MissingCapability]),
    ("ParseError", &[FaultKind::Internal]),
    ("UnsupportedProtocolVersionError", &[FaultKind::UnsupportedVersion]),
];

#[test]
fn every_official_example_of_server_messages_is_accepted() {
    let Some(examples) = examples() else { return };
    let mut heard = 0;
    let complaints = examples.iter().filter_map(|example| {
        let result = check_example(example)?;
        heard += 1;
        result.err().map(|reason| format!("{}: {reason}", example.name))
    });
    fail_on(complaints.collect());
    assert!(heard >= 50, "only {heard} examples are messages of a server");
    aloud(&format!("{heard} official examples of server messages are decoded"));
}

/// Whether a server's example is decoded. `None` for an example that is neither a server message nor an item.
fn check_example(example: &Example) -> Option<Result<(), String>> {
    let definition = example.definition.as_str();
    let item = match definition {
        "Tool" => Some(ListKind::Tools),
        "Resource" => Some(ListKind::Resources),
        _ => None,
    };
    if let Some(kind) = item {
        return Some(item_is_kept(kind, example));
    }
    if let Some((_, kinds)) = ERRORS.iter().find(|(name, _)| *name == definition) {
        return Some(error_is_read(kinds, example));
    }
    match definition {
        "InputRequiredResult" => return Some(need_is_read(&example.text)),
        "InputRequests" => {
            let result =
                format!(r#"{{"resultType":"input_required","inputRequests":{}}}"#, example.text);
            return Some(need_is_read(&result));
        }
        "ElicitRequest" | "CreateMessageRequest" | "ListRootsRequest" => {
            return Some(question_is_read(example));
        }
        _ => {}
    }
    if definition.ends_with("Notification") {
        return Some(notice_is_read(example));
    }
    let operation = operation(definition.trim_end_matches("Response"))?;
    let result = match definition.ends_with("Response") {
        true => example.value["result"].clone(),
        false => example.value.clone(),
    };
    Some(result_is_read(operation, &result.to_string()))
}

/// The operation whose result has this definition.
fn operation(result: &str) -> Option<Operation> {
    let complete = CompletionRequest {
        reference: Reference::Prompt("p".into()),
        argument: "a".into(),
        value: String::new(),
        context: [].into(),
    };
    Some(match result {
        "CallToolResult" => Operation::CallTool { name: "t".into(), arguments: None },
        "CompleteResult" => Operation::Complete(Box::new(complete)),
        "DiscoverResult" => Operation::Discover,
        "GetPromptResult" => Operation::GetPrompt { name: "p".into(), arguments: None },
        "ListPromptsResult" => Operation::List(ListKind::Prompts, None),
        "ListResourceTemplatesResult" => Operation::List(ListKind::Templates, None),
        "ListResourcesResult" => Operation::List(ListKind::Resources, None),
        "ListToolsResult" => Operation::List(ListKind::Tools, None),
        "ReadResourceResult" => Operation::ReadResource { uri: "test://a".into() },
        "SubscriptionsListenResult" => Operation::Listen(SubscriptionFilter::default()),
        _ => return None,
    })
}

/// A client in the middle of a call.
struct Listener {
    machine: Machine,
    out: Outbox,
    call: CallKey,
}

impl Listener {
    fn calls(operation: Operation) -> Self {
        Self::with_operation(OpenMode::Stateless { rules: newest().rules() }, operation)
    }

    fn with_operation(mode: OpenMode, operation: Operation) -> Self {
        let identity = Raw::from_value(&json!({"name": "listener", "version": "1"}));
        let dialect = builtin("spec").unwrap();
        let profile =
            Profile { dialect, identity, limits: ClientLimits::default(), extensions: Vec::new() };
        let mut machine = Machine::new(profile.into(), mode);
        let mut out = Outbox::default();
        let options = CallOptions {
            capabilities: everything(),
            log_level: Some(Level::Debug),
            progress: true,
            ..CallOptions::default()
        };
        let call = machine.request(&CallRequest { operation, options }, Duration::ZERO, &mut out);
        Self { machine, out, call }
    }

    fn receive(&mut self, text: &str) -> Option<ClientEvent> {
        self.machine.receive(text.as_bytes(), Some(self.call), Duration::ZERO, &mut self.out);
        self.out.next_event()
    }

    fn hears_result(&mut self, result: &str) -> Option<ClientEvent> {
        let id = self.call.0;
        self.receive(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
    }
}

fn everything() -> Arc<ClientCapabilities> {
    let (elicitation_form, elicitation_url, sampling, roots, tasks) =
        (true, true, true, true, true);
    let raw = None;
    Arc::new(ClientCapabilities { elicitation_form, elicitation_url, sampling, roots, tasks, raw })
}

fn result_is_read(operation: Operation, result: &str) -> Result<(), String> {
    let mut listener = Listener::calls(operation.clone());
    if matches!(operation, Operation::Listen(_)) {
        let id = listener.call.0;
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        let method = "notifications/subscriptions/acknowledged";
        let params = json!({"_meta": meta, "notifications": {}});
        listener
            .receive(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
        return match listener.hears_result(result) {
            Some(ClientEvent::ListenerEnded(_, None)) => Ok(()),
            other => Err(format!("{other:?}")),
        };
    }
    let payload = match listener.hears_result(result) {
        Some(ClientEvent::CallDone(_, Outcome::Complete(payload))) => payload,
        other => return Err(format!("{other:?}")),
    };
    let whole: Value = serde_json::from_str(result).unwrap();
    let is_kept = match (&payload, &operation) {
        (Payload::Relayed(relayed), _) => relayed.result().as_str() == result,
        (Payload::Page(page), Operation::List(kind, _)) => {
            let items = page.items.iter().map(|item| item.text(newest().rules()));
            let items: Vec<Value> = items.map(|item| serde_json::from_str(item).unwrap()).collect();
            json!(items) == whole[kind.member()]
                && page.next.as_deref() == whole["nextCursor"].as_str()
                && Some(page.cache.ttl_ms) == whole["ttlMs"].as_u64()
        }
        (Payload::Server(card), _) => {
            card.capabilities.tools == whole["capabilities"].get("tools").is_some()
                && card.instructions.as_deref() == whole["instructions"].as_str()
        }
        _ => false,
    };
    is_kept.then_some(()).ok_or_else(|| format!("not all of it is kept: {payload:?}"))
}

fn need_is_read(result: &str) -> Result<(), String> {
    let expected: Value = serde_json::from_str(result).unwrap();
    let questions = expected["inputRequests"].as_object().map_or(0, serde_json::Map::len);
    let mut listener = Listener::calls(operation("CallToolResult").unwrap());
    match listener.hears_result(result) {
        Some(ClientEvent::CallDone(
            _,
            Outcome::InputRequired { requests: input_requests, request_state: state },
        )) if input_requests.len() == questions
            && state.as_deref() == expected["requestState"].as_str() =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    }
}

fn error_is_read(kinds: &[FaultKind], example: &Example) -> Result<(), String> {
    let error = example.value.get("error").unwrap_or(&example.value);
    let mut listener = Listener::calls(operation("CallToolResult").unwrap());
    let id = listener.call.0;
    match listener.receive(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()) {
        Some(ClientEvent::CallDone(_, Outcome::Fail(fault)))
            if kinds.contains(&fault.kind)
                && error["message"] == fault.detail.as_str()
                && error.get("data").cloned()
                    == fault.data.as_ref().map(|data| data.decode().unwrap()) =>
        {
            Ok(())
        }
        other => Err(format!("{other:?}")),
    }
}

/// Earlier revisions send input requests as requests of the server.
fn question_is_read(example: &Example) -> Result<(), String> {
    let rules = Revision::V2025_11_25.rules();
    let mode = OpenMode::Handshake { proposed_rules: rules, capabilities: everything() };
    let mut listener = Listener::with_operation(mode, operation("CallToolResult").unwrap());
    let hello = listener.machine.open(Duration::ZERO, &mut listener.out).0;
    let result = json!({"protocolVersion": rules.name, "capabilities": {}});
    listener.receive(&json!({"jsonrpc": "2.0", "id": hello, "result": result}).to_string());
    let mut request = example.value.clone();
    (request["jsonrpc"], request["id"]) = (json!("2.0"), json!("q"));
    match listener.receive(&request.to_string()) {
        Some(ClientEvent::InputRequested { call, .. }) if call == Some(listener.call) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn notice_is_read(example: &Example) -> Result<(), String> {
    let listens = Operation::Listen(SubscriptionFilter::default());
    let is_call = ["ProgressNotification", "LoggingMessageNotification"];
    let operation = match is_call.contains(&example.definition.as_str()) {
        true => operation("CallToolResult").unwrap(),
        false => listens,
    };
    let mut listener = Listener::calls(operation);
    let id = json!(listener.call.0);
    // The examples contain other request ids.
    let mut notice = example.value.clone();
    let params = &mut notice["params"];
    for own in ["progressToken", "requestId"] {
        if params.get(own).is_some() {
            params[own] = id.clone();
        }
    }
    if example.definition != "SubscriptionsAcknowledgedNotification"
        && !is_call.contains(&example.definition.as_str())
    {
        let method = "notifications/subscriptions/acknowledged";
        let params =
            json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {}});
        listener
            .receive(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }
    notice["params"]["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    match listener.receive(&notice.to_string()) {
        Some(
            ClientEvent::CallEvent(..)
            | ClientEvent::Changed { listener: Some(_), .. }
            | ClientEvent::ListenerEnded(_, None)
            | ClientEvent::CallDone(_, Outcome::Complete(Payload::Listening(_))),
        ) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn item_is_kept(kind: ListKind, example: &Example) -> Result<(), String> {
    let item = Definition::from_upstream(kind, example.text.trim(), None).ok_or("it is no item")?;
    let text = item.text(newest().rules());
    (text == example.text.trim()).then_some(()).ok_or_else(|| format!("it is encoded as {text}"))
}
