//! Tests of servers built with the library, over an in-memory connection: both eras, middleware, input requests,
//! faults.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

#[path = "server/pages.rs"]
mod pages;
#[path = "server/telemetry.rs"]
mod telemetry;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use creole::input::{form, sample};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::KeyedInputRequest;
use creole::proto::operation::Operation;
use creole::proto::server::ServerLimits;
use creole::stream::{MemoryConnection, memory_pair};
use creole::{
    BoxFuture, Call, Context, Level, Middleware, Next, Outcome, Resource, Server, Service, Tool,
    ToolError,
};
use creole_test_wait::{delay, never_within};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// A number of milliseconds.
#[derive(Deserialize, JsonSchema)]
struct Wait {
    /// The duration.
    milliseconds: u64,
}

/// The client's end of a served connection.
struct MemoryClient {
    line: MemoryConnection,
    received: Vec<u8>,
}

impl MemoryClient {
    fn connect(service: &Service) -> Self {
        let (line, far) = memory_pair();
        let (source, sink) = far.split();
        let service = service.clone();
        tokio::spawn(async move { service.serve(source, sink).await });
        Self { line, received: Vec::new() }
    }

    async fn send(&mut self, message: Value) {
        self.line.send(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line).unwrap();
            }
            let bytes = self.line.receive().await.expect("the server is there");
            self.received.extend_from_slice(&bytes);
        }
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.send(message).await;
        self.receive().await
    }

    async fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let answer =
            self.ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        let response = answer.await;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        response
    }
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
}

/// The same call of the stateless era, with members added to its params.
fn modern(id: u64, tool: &str, more: &Value) -> Value {
    let mut message = call(id, tool, json!({}));
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}},
    });
    for (key, value) in more.as_object().unwrap() {
        message["params"][key] = value.clone();
    }
    message
}

async fn slow(wait: Wait) -> &'static str {
    delay(Duration::from_millis(wait.milliseconds)).await;
    "done"
}

async fn two_input_requests(_: Nothing, context: Context) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let name = context.elicit_with("name", form("Who?", &schema))?.text("name").unwrap_or_default();
    let result = context.sample("rhyme", sample(&format!("Rhyme on {name}"), 10))?;
    Ok(format!("{name}: {}", result.text()))
}

#[tokio::test]
async fn a_slow_tool_never_delays_a_ping() {
    let service = Server::new("t").tool(Tool::new("slow", "Waits", slow)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    client.send(call(1, "slow", json!({"milliseconds": 100}))).await;
    let pong = client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    assert_eq!(client.receive().await["id"], 1);
}

#[tokio::test]
async fn a_cancelled_call_gets_no_answer_and_its_work_stops() {
    let finished = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&finished);
    let count = move |wait: Wait| {
        let counter = Arc::clone(&counter);
        async move {
            delay(Duration::from_millis(wait.milliseconds)).await;
            counter.fetch_add(1, Ordering::Relaxed);
            "done"
        }
    };
    let service = Server::new("t").tool(Tool::new("slow", "Waits", count)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-06-18", json!({})).await;
    client.send(call(1, "slow", json!({"milliseconds": 50}))).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    client.send(cancel).await;
    let counted = || finished.load(Ordering::Relaxed) > 0;
    never_within(Duration::from_millis(100), "the cancelled work goes on", counted).await;
    let next = client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
    assert_eq!(next["id"], 2);
    assert_eq!(finished.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_panic_answers_its_own_call_and_nothing_else() {
    async fn broken(_: Nothing) -> String {
        panic!("secret place")
    }
    let service = Server::new("t").tool(Tool::new("broken", "Breaks", broken)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    let response = client.ask(call(1, "broken", json!({}))).await;
    assert_eq!(response["error"]["code"], -32603);
    assert!(!response.to_string().contains("secret"));
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await["id"], 2);
}

#[tokio::test]
async fn a_handler_sends_a_session_input_requests() {
    let service = Server::new("t").tool(Tool::new("ask", "Asks", two_input_requests)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({"elicitation": {}, "sampling": {}})).await;
    let first = client.ask(call(1, "ask", json!({}))).await;
    assert_eq!(first["method"], "elicitation/create");
    let response = json!({"action": "accept", "content": {"name": "Ada"}});
    let second = client.ask(json!({"jsonrpc": "2.0", "id": first["id"], "result": response})).await;
    assert_eq!(second["method"], "sampling/createMessage");
    assert_eq!(second["params"]["messages"][0]["content"]["text"], "Rhyme on Ada");
    let response =
        json!({"role": "assistant", "content": {"type": "text", "text": "Prada"}, "model": "m"});
    let result =
        client.ask(json!({"jsonrpc": "2.0", "id": second["id"], "result": response})).await;
    assert_eq!(result["result"]["content"][0]["text"], "Ada: Prada");
}

#[tokio::test]
async fn the_same_handler_ends_the_call_of_a_stateless_client_with_an_input_request() {
    let service = Server::new("t").tool(Tool::new("ask", "Asks", two_input_requests)).start();
    let mut client = MemoryClient::connect(&service);
    let first = client.ask(modern(1, "ask", &json!({}))).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    assert_eq!(first["result"]["inputRequests"]["name"]["method"], "elicitation/create");
    let responses = json!({"inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}},
        "requestState": first["result"]["requestState"]});
    let second = client.ask(modern(2, "ask", &responses)).await;
    assert_eq!(second["result"]["inputRequests"].as_object().unwrap().len(), 1);
    let responses = json!({"inputResponses": {"rhyme":
        {"role": "assistant", "content": [{"type": "text", "text": "Prada"}], "model": "m"}},
        "requestState": second["result"]["requestState"]});
    let result = client.ask(modern(3, "ask", &responses)).await;
    assert_eq!(result["result"]["content"][0]["text"], "Ada: Prada");
    assert_eq!(result["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_modified_request_state_is_refused_and_the_valid_one_still_works() {
    let service = Server::new("t")
        .tool(Tool::new("ask", "Asks", two_input_requests))
        .tool(Tool::new("other", "Asks too", two_input_requests))
        .start();
    let mut client = MemoryClient::connect(&service);
    let first = client.ask(modern(1, "ask", &json!({}))).await;
    let state = first["result"]["requestState"].as_str().unwrap().to_owned();
    let responses = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let with = |state: &str| json!({"inputResponses": responses, "requestState": state});
    let mut changed = state.clone().into_bytes();
    let last = changed.len() - 1;
    changed[last] = if changed[last] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    for (id, tool, state) in [(2, "ask", changed.as_str()), (3, "other", &state), (4, "ask", "x")] {
        let refused = client.ask(modern(id, tool, &with(state))).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(refused["error"]["data"]["reason"], "state_invalid");
    }
    let honest = client.ask(modern(5, "ask", &with(&state))).await;
    assert_eq!(honest["result"]["resultType"], "input_required");
}

#[tokio::test]
async fn a_client_without_the_capability_gets_an_error_that_names_it() {
    let service = Server::new("t").tool(Tool::new("ask", "Asks", two_input_requests)).start();
    let mut client = MemoryClient::connect(&service);
    let mut message = modern(1, "ask", &json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let response = client.ask(message).await;
    assert_eq!(response["error"]["code"], -32021);
    assert_eq!(
        response["error"]["data"]["requiredCapabilities"],
        json!({"elicitation": {"form": {}}})
    );
    client.initialize("2025-06-18", json!({})).await;
    let response = client.ask(call(2, "ask", json!({}))).await;
    assert_eq!(response["result"]["isError"], true);
}

#[tokio::test]
async fn a_declined_input_request_fails_the_call_without_an_invented_response() {
    let service = Server::new("t").tool(Tool::new("ask", "Asks", two_input_requests)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({"elicitation": {}})).await;
    let request = client.ask(call(1, "ask", json!({}))).await;
    let refusal =
        json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -1, "message": "No."}});
    let response = client.ask(refusal).await;
    assert_eq!(response["result"]["isError"], true);
    assert_eq!(response["result"]["content"][0]["text"], "Input refused: No.");
}

#[tokio::test]
async fn concurrent_input_requests_are_sent_together() {
    async fn both(_: Nothing, context: Context) -> Result<String, ToolError> {
        let input_request = form("?", &json!({"type": "object", "properties": {}}));
        let ask =
            |key: &str| KeyedInputRequest { key: key.to_owned(), question: input_request.clone() };
        context.request_inputs(vec![ask("a"), ask("b")])?;
        Ok("thanks".to_owned())
    }
    let service = Server::new("t").tool(Tool::new("both", "Asks", both)).start();
    let mut client = MemoryClient::connect(&service);
    let first = client.ask(modern(1, "both", &json!({}))).await;
    assert_eq!(first["result"]["inputRequests"].as_object().unwrap().len(), 2);
    let partly = json!({"inputResponses": {"a": {"action": "decline"}},
        "requestState": first["result"]["requestState"]});
    let second = client.ask(modern(2, "both", &partly)).await;
    assert_eq!(
        second["result"]["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["b"]
    );
}

/// Records its name before and after a call, and may reject the call.
struct RecordingLayer(&'static str, Arc<std::sync::Mutex<Vec<String>>>);

impl Middleware for RecordingLayer {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            self.1.lock().unwrap().push(format!("{} in", self.0));
            if let Operation::CallTool { name, .. } = &call.operation
                && name == "forbidden"
            {
                return Fault::new(FaultKind::UnknownTool, "").with_subject(name).into();
            }
            let outcome = next.call(call).await;
            self.1.lock().unwrap().push(format!("{} out", self.0));
            outcome
        })
    }
}

#[tokio::test]
async fn layers_nest_like_an_onion_and_may_refuse() {
    let notes = Arc::default();
    let service = Server::new("t")
        .tool(Tool::new("slow", "Waits", slow))
        .with(RecordingLayer("outer", Arc::clone(&notes)))
        .with(RecordingLayer("inner", Arc::clone(&notes)))
        .start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    notes.lock().unwrap().clear();
    client.ask(call(1, "slow", json!({"milliseconds": 0}))).await;
    assert_eq!(*notes.lock().unwrap(), ["outer in", "inner in", "inner out", "outer out"]);
    let refused = client.ask(call(2, "forbidden", json!({}))).await;
    assert_eq!(refused["error"]["message"], "Unknown tool: forbidden");
}

#[tokio::test]
async fn progress_and_log_messages_are_sent_before_the_response_of_their_call() {
    async fn talk(_: Nothing, context: Context) -> &'static str {
        context.progress(1.0, Some(2.0), Some("half")).await;
        context.progress(1.0, Some(2.0), Some("again")).await;
        context.log(Level::Debug, None, &"hidden").await;
        context.log(Level::Error, Some("talk"), &json!({"a": 1})).await;
        "done"
    }
    let service = Server::new("t").tool(Tool::new("talk", "Talks", talk)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    let mut message = call(1, "talk", json!({}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    let progress = client.ask(message).await;
    assert_eq!(
        progress["params"],
        json!({"progressToken": "p", "progress": 1, "total": 2, "message": "half"})
    );
    let log = client.receive().await;
    assert_eq!(log["params"], json!({"level": "error", "logger": "talk", "data": {"a": 1}}));
    assert_eq!(client.receive().await["id"], 1);
}

#[tokio::test]
async fn a_list_that_changes_is_announced_to_sessions_and_listeners() {
    let service = Server::new("t").tool(Tool::new("slow", "Waits", slow)).start();
    let mut session = MemoryClient::connect(&service);
    let mut listener = MemoryClient::connect(&service);
    session.initialize("2025-11-25", json!({})).await;
    let mut listen = modern(7, "", &json!({"notifications": {"toolsListChanged": true}}));
    listen["method"] = json!("subscriptions/listen");
    let acknowledged = listener.ask(listen).await;
    assert_eq!(acknowledged["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(session.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await["id"], 1);
    service.registry().add_tool(Tool::new("new", "Waits", slow));
    assert_eq!(session.receive().await["method"], "notifications/tools/list_changed");
    let message = listener.receive().await;
    assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    // The subscription does not include resources.
    service.registry().add_resource(Resource::text("a://b", "b", "text/plain", "b"));
    service.registry().remove_tool("new");
    assert_eq!(listener.receive().await["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_answered_and_stopped() {
    let service = Server::new("t").tool(Tool::new("slow", "Waits", slow)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    let response = client.ask(call(1, "slow", json!({"milliseconds": 100_000}))).await;
    assert_eq!(response["error"]["code"], -32603);
    assert_eq!(response["error"]["data"], json!({"reason": "timeout"}));
}

#[tokio::test]
async fn more_calls_than_allowed_are_refused_and_the_others_go_on() {
    let limits = ServerLimits { max_calls: 2, ..ServerLimits::default() };
    let service = Server::new("t").limits(limits).tool(Tool::new("slow", "Waits", slow)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    for id in 1..=3 {
        client.send(call(id, "slow", json!({"milliseconds": 30}))).await;
    }
    let refused = client.receive().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32603)));
    assert!(client.receive().await["result"].is_object());
    assert!(client.receive().await["result"].is_object());
}

#[tokio::test]
async fn arguments_that_the_schema_refuses_never_reach_the_tool() {
    let service = Server::new("t").tool(Tool::new("slow", "Waits", slow)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-06-18", json!({})).await;
    let refused = client.ask(call(1, "slow", json!({"milliseconds": "soon"}))).await;
    assert_eq!(refused["error"]["code"], -32602);
    client.initialize("2025-11-25", json!({})).await;
    let refused = client.ask(call(2, "slow", json!({}))).await;
    assert_eq!(refused["result"]["isError"], true);
}

#[tokio::test]
async fn a_client_that_is_always_a_little_behind_gets_every_answer_in_order() {
    let service = Server::new("t").tool(Tool::new("slow", "Waits", slow)).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    let (mut sent, mut received) = (0, 0);
    while received < 20_000 {
        // A window of two thousand requests keeps both directions busy.
        while sent < 20_000 && sent < received + 2_000 {
            let ping =
                |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string() + "\n";
            let lines: String = (sent..sent + 100).map(ping).collect();
            client.line.send(lines.as_bytes()).await.unwrap();
            sent += 100;
        }
        for _ in 0..100 {
            assert_eq!(client.receive().await["id"], received);
            received += 1;
        }
    }
}

#[tokio::test]
async fn a_successor_answers_what_comes_and_the_rest_ends_where_it_began() {
    let service = Server::new("t")
        .tool(Tool::new("slow", "Waits", slow))
        .tool(Tool::new("old", "Waits", slow))
        .start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    client.send(call(1, "old", json!({"milliseconds": 200}))).await;
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await["id"], 2);

    let successor = Server::new("t")
        .tool(Tool::new("slow", "Waits", slow))
        .tool(Tool::new("new", "Waits", slow))
        .resource(Resource::text("a://b", "b", "text/plain", "b"))
        .prepare_replacement(&service);
    // Changes of a replacement that is not swapped in yet cause no notification.
    successor.registry().add_tool(Tool::new("later", "Waits", slow));
    assert_eq!(client.ask(call(3, "new", json!({"milliseconds": 0}))).await["id"], 3);
    let before = successor.swap();
    assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
    assert_eq!(client.receive().await["method"], "notifications/resources/list_changed");

    let response = client.ask(call(4, "new", json!({"milliseconds": 0}))).await;
    assert_eq!(response["result"]["isError"], Value::Null, "{response}");
    assert_eq!(client.ask(call(5, "old", json!({}))).await["error"]["code"], -32602);
    let last = client.receive().await;
    assert_eq!((&last["id"], &last["result"]["isError"]), (&json!(1), &Value::Null), "{last}");
    before.wait_until_drained().await;
    // The replacement announces its changes.
    service.registry().remove_tool("later");
    assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_successor_with_the_same_lists_is_not_noticed() {
    let server = || Server::new("t").tool(Tool::new("slow", "Waits", slow));
    let service = server().start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await["id"], 1);
    let before = server().prepare_replacement(&service).swap();
    assert_eq!(before.changed_lists(), []);
    assert_eq!(client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await["id"], 2);
    before.wait_until_drained().await;
}
