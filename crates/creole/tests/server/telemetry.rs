//! Tests of the records of calls.

#[path = "telemetry/collector.rs"]
mod collector;
#[path = "telemetry/late.rs"]
mod late;
#[path = "telemetry/rounds.rs"]
mod rounds;

use creole::ToolResult;
use creole::internal::telemetry::{
    CallOutcome, CallRecord, CallStart, Decision, Detail, FrameDirection, RecordReader, StepKind,
    Telemetry, Transport, Via,
};
use creole::proto::operation::Payload;
use creole::proto::revision::Era;
use tokio::sync::Notify;

use super::*;
use collector::EndedRecords;

fn outcome(record: &CallRecord) -> CallOutcome {
    record.end().expect("the call has ended").outcome
}

/// The kind, the decision and the attempts of each layer.
fn layers(record: &CallRecord) -> Vec<(&'static str, Decision, u16)> {
    let layer = |kind| match kind {
        StepKind::Layer { kind, decision, attempts, .. } => Some((kind, decision, attempts)),
        _ => None,
    };
    record.steps().into_iter().filter_map(|step| layer(step.kind)).collect()
}

fn greeter() -> Server {
    Server::new("greeter")
        .tool(Tool::new("greet", "Greets", |_: Nothing| async { "hello" }))
        .tool(Tool::new("fail", "Fails", |_: Nothing| async {
            Err::<String, _>(ToolError::failed("no"))
        }))
        .tool(Tool::new("panic", "Panics", |_: Nothing| async { panic!("a secret") as String }))
        .tool(Tool::new("slow", "Waits", slow))
}

async fn connect(telemetry: &Telemetry, server: Server) -> MemoryClient {
    let service = server.telemetry(telemetry.clone()).start();
    let mut client = MemoryClient::connect(&service);
    client.initialize("2025-11-25", json!({})).await;
    client
}

#[tokio::test]
async fn a_call_has_a_record_with_its_caller_and_its_outcome() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let mut client = connect(&telemetry, greeter()).await;
    client.ask(call(7, "greet", json!({}))).await;
    let record = collector.next("tools/call").await;
    assert_eq!((&*record.server, &*record.target), ("greeter", "greet"));
    assert_eq!(record.rules.era, Era::Handshake);
    assert_eq!(record.transport, Transport::Pipe);
    assert_eq!(record.request_id.as_deref(), Some("7"));
    assert_eq!((record.principal.id(), record.via), ("local", Via::Mcp));
    assert_eq!(record.client.as_ref().map(|client| client.name.as_str()), Some("test"));
    assert_eq!(outcome(&record), CallOutcome::Success);
    assert_eq!(record.id_text().len(), 32);
    let opening = collector.next("initialize").await;
    assert_eq!(outcome(&opening), CallOutcome::Success);
    assert_ne!(opening.id, record.id);
    assert!(collector.records().is_empty(), "a notification is no call");
    assert_eq!(collector.started.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn failures_of_tools_differ_from_faults() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Summary));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let mut client = connect(&telemetry, greeter()).await;
    let expected = [
        ("fail", json!({}), CallOutcome::ToolError),
        ("absent", json!({}), CallOutcome::Fault(FaultKind::UnknownTool, Some(-32602))),
        ("slow", json!({}), CallOutcome::Fault(FaultKind::InvalidArguments, None)),
        ("panic", json!({}), CallOutcome::Fault(FaultKind::ToolPanicked, Some(-32603))),
    ];
    for (id, (tool, arguments, expected)) in (1..).zip(expected) {
        client.ask(call(id, tool, arguments)).await;
        let record = collector.next("tools/call").await;
        assert_eq!((&*record.target, outcome(&record)), (tool, expected));
        assert!(record.steps().is_empty(), "nobody wants steps");
    }
}

#[tokio::test]
async fn a_panic_of_a_layer_ends_the_record() {
    fn broken(_: Call, _: Next<'_>) -> BoxFuture<'_, Outcome> {
        Box::pin(async { panic!("a layer panics") })
    }
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let service = greeter().with(broken).telemetry(telemetry.clone()).start();
    let mut client = MemoryClient::connect(&service);
    client.ask(modern(1, "greet", &json!({}))).await;
    let record = collector.next("tools/call").await;
    assert_eq!(outcome(&record), CallOutcome::Fault(FaultKind::Internal, Some(-32603)));
    assert!(record.steps().iter().all(|step| step.is_ended));
}

#[tokio::test]
async fn a_cancelled_call_ends_as_cancelled() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Frames));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let mut client = connect(&telemetry, greeter()).await;
    client.send(call(3, "slow", json!({"milliseconds": 600_000}))).await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 3}}))
        .await;
    assert_eq!(outcome(&*collector.next("tools/call").await), CallOutcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_ends_with_the_fault_that_its_client_gets() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Frames));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let limits =
        ServerLimits { call_total_timeout: Duration::from_secs(1), ..ServerLimits::default() };
    let waits = Tool::new("wait", "Waits", |_: Nothing| std::future::pending::<String>());
    let mut client = connect(&telemetry, greeter().tool(waits).limits(limits)).await;
    let response = client.ask(call(3, "wait", json!({}))).await;
    let record = collector.next("tools/call").await;
    let code = response["error"]["code"].as_i64();
    assert_eq!(outcome(&record), CallOutcome::Fault(FaultKind::Timeout, code));
    let frames = record.frames();
    assert_eq!(frames.last().unwrap().direction, FrameDirection::ClientOut);
    assert_eq!(serde_json::from_str::<Value>(&frames.last().unwrap().text).unwrap(), response);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_calls() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let started = Arc::new(Notify::new());
    let starts = Arc::clone(&started);
    let waits = Tool::new("wait", "Waits", move |_: Nothing| {
        starts.notify_one();
        std::future::pending::<String>()
    });
    let limits =
        ServerLimits { call_total_timeout: Duration::from_secs(1), ..ServerLimits::default() };
    let mut client = connect(&telemetry, greeter().tool(waits).limits(limits)).await;
    client.send(call(3, "wait", json!({}))).await;
    started.notified().await;
    drop(client);
    let record = collector.next("tools/call").await;
    assert_ne!(outcome(&record), CallOutcome::Success);
}

#[tokio::test]
async fn requests_without_a_call_have_records() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Summary));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let mut client = connect(&telemetry, greeter()).await;
    client.ask(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    let ping = collector.next("ping").await;
    assert_eq!(outcome(&ping), CallOutcome::Success);
    assert_eq!(ping.request_id.as_deref(), Some("\"p\""));
    client.ask(json!({"jsonrpc": "2.0", "id": 2, "method": "no/such"})).await;
    let unknown = collector.next("_OTHER").await;
    let expected = CallOutcome::Fault(FaultKind::MethodNotFound, Some(-32601));
    assert_eq!((outcome(&unknown), &*unknown.target), (expected, ""));
    client.ask(json!({"jsonrpc": "1.0", "id": 3, "method": "ping"})).await;
    let refused = collector.next("_OTHER").await;
    assert!(matches!(outcome(&refused), CallOutcome::Fault(FaultKind::InvalidRequest, _)));
    let bad = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": 1}});
    client.ask(bad).await;
    let bad = collector.next("tools/call").await;
    assert!(matches!(outcome(&bad), CallOutcome::Fault(FaultKind::InvalidParams, Some(-32602))));
}

/// Refuses, answers, repeats or changes the calls of some tools.
struct Judge;

impl Middleware for Judge {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let Operation::CallTool { name, .. } = &call.operation else {
                return next.call(call).await;
            };
            match name.as_str() {
                "refuse" => Fault::new(FaultKind::Busy, "not now").into(),
                "answer" => Outcome::Complete(Payload::Tool(ToolResult::text("mine"))),
                "fail" => {
                    next.call(call.clone()).await;
                    next.call(call).await
                }
                "slow" => {
                    next.call(call).await;
                    Fault::new(FaultKind::Timeout, "too slow").into()
                }
                "greet" => {
                    let context = call.context.clone();
                    let outcome = next.call(call).await;
                    context.record_change();
                    outcome
                }
                _ => next.call(call).await,
            }
        })
    }

    fn kind(&self) -> &'static str {
        "judge"
    }
}

#[tokio::test]
async fn layers_are_steps_with_their_decisions() {
    fn outer(call: Call, next: Next<'_>) -> BoxFuture<'_, Outcome> {
        next.call(call)
    }
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let mut client = connect(&telemetry, greeter().with(outer).with(Judge)).await;
    let expected = [
        ("panic", Decision::Passed, 1),
        ("refuse", Decision::Refused, 0),
        ("answer", Decision::Answered, 0),
        ("fail", Decision::Retried, 2),
        ("slow", Decision::Refused, 1),
        ("greet", Decision::Changed, 1),
    ];
    for (id, (tool, decision, attempts)) in (1..).zip(expected) {
        client.ask(call(id, tool, json!({"milliseconds": 1}))).await;
        let record = collector.next("tools/call").await;
        let steps = [("layer", Decision::Passed, 1), ("judge", decision, attempts)];
        assert_eq!(layers(&record), steps, "{tool}");
        let parents: Vec<_> = record.steps().iter().map(|step| step.parent).collect();
        assert_eq!(parents, [None, Some(0)], "{tool}");
        // The time of the rest of the chain is not its own.
        let passed = record.steps()[1].passed;
        assert_eq!(passed.is_zero(), attempts == 0, "{tool}");
        assert!(tool != "slow" || passed >= Duration::from_millis(1), "{passed:?}");
    }
}

#[tokio::test]
async fn messages_are_kept_only_for_a_reader_that_wants_them() {
    for detail in [Detail::Steps, Detail::Frames] {
        let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(detail));
        let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
        let mut client = connect(&telemetry, greeter()).await;
        let request = call(5, "greet", json!({}));
        let response = client.ask(request.clone()).await;
        let record = collector.next("tools/call").await;
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let frames: Vec<_> =
            record.frames().iter().map(|frame| (frame.direction, parse(&frame.text))).collect();
        let kept = [(FrameDirection::ClientIn, request), (FrameDirection::ClientOut, response)];
        match detail {
            Detail::Frames => assert_eq!(frames, kept),
            _ => assert!(frames.is_empty()),
        }
    }
}

#[tokio::test]
async fn no_record_exists_while_nobody_reads() {
    let telemetry = Telemetry::default();
    let recorded = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&recorded);
    let look = Tool::new("look", "Looks", move |_: Nothing, context: Context| {
        let found = usize::from(context.record().is_some());
        seen.fetch_add(found, Ordering::SeqCst);
        async { "looked" }
    });
    let mut client = connect(&telemetry, greeter().tool(look)).await;
    assert!(telemetry.modes().is_empty());
    client.ask(call(1, "look", json!({}))).await;
    telemetry.enable_metrics();
    client.ask(call(2, "look", json!({}))).await;
    assert_eq!(recorded.load(Ordering::SeqCst), 0, "metrics need no record");
    let collector = EndedRecords::new(Detail::None);
    let bored = telemetry.subscribe(Arc::clone(&collector) as _);
    client.ask(call(3, "look", json!({}))).await;
    assert_eq!(recorded.load(Ordering::SeqCst), 0, "the reader wants nothing");
    drop(bored);
    let reading = telemetry.subscribe(EndedRecords::new(Detail::Summary));
    client.ask(call(4, "look", json!({}))).await;
    assert_eq!(recorded.load(Ordering::SeqCst), 1);
    drop(reading);
    client.ask(call(5, "look", json!({}))).await;
    assert_eq!(recorded.load(Ordering::SeqCst), 1);
    assert!(collector.records().is_empty());
}

/// Wants only the calls of one tool.
struct OneTool(&'static str, Arc<EndedRecords>);

impl RecordReader for OneTool {
    fn wants(&self, start: &CallStart<'_>) -> Detail {
        if start.target == self.0 { Detail::Frames } else { Detail::None }
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        self.1.call_ended(record);
    }

    fn reads_frames(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn readers_get_only_the_calls_that_they_want() {
    let telemetry = Telemetry::default();
    let (all, one) = (EndedRecords::new(Detail::Steps), EndedRecords::new(Detail::Frames));
    let _all = telemetry.subscribe(Arc::clone(&all) as _);
    let _one = telemetry.subscribe(Arc::new(OneTool("greet", Arc::clone(&one))));
    let mut client = connect(&telemetry, greeter().with(Judge)).await;
    // Two calls at the same time: neither record has anything of the other one.
    client.send(call(1, "slow", json!({"milliseconds": 30}))).await;
    client.ask(call(2, "greet", json!({}))).await;
    client.receive().await;
    let greeted = one.next("tools/call").await;
    assert!(one.records().is_empty());
    assert!(greeted.frames().iter().all(|frame| frame.text.contains("\"id\":2")));
    assert_eq!(layers(&greeted), [("judge", Decision::Changed, 1)]);
    let slow = loop {
        let record = all.next("tools/call").await;
        if &*record.target == "slow" {
            break record;
        }
    };
    assert!(slow.frames().is_empty(), "nobody wants its messages");
    assert_eq!(layers(&slow), [("judge", Decision::Refused, 1)]);
}

/// Panics at every call.
struct Broken;

impl RecordReader for Broken {
    fn wants(&self, _: &CallStart<'_>) -> Detail {
        Detail::Frames
    }

    fn call_ended(&self, _: &Arc<CallRecord>) {
        panic!("a reader panics");
    }
}

#[tokio::test]
async fn a_reader_that_panics_fails_no_call() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Summary));
    let _broken = telemetry.subscribe(Arc::new(Broken));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let mut client = connect(&telemetry, greeter()).await;
    let response = client.ask(call(1, "greet", json!({}))).await;
    assert_eq!(response["result"]["content"][0]["text"], "hello");
    assert_eq!(outcome(&*collector.next("tools/call").await), CallOutcome::Success);
}

#[tokio::test]
async fn a_record_has_at_most_64_steps() {
    /// Calls the rest of the chain a hundred times.
    fn many(call: Call, next: Next<'_>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            for _ in 0..99 {
                next.call(call.clone()).await;
            }
            next.call(call).await
        })
    }
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let mut client = connect(&telemetry, greeter().with(many).with(Judge)).await;
    client.ask(call(1, "answer", json!({}))).await;
    let record = collector.next("tools/call").await;
    assert_eq!(record.steps().len(), 64);
    assert_eq!(layers(&record)[0], ("layer", Decision::Retried, 100));
}
