//! Tests ten thousand calls that are parked at the same time. The upstream is in this process, and the clock is
//! simulated.

use std::sync::atomic::{AtomicUsize, Ordering};

use creole::client::Program;
use creole::internal::call::Origin;
use creole::proto::model::KeyedInputRequest;
use creole::proto::operation::{Caller, InputResponses, Operation, Payload};
use creole::proto::revision::Revision;
use creole::proto::server::{Call as Started, CallKey};
use creole::stream::MemoryConnection;
use creole::{Server, Service};
use creole_test_wait::delay;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::layers::testing::{SilentChannel, plain_caller};
use crate::upstream::connections::connector;
use crate::upstream::park::MAX_PARKED_PER_CALLER;

const CALLS: usize = 10_000;

/// The number of calls that start concurrently.
const AT_ONCE: usize = 500;

const PATIENCE: Duration = Duration::from_secs(30);

/// The messages that the servers of all connections received.
#[derive(Default)]
struct ReceivedCounts {
    asks: AtomicUsize,
    plain: AtomicUsize,
    cancels: AtomicUsize,
    open: AtomicUsize,
}

static HEARD: ReceivedCounts = ReceivedCounts {
    asks: AtomicUsize::new(0),
    plain: AtomicUsize::new(0),
    cancels: AtomicUsize::new(0),
    open: AtomicUsize::new(0),
};

/// A server that sends two input requests during the tool `ask`, and responds to `plain` immediately.
async fn serve(mut client: MemoryConnection) {
    HEARD.open.fetch_add(1, Ordering::Relaxed);
    let (mut rest, mut request, mut answers) = (Vec::new(), Value::Null, 0);
    while let Some(bytes) = client.receive().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            let output = match message["method"].as_str() {
                Some("tools/call") if message["params"]["name"] == "ask" => {
                    HEARD.asks.fetch_add(1, Ordering::Relaxed);
                    request = message["id"].clone();
                    answers = 0;
                    questions()
                }
                Some("tools/call") => {
                    HEARD.plain.fetch_add(1, Ordering::Relaxed);
                    answer(&message["id"], text("plain"))
                }
                Some(method) => match shown(method) {
                    Some(result) => answer(&message["id"], result),
                    None => continue,
                },
                None => {
                    answers += 1;
                    let is_cancelled = message["result"]["action"] == "cancel";
                    HEARD.cancels.fetch_add(usize::from(is_cancelled), Ordering::Relaxed);
                    if answers < 2 {
                        continue;
                    }
                    answer(&request, text("answered"))
                }
            };
            if client.send(output.as_bytes()).await.is_err() {
                break;
            }
        }
    }
    HEARD.open.fetch_sub(1, Ordering::Relaxed);
}

/// The response to requests other than calls.
fn shown(method: &str) -> Option<Value> {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    match method {
        "initialize" => Some(json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "crowded", "version": "1"},
        })),
        "tools/list" => Some(json!({"tools": [tool("ask"), tool("plain")]})),
        "ping" => Some(json!({})),
        _ => None,
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn answer(id: &Value, result: Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn questions() -> String {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"message": "Who?", "requestedSchema": schema});
    let question = |id: &str| {
        let method = "elicitation/create";
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    question("first") + &question("second")
}

/// Calls a tool as a caller that gets input requests as outcomes.
async fn call(
    service: &Service,
    who: usize,
    tool: &str,
    reentry: Option<InputResponses>,
) -> Outcome {
    let caller = Caller {
        capabilities: Arc::new(ClientCapabilities {
            elicitation_form: tool == "ask",
            ..ClientCapabilities::default()
        }),
        input_responses: reentry,
        ..plain_caller()
    };
    let operation = Operation::CallTool { name: tool.to_owned(), arguments: None };
    let started = Started { key: CallKey(1), operation, caller };
    let origin = Origin::sessionless(format!("caller {who}").as_str().into());
    service.start_call(started, Arc::new(SilentChannel), origin).0.await
}

#[track_caller]
fn asked(outcome: Outcome) -> (Vec<KeyedInputRequest>, String) {
    match outcome {
        Outcome::InputRequired { requests: input_requests, request_state: Some(state) } => {
            (input_requests, state)
        }
        other => panic!("no input request: {other:?}"),
    }
}

#[track_caller]
fn assert_said(outcome: &Outcome, text: &str) {
    let Outcome::Complete(Payload::Relayed(relayed)) = outcome else { panic!("{outcome:?}") };
    assert!(relayed.result().as_str().contains(text), "{outcome:?}");
}

/// Asserts that a call without input requests reaches the server once and waits for nothing.
async fn assert_plain_is_answered(service: &Service, who: usize) {
    let (started, heard) = (Instant::now(), HEARD.plain.load(Ordering::Relaxed));
    assert_said(&call(service, who, "plain", None).await, "plain");
    assert_eq!(HEARD.plain.load(Ordering::Relaxed), heard + 1);
    assert_eq!(started.elapsed(), Duration::ZERO, "the call waited");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_wait_in_a_gateway_that_runs_and_their_end_frees_everything() {
    connector::in_process::register("crowded", serve);
    let service = Server::new("gateway").start();
    let mut settings = UpstreamSettings::new(Address::Child(Program::new("crowded", "none")));
    settings.revisions =
        RevisionChoice::Revision(Revision::from_name("2025-06-18").unwrap().rules());
    (settings.input_timeout, settings.max_parked_calls, settings.max_sessions) =
        (PATIENCE, CALLS, 2 * CALLS);
    let upstream = Upstream::start(settings, &service.registry(), true);
    upstream.startup.wait_until_tried().await;
    assert_plain_is_answered(&service, 0).await;

    let mut states = Vec::new();
    for first in (0..CALLS).step_by(AT_ONCE) {
        let mut calls = tokio::task::JoinSet::new();
        for number in first..first + AT_ONCE {
            let service = service.clone();
            calls.spawn(async move {
                call(&service, number / MAX_PARKED_PER_CALLER, "ask", None).await
            });
        }
        for outcome in calls.join_all().await {
            let (input_requests, state) = asked(outcome);
            assert_eq!(input_requests.len(), 2);
            states.push((input_requests, state));
        }
    }
    assert_eq!(HEARD.asks.load(Ordering::Relaxed), CALLS);
    assert_eq!(upstream.forwarder.parked_calls.usage().0, CALLS);
    assert!(upstream.forwarder.parked_calls.usage().1 < 64 * 1024 * 1024);
    for who in 0..100 {
        assert_plain_is_answered(&service, who).await;
    }
    // A further call of another caller is refused, and no other call is evicted for it.
    let refused = call(&service, CALLS, "ask", None).await;
    assert!(matches!(&refused, Outcome::Fail(fault) if fault.kind == FaultKind::Busy));
    assert_eq!(upstream.forwarder.parked_calls.usage().0, CALLS);

    // No caller returns: all calls end, and the server receives the cancellations.
    let cancelled = HEARD.cancels.load(Ordering::Relaxed);
    delay(PATIENCE + Duration::from_secs(5)).await;
    assert_eq!(upstream.forwarder.parked_calls.usage(), (0, 0));
    assert!(upstream.forwarder.parked_calls.is_empty());
    assert_eq!(HEARD.cancels.load(Ordering::Relaxed) - cancelled, 2 * CALLS);
    assert_plain_is_answered(&service, 0).await;
    // Their connections close after an idle time, except the gateway's own.
    delay(Duration::from_secs(400)).await;
    assert_eq!(HEARD.open.load(Ordering::Relaxed), 1);
    // A caller that returns now gets the fault.
    let (_, state) = states.swap_remove(0);
    let reentry =
        Some(InputResponses { responses: Raw::parse("{}").ok(), request_state: Some(state) });
    let late = call(&service, 0, "ask", reentry).await;
    assert!(
        matches!(&late, Outcome::Fail(fault) if fault.kind == FaultKind::ToolFailed),
        "{late:?}"
    );
}
