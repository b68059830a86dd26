//! Tests of the records of forwarded calls, with upstreams of both eras in this process.

use std::sync::Mutex;

use creole::client::Program;
use creole::input::form;
use creole::internal::call::{ClientChannel, Origin};
use creole::internal::telemetry::{
    CallOutcome, CallRecord, CallStart, Detail, ErrorType, FrameDirection, ParkedEnd, RecordReader,
    Step, StepKind, Telemetry, Translation, Transport, Via,
};
use creole::proto::model::InputRequest;
use creole::proto::operation::{Caller, Event, InputResponses, Operation};
use creole::proto::revision::{Era, Revision, Rules};
use creole::proto::server::{Call as Started, CallKey, InputResponse};
use creole::proto::wire::Raw;
use creole::stream::MemoryConnection;
use creole::{Context as CallContext, Server, Service, Tool, ToolError, ToolResult};
use creole_test_wait::delay;
use serde_json::json;

use super::*;
use crate::layers::testing::plain_caller;
use crate::upstream::connections::connector;

/// How long a parked call waits for its client.
const INPUT_TIMEOUT: Duration = Duration::from_secs(30);

/// Collects the records of ended calls.
#[derive(Default)]
struct GatewayRecords(Mutex<Vec<Arc<CallRecord>>>);

impl GatewayRecords {
    /// Removes the records of the calls of a server.
    fn take_calls(&self) -> Vec<Arc<CallRecord>> {
        let mut records = std::mem::take(&mut *self.0.lock().unwrap());
        records.retain(|record| record.via != Via::Gateway);
        records
    }
}

impl RecordReader for GatewayRecords {
    fn wants(&self, _: &CallStart<'_>) -> Detail {
        Detail::Frames
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        self.0.lock().unwrap().push(Arc::clone(record));
    }

    fn reads_frames(&self) -> bool {
        true
    }
}

async fn ask_twice(context: CallContext) -> Result<String, ToolError> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let first = context.elicit_with("first", form("Who?", &schema))?;
    let second = context.elicit_with("second", form("Who else?", &schema))?;
    let name = |answer: &creole::input::ElicitResult| answer.text("name").unwrap_or_default();
    Ok(format!("{} and {}", name(&first), name(&second)))
}

/// A server with a tool that returns at once, one that fails, and one that asks twice.
async fn serve(client: MemoryConnection) {
    let (source, sink) = client.split();
    let server = Server::new("inner")
        .tool(Tool::new("plain", "Returns", async || "plain"))
        .tool(Tool::new("fail", "Fails", async || Err::<String, _>(ToolError::failed("no"))))
        .tool(Tool::new("ask", "Asks twice", ask_twice));
    _ = server.start().serve(source, sink).await;
}

/// A client that answers every inline input request.
struct Answers;

impl ClientChannel for Answers {
    fn send_event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request_input(
        &self,
        _: CallKey,
        _: InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        let answer = json!({"action": "accept", "content": {"name": "Ann"}});
        Box::pin(std::future::ready(Ok(Raw::from_value(&answer))))
    }
}

fn rules(revision: &str) -> &'static Rules {
    Revision::from_name(revision).unwrap().rules()
}

struct Gateway {
    service: Service,
    upstream: Arc<Upstream>,
    collector: Arc<GatewayRecords>,
    _guard: creole::internal::telemetry::ReaderGuard,
}

/// A gateway to an upstream of this revision.
async fn gateway(name: &str, revision: &str) -> Gateway {
    connector::in_process::register(name, serve);
    let (telemetry, collector) = (Telemetry::default(), Arc::new(GatewayRecords::default()));
    let guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let service = Server::new("gateway").telemetry(telemetry.clone()).start();
    let mut settings = UpstreamSettings::new(Address::Child(Program::new(name, "none")));
    settings.revisions = RevisionChoice::Revision(rules(revision));
    settings.telemetry = telemetry;
    settings.input_timeout = INPUT_TIMEOUT;
    let upstream = Upstream::start(settings, &service.registry(), true);
    upstream.startup.wait_until_tried().await;
    Gateway { service, upstream, collector, _guard: guard }
}

impl Gateway {
    async fn call(&self, revision: &str, tool: &str, responses: Option<InputResponses>) -> Outcome {
        let capabilities =
            ClientCapabilities { elicitation_form: tool == "ask", ..Default::default() };
        let caller = Caller {
            rules: rules(revision),
            capabilities: Arc::new(capabilities),
            input_responses: responses,
            ..plain_caller()
        };
        let operation = Operation::CallTool { name: tool.to_owned(), arguments: None };
        let started = Started { key: CallKey(1), operation, caller };
        let origin = Origin::sessionless("ann".into());
        self.service.start_call(started, Arc::new(Answers), origin).0.await
    }

    fn only_record(&self) -> Arc<CallRecord> {
        let mut records = self.collector.take_calls();
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

/// The requests to upstreams in a record.
fn requests(record: &CallRecord) -> Vec<(Step, Translation, Era)> {
    let request = |step: Step| match &step.kind {
        StepKind::UpstreamRequest { translation, rules, .. } => {
            let (translation, era) = (*translation, rules.era);
            Some((step, translation, era))
        }
        _ => None,
    };
    record.steps().into_iter().filter_map(request).collect()
}

#[tokio::test]
async fn a_forwarded_call_has_a_step_with_the_upstream_and_the_translation() {
    let cases = [
        ("2025-11-25", "2025-11-25", Translation::None),
        ("2026-07-28", "2025-11-25", Translation::Lowered),
        ("2025-11-25", "2026-07-28", Translation::Raised),
        ("2026-07-28", "2026-07-28", Translation::None),
    ];
    for (number, (caller, upstream, expected)) in cases.into_iter().enumerate() {
        let gateway = gateway(&format!("records-{number}"), upstream).await;
        let outcome = gateway.call(caller, "plain", None).await;
        assert!(matches!(outcome, Outcome::Complete(_)), "{outcome:?}");
        let record = gateway.only_record();
        assert_eq!(record.end().unwrap().outcome, CallOutcome::Success);
        let [(step, translation, era)] = &requests(&record)[..] else { panic!("{record:?}") };
        assert_eq!((*translation, *era), (expected, rules(upstream).era), "{caller} {upstream}");
        assert!(step.is_ended && step.error.is_none());
        let StepKind::UpstreamRequest { upstream, method, target, transport, code, .. } =
            &step.kind
        else {
            panic!("{step:?}")
        };
        assert_eq!(&**upstream, format!("records-{number}"));
        assert_eq!((*method, &**target, *code), ("tools/call", "plain", None));
        assert_eq!(*transport, Transport::Pipe);
    }
}

#[tokio::test]
async fn the_messages_to_and_from_an_upstream_are_kept() {
    let gateway = gateway("records-frames", "2025-11-25").await;
    gateway.call("2026-07-28", "plain", None).await;
    let record = gateway.only_record();
    let (step, _, _) = &requests(&record)[0];
    let frames = record.frames();
    let directions: Vec<_> = frames.iter().map(|frame| (frame.direction, frame.step)).collect();
    let expected = [FrameDirection::UpstreamOut, FrameDirection::UpstreamIn];
    assert_eq!(directions, expected.map(|direction| (direction, Some(step.index))));
    assert!(frames[0].text.contains("tools/call"), "{}", frames[0].text);
    assert!(frames[1].text.contains("\"text\":\"plain\""), "{}", frames[1].text);
}

#[tokio::test]
async fn a_failed_tool_and_an_error_of_an_upstream_are_errors_of_the_step() {
    let gateway = gateway("records-errors", "2025-11-25").await;
    gateway.call("2025-11-25", "fail", None).await;
    let record = gateway.only_record();
    assert_eq!(record.end().unwrap().outcome, CallOutcome::ToolError);
    assert_eq!(requests(&record)[0].0.error, Some(ErrorType::ToolError));
    let read = Operation::ReadResource { uri: "file:///absent".to_owned() };
    let caller = Caller { rules: rules("2025-11-25"), ..plain_caller() };
    let call = Call { context: context_of(&gateway, caller).await, operation: read };
    let outcome = gateway.upstream.forwarder.answer_call(&call).await;
    let Outcome::Fail(fault) = outcome else { panic!("{outcome:?}") };
    let steps = requests(call.context.record().unwrap());
    let StepKind::UpstreamRequest { code, .. } = &steps[0].0.kind else { panic!() };
    assert_eq!(*code, fault.foreign_code);
    assert_eq!(steps[0].0.error, fault.foreign_code.map(ErrorType::Code));
    assert!(code.is_some());
}

/// The context of a recorded call.
async fn context_of(gateway: &Gateway, caller: Caller) -> CallContext {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let sender = Mutex::new(Some(sender));
    let tool =
        Tool::raw("lend", "Lends its context", Raw::from_value(&json!({"type": "object"})), {
            move |_, context: CallContext| -> BoxFuture<'static, Result<ToolResult, ToolError>> {
                if let Some(sender) = sender.lock().unwrap().take() {
                    _ = sender.send(context);
                }
                Box::pin(std::future::pending())
            }
        });
    gateway.service.registry().add_tool(tool);
    let operation = Operation::CallTool { name: "lend".to_owned(), arguments: None };
    let started = Started { key: CallKey(1), operation, caller };
    let origin = Origin::sessionless("ann".into());
    tokio::spawn(gateway.service.start_call(started, Arc::new(Answers), origin).0);
    receiver.await.unwrap()
}

#[tokio::test]
async fn a_call_that_asks_its_client_in_between_is_driven() {
    let gateway = gateway("records-driven", "2026-07-28").await;
    let outcome = gateway.call("2025-11-25", "ask", None).await;
    assert!(matches!(outcome, Outcome::Complete(_)), "{outcome:?}");
    let record = gateway.only_record();
    let translations: Vec<_> = requests(&record).iter().map(|(_, how, _)| *how).collect();
    assert_eq!(translations, [Translation::Raised, Translation::Driven, Translation::Driven]);
    let rounds: Vec<_> = record
        .steps()
        .iter()
        .filter_map(|step| match step.kind {
            StepKind::InputRequest { kind, round } => Some((kind, round)),
            _ => None,
        })
        .collect();
    assert_eq!(rounds, [("elicitation/create", 1), ("elicitation/create", 2)]);
}

#[tokio::test]
async fn each_round_of_a_parked_call_has_its_own_record() {
    let gateway = gateway("records-parked", "2025-11-25").await;
    let (mut responses, mut earlier) = (None, None);
    for round in 1..=3 {
        let outcome = gateway.call("2026-07-28", "ask", responses.take()).await;
        let record = gateway.only_record();
        assert_eq!(record.round(), round);
        assert_eq!(record.continues().map(|call| call.id), earlier);
        earlier = Some(record.id);
        let [(step, translation, era)] = &requests(&record)[..] else { panic!("{record:?}") };
        assert_eq!((*translation, *era), (Translation::Parked, Era::Handshake));
        assert!(step.is_ended && step.error.is_none());
        let parked: Vec<_> = record
            .steps()
            .into_iter()
            .filter_map(|step| match step.kind {
                StepKind::Parked { end } => Some(end),
                _ => None,
            })
            .collect();
        match round {
            1 => assert!(parked.is_empty()),
            _ => assert_eq!(parked, [ParkedEnd::Resumed]),
        }
        match outcome {
            Outcome::InputRequired { requests, request_state } => {
                let answer = json!({"action": "accept", "content": {"name": "Ann"}});
                let answers = json!({requests[0].key.clone(): answer});
                let given = Some(Raw::from_value(&answers));
                responses = Some(InputResponses { responses: given, request_state });
            }
            Outcome::Complete(_) => {
                assert_eq!(round, 3);
                let frames = record.frames();
                assert!(frames.last().unwrap().text.contains("Ann and Ann"), "{frames:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(responses.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_that_nobody_returns_for_is_recorded_as_expired() {
    let gateway = gateway("records-expired", "2025-11-25").await;
    gateway.call("2026-07-28", "ask", None).await;
    let first = gateway.only_record();
    delay(INPUT_TIMEOUT + Duration::from_secs(5)).await;
    let records = std::mem::take(&mut *gateway.collector.0.lock().unwrap());
    let is_expired =
        |step: &Step| matches!(step.kind, StepKind::Parked { end: ParkedEnd::Expired });
    let expired = records.iter().find(|record| record.steps().iter().any(is_expired));
    let expired = expired.expect("the end of the waiting is recorded");
    assert_eq!(expired.via, Via::Gateway);
    assert_eq!(expired.continues().map(|call| call.id), Some(first.id));
}

#[tokio::test]
async fn the_gateway_records_its_own_work() {
    let gateway = gateway("records-work", "2025-11-25").await;
    let records = std::mem::take(&mut *gateway.collector.0.lock().unwrap());
    assert!(records.iter().all(|record| record.via == Via::Gateway && record.server.is_empty()));
    let start = records.iter().find(|record| record.method == "upstream/start").unwrap();
    assert!(matches!(start.steps()[0].kind, StepKind::UpstreamStart { attempt: 1, .. }));
    assert_eq!(start.end().unwrap().outcome, CallOutcome::Success);
    let tools = records.iter().find(|record| record.method == "tools/list").unwrap();
    assert_eq!(&*tools.target, "records-work");
    assert_eq!(requests(tools).len(), 1);
}

#[tokio::test]
async fn a_redaction_is_a_change_and_its_patterns_apply_to_the_messages() {
    use creole::internal::telemetry::Decision;

    use crate::layers::{Redact, RedactScope, Redactor};

    let (telemetry, records) = (Telemetry::default(), Arc::new(GatewayRecords::default()));
    let _guard = telemetry.subscribe(Arc::clone(&records) as _);
    let redactor = Redactor::new(&["secret".to_owned()], &[], "***").unwrap();
    let service = Server::new("keeper")
        .tool(Tool::new("tell", "Tells a secret", async || "a secret"))
        .tool(Tool::new("greet", "Greets", async || "hello"))
        .with(Redact::new(redactor, RedactScope::Both))
        .telemetry(telemetry)
        .start();
    for (tool, expected) in [("tell", Decision::Changed), ("greet", Decision::Passed)] {
        crate::layers::testing::call(&service, "ann", tool, "{}").await;
        let record = records.take_calls().remove(0);
        let steps = record.steps();
        let StepKind::Layer { kind, decision, .. } = &steps[0].kind else { panic!("{steps:?}") };
        assert_eq!((*kind, *decision), ("redact", expected));
        let redact = record.redactor().expect("the server redacts");
        assert_eq!(redact(r#"{"text":"a secret"}"#), r#"{"text":"a ***"}"#);
    }
}
