//! Properties of the client machine that hold for any order of calls, frames, cancellations and failures.

use core::time::Duration;
use std::collections::BTreeMap;

use creole_proto::client::{
    CallKey, CallOptions, CallRequest, ClientEvent, FrameKind, InputRequestError, InputRequestKey,
    Machine, Outbox,
};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{CompletionRequest, Level, ListKind, Reference, TaskPreference};
use creole_proto::operation::{Operation, Outcome, SubscriptionFilter};
use creole_proto::revision::{Era, Revision};
use creole_proto::wire::Raw;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::Value;

use super::pair::{MachinePair, client, everything, opening};
use super::plain::endpoint;

/// One step of a client.
#[derive(Clone, Debug)]
enum ClientStep {
    Open,
    Ask(Operation),
    Ping,
    Level,
    /// The server sends this; `#` stands for the id of one of the calls.
    Hear(String, usize, bool),
    Cancel(usize),
    Break(usize),
    Answer(usize, bool),
    Wait(u64),
    End,
}

const DIALECTS: &[&str] = &["spec", "bb-mcp-server", "mcp-chain", "bossman", "fpf-governance"];

const SERVER_MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":#,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":true},"serverInfo":{"name":"s","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"protocolVersion":"1.0","capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"protocolVersion":"2031-01-01","capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"content":[],"tools":[{"name":"a"},{}],"contents":[]}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}},"requestState":"s"}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","ttlMs":null}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"task":{"taskId":"t","status":"completed","ttl":1e30}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"taskId":"t","status":"failed","error":{"code":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":null}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{},"error":null}"#,
    r#"{"jsonrpc":"2.0","id":#,"result":{"a":1,"a":2}}"#,
    r#"{"id":#,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":#,"error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"]}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","message":"m","url":"https://a.example","elicitationId":"e"}]}}}"#,
    r#"{"jsonrpc":"2.0","id":#,"error":{"code":-1e300,"message":1}}"#,
    r#"{"jsonrpc":"2.0","id":#,"error":"no"}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
    r##"{"jsonrpc":"2.0","id":"#","result":{}}"##,
    r#"{"jsonrpc":"2.0","id":18446744073709551616,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":#,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}"#,
    r#"{"jsonrpc":"2.0","id":"q2","method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#,
    r#"{"jsonrpc":"2.0","id":3.5,"method":"sampling/createMessage","params":{"messages":[],"task":{}}}"#,
    r#"{"jsonrpc":"2.0","id":"q4","method":"elicitation/create","params":{"mode":"url"}}"#,
    r#"{"jsonrpc":"2.0","id":"q5","method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":#,"progress":1,"total":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":[1.0]}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":#},"notifications":{"toolsListChanged":true}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":#}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t","status":"working"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/unheard/of"}"#,
    r#"[{"jsonrpc":"2.0","id":#,"result":{}},1,{"jsonrpc":"2.0","id":"q6","method":"ping"}]"#,
    "[]",
    "7",
    "starting server...",
    "",
];

fn operation() -> impl Strategy<Value = Operation> {
    let name = || select(&["t", "fails", "lost", "\u{e4} \"\n"][..]).prop_map(String::from);
    let raw = || select(&["{}", r#"{"a":1.0, "b":"\u0061"}"#][..]);
    let object = move || raw().prop_map(|text| Raw::parse(text).unwrap());
    let kinds = [
        ListKind::Tools,
        ListKind::Resources,
        ListKind::Templates,
        ListKind::Prompts,
        ListKind::Skills,
    ];
    prop_oneof![
        Just(Operation::Discover),
        (select(kinds.to_vec()), any::<bool>())
            .prop_map(|(kind, more)| Operation::List(kind, more.then(|| "c".into()))),
        (name(), object())
            .prop_map(|(name, arguments)| Operation::CallTool { name, arguments: Some(arguments) }),
        name().prop_map(|name| Operation::CallTool { name, arguments: None }),
        name().prop_map(|uri| Operation::ReadResource { uri }),
        name().prop_map(|uri| Operation::ReadDirectory { uri, cursor: None }),
        name().prop_map(|uri| Operation::GetSkill { uri }),
        name().prop_map(|name| Operation::GetPrompt {
            name,
            arguments: Some(Raw::parse(r#"{"a":"b"}"#).unwrap())
        }),
        name().prop_map(|name| Operation::Complete(Box::new(CompletionRequest {
            reference: Reference::Prompt(name),
            argument: "a".into(),
            value: "v".into(),
            context: [("k".to_string(), "v".to_string())].into(),
        }))),
        name().prop_map(|uri| Operation::Subscribe { uri }),
        name().prop_map(|uri| Operation::Unsubscribe { uri }),
        name().prop_map(|uri| Operation::Listen(SubscriptionFilter {
            tools: true,
            uris: vec![uri],
            ..SubscriptionFilter::default()
        })),
        name().prop_map(|id| Operation::GetTask { id }),
        name().prop_map(|id| Operation::TaskResult { id }),
        Just(Operation::ListTasks(None)),
        (name(), object()).prop_map(|(id, _)| Operation::UpdateTask {
            id,
            responses: Raw::parse(r#"{"a":{}}"#).unwrap()
        }),
        name().prop_map(|id| Operation::CancelTask { id }),
    ]
}

fn step() -> impl Strategy<Value = ClientStep> {
    let place = || 0_usize..6;
    let said = select(SERVER_MESSAGES).prop_map(String::from);
    prop_oneof![
        1 => Just(ClientStep::Open),
        4 => operation().prop_map(ClientStep::Ask),
        1 => Just(ClientStep::Ping),
        1 => Just(ClientStep::Level),
        8 => (said, place(), any::<bool>()).prop_map(|(text, call, own)| ClientStep::Hear(text, call, own)),
        1 => ".{0,40}".prop_map(|text| ClientStep::Hear(text, 0, false)),
        1 => place().prop_map(ClientStep::Cancel),
        1 => place().prop_map(ClientStep::Break),
        2 => (place(), any::<bool>()).prop_map(|(index, willing)| ClientStep::Answer(index, willing)),
        1 => (0_u64..200).prop_map(ClientStep::Wait),
        1 => Just(ClientStep::End),
    ]
}

/// A client, with counts of the outstanding responses to its callers and to the server.
struct ClientAudit {
    machine: Machine,
    out: Outbox,
    now: Duration,
    calls: Vec<CallKey>,
    /// Per call: whether its outcome is still outstanding.
    owed: BTreeMap<CallKey, bool>,
    opening: Option<CallKey>,
    questions: Vec<InputRequestKey>,
    /// Responses that the server got beyond its requests.
    responses: i64,
    heard_requests: i64,
    ended: bool,
}

impl ClientAudit {
    fn new(dialect: &str, revision: Revision) -> Self {
        Self {
            machine: client(dialect, opening(revision)),
            out: Outbox::default(),
            now: Duration::ZERO,
            calls: Vec::new(),
            owed: BTreeMap::new(),
            opening: None,
            questions: Vec::new(),
            responses: 0,
            heard_requests: 0,
            ended: false,
        }
    }

    fn call(&self, index: usize) -> CallKey {
        self.calls.get(index).copied().unwrap_or(CallKey(index as u64))
    }

    fn began(&mut self, call: CallKey) {
        assert!(self.owed.insert(call, true).is_none(), "the key {call:?} was used twice");
        self.calls.insert(0, call);
    }

    fn take(&mut self, step: &ClientStep) {
        match step {
            ClientStep::Open if self.opening.is_none() && !self.ended => {
                let call = self.machine.open(self.now, &mut self.out);
                self.opening = Some(call);
                self.calls.insert(0, call);
            }
            ClientStep::Open => {}
            ClientStep::Ask(operation) => {
                let options = CallOptions {
                    capabilities: everything(),
                    log_level: Some(Level::Debug),
                    progress: true,
                    task_preference: TaskPreference::Requested { ttl_ms: Some(1) },
                    meta: Some(Raw::parse(r#"{"traceparent":"x","progressToken":1}"#).unwrap()),
                    ..CallOptions::default()
                };
                let request = CallRequest { operation: operation.clone(), options };
                let call = self.machine.request(&request, self.now, &mut self.out);
                self.began(call);
            }
            ClientStep::Ping => {
                let call = self.machine.ping(self.now, &mut self.out);
                self.began(call);
            }
            ClientStep::Level => {
                let call = self.machine.set_level(Level::Info, self.now, &mut self.out);
                self.began(call);
            }
            ClientStep::Hear(text, index, own) => self.receive(text, *index, *own),
            ClientStep::Cancel(index) => {
                let call = self.call(*index);
                self.machine.cancel(call, "enough", &mut self.out);
                if self.opening != Some(call) && self.owed.contains_key(&call) {
                    self.owed.insert(call, false);
                }
            }
            ClientStep::Break(index) => {
                let fault = Fault::new(FaultKind::BackendUnavailable, "cut off");
                self.machine.fail_call(self.call(*index), fault, &mut self.out);
            }
            ClientStep::Answer(index, willing) => {
                let Some(key) = self.questions.get(*index).copied() else { return };
                let response = match willing {
                    true => Ok(Raw::parse(r#"{"action":"accept"}"#).unwrap()),
                    false => Err(InputRequestError::declined("no")),
                };
                self.machine.respond(key, response, &mut self.out);
            }
            ClientStep::Wait(seconds) => {
                self.now += Duration::from_secs(*seconds);
                self.machine.tick(self.now, &mut self.out);
            }
            ClientStep::End => {
                self.machine
                    .close(Fault::new(FaultKind::BackendUnavailable, "gone"), &mut self.out);
                self.ended = true;
            }
        }
        self.account();
    }

    fn receive(&mut self, text: &str, index: usize, own: bool) {
        let call = self.call(index);
        let text = text.replace('#', &call.0.to_string());
        let requests = match serde_json::from_str::<Value>(&text) {
            Ok(Value::Array(all)) => all.iter().filter(|value| is_request(value)).count(),
            Ok(one) => usize::from(is_request(&one)),
            Err(_) => 0,
        };
        self.heard_requests += i64::try_from(requests).unwrap();
        self.machine.receive(text.as_bytes(), own.then_some(call), self.now, &mut self.out);
    }

    fn account(&mut self) {
        for frame in self.out.frames() {
            let message: Value = serde_json::from_slice(frame.text).unwrap();
            match frame.kind {
                FrameKind::Request(call) => {
                    assert_eq!(message["id"], call.0);
                    assert!(message["method"].is_string());
                }
                FrameKind::Notification { .. } => assert!(message.get("id").is_none()),
                FrameKind::Response => {
                    self.responses += 1;
                    assert_eq!(self.machine.rules().era, Era::Handshake, "{message}");
                }
            }
        }
        assert!(
            self.responses <= self.heard_requests,
            "the server got more responses than it sent requests"
        );
        self.out.clear_frames();
        while let Some(event) = self.out.next_event() {
            match event {
                ClientEvent::CallDone(call, _) => {
                    let owed = self.owed.insert(call, false);
                    assert_eq!(
                        owed,
                        Some(true),
                        "{call:?} got a second outcome, or one after its cancellation"
                    );
                }
                ClientEvent::InputRequested { key, .. } => self.questions.push(key),
                ClientEvent::InputWithdrawn(key) => {
                    self.questions.retain(|input_request_key| *input_request_key != key)
                }
                _ => {}
            }
        }
        for (call, owed) in &self.owed {
            assert!(!owed || self.machine.is_open(*call), "{call:?} got no outcome");
        }
    }

    fn settle(&mut self) {
        self.take(&ClientStep::End);
        assert_eq!(self.machine.in_flight(), 0);
        assert!(self.owed.values().all(|owed| !owed), "{:?}", self.owed);
        assert_eq!(self.machine.deadline(), None);
    }
}

fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some_and(|id| !id.is_null())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_has_one_outcome_unless_it_was_cancelled(
        dialect in select(DIALECTS),
        revision in select(&Revision::ALL[..]),
        opened in any::<bool>(),
        steps in vec(step(), 0..60),
    ) {
        let mut watch = ClientAudit::new(dialect, revision);
        if opened {
            watch.take(&ClientStep::Open);
            let hello = match revision.rules().era {
                Era::Handshake => SERVER_MESSAGES[0],
                Era::Stateless => SERVER_MESSAGES[3],
            };
            watch.take(&ClientStep::Hear(hello.into(), 0, false));
        }
        steps.iter().for_each(|step| watch.take(step));
        watch.settle();
    }

    #[test]
    fn every_call_ends_by_itself(
        revision in select(&Revision::ALL[..]), steps in vec(step(), 0..40),
    ) {
        let mut watch = ClientAudit::new("spec", revision);
        steps.iter().filter(|step| !matches!(step, ClientStep::End)).for_each(|step| watch.take(step));
        // The wait for the end of a task has the longest timeout.
        for _ in 0..8 {
            watch.take(&ClientStep::Wait(40_000));
        }
        let open: Vec<_> = watch.owed.iter().filter(|(_, owed)| **owed).collect();
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(
        revision in select(&Revision::ALL[..]), bytes in vec(any::<u8>(), 0..200),
        index in 0_usize..200, flip in any::<u8>(), text in select(SERVER_MESSAGES),
    ) {
        let mut watch = ClientAudit::new("spec", revision);
        watch.take(&ClientStep::Open);
        watch.machine.receive(&bytes, None, watch.now, &mut watch.out);
        let mut bent = text.replace('#', "1").into_bytes();
        if let Some(byte) = bent.get_mut(index) {
            *byte = flip;
        }
        watch.machine.receive(&bent, Some(CallKey(1)), watch.now, &mut watch.out);
        watch.heard_requests += 1;
        watch.account();
    }

    #[test]
    fn our_server_answers_each_operation_once(
        revision in select(&Revision::ALL[..]), dialect in select(DIALECTS),
        operations in vec(operation(), 1..8),
    ) {
        let revision = match dialect {
            "spec" => revision,
            other => creole_proto::dialect::builtin(other).unwrap().base,
        };
        let mut pair = MachinePair::open(dialect, opening(revision), endpoint);
        for operation in operations {
            let listens = matches!(operation, Operation::Listen(_));
            let key = pair.call(CallRequest::new(operation));
            let outcome = pair.outcome(key);
            assert!(outcome.is_some(), "{:?}", pair.events);
            assert!(listens || !pair.client.is_open(key));
        }
    }
}

#[test]
fn noise_is_reported_up_to_a_limit_and_counted_after_it() {
    let mut machine = client("spec", opening(Revision::V2025_11_25));
    let mut out = Outbox::default();
    for _ in 0..1000 {
        machine.receive(b"listening on port 80", None, Duration::ZERO, &mut out);
    }
    let reported = core::iter::from_fn(|| out.next_event()).count();
    assert_eq!((reported, machine.violation_count()), (100, 1000));
}

#[test]
fn more_calls_than_the_limit_are_refused_and_not_kept() {
    let mut pair = MachinePair::new("spec", opening(Revision::V2025_11_25), None);
    for _ in 0..1100 {
        let request = CallRequest::new(Operation::ListTasks(None));
        pair.client.request(&request, pair.now, &mut pair.to_client);
    }
    assert_eq!(pair.client.in_flight(), 1000);
    pair.exchange();
    let busy = |event: &&ClientEvent| matches!(event, ClientEvent::CallDone(_, Outcome::Fail(_)));
    assert_eq!(pair.events.iter().filter(busy).count(), 100);
}
