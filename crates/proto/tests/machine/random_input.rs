//! Random inputs for a machine.

use core::time::Duration;
use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::method::Method;
use creole_proto::model::{
    CacheHints, Completion, Contents, Implementation, InputRequest, Items, KeyedInputRequest,
    Level, ListKind, PromptResult, ServerCapabilities, Task, TaskOutcome, TaskState, ToolResult,
};
use creole_proto::operation::{
    Change, Event, Outcome, Page, Payload, ServerInfo, SubscriptionFilter, TaskPage,
};
use creole_proto::wire::Raw;
use creole_proto::wire::meta;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::{Value, json};

/// Ids of valid requests; some have another notation and the same value.
pub(crate) const IDS: &[&str] = &[
    "1",
    "2",
    "0",
    "-0",
    "\"1\"",
    "\"ab\"",
    "\"a\\u0062\"",
    "\"\\ud83d\\ude00\"",
    "123456789012345678901234567890",
    "1.5",
];

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum MachineStep {
    /// The client sends a line.
    Say(ClientLine),
    /// One of the calls so far is finished, whether it runs or not.
    Finish(usize, Outcome),
    /// One of the calls so far sends an event.
    Event(usize, Event),
    /// One of the calls so far sends an input request.
    Ask(usize, InputRequest),
    /// Time passes.
    Wait(Duration),
    /// The server's items change.
    Announce(Change),
    /// The client closes its side.
    EndOfInput,
}

/// A line of the client.
#[derive(Clone, Debug)]
pub(crate) enum ClientLine {
    /// A valid request.
    Request { id: &'static str, method: String, params: Value },
    /// A valid notification.
    Notification { method: String, params: Value },
    /// A valid cancellation.
    Cancel(&'static str),
    /// A valid response to an input request.
    Answer { number: u64, error: bool },
    /// Several lines in one frame.
    Batch(Vec<Self>),
    /// Another frame, with ids that no request has.
    Garbage(Vec<u8>),
}

impl ClientLine {
    /// The id of a request, as it is written.
    pub(crate) fn id(&self) -> Option<&'static str> {
        match self {
            Self::Request { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Its bytes, without a newline.
    pub(crate) fn text(&self) -> Vec<u8> {
        let text = match self {
            Self::Request { id, method, params } => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
            }
            Self::Notification { method, params } => {
                format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
            }
            Self::Cancel(id) => format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            ),
            Self::Answer { number, error: false } => {
                format!(r#"{{"jsonrpc":"2.0","id":"creole-{number}","result":{{}}}}"#)
            }
            Self::Answer { number, error: true } => format!(
                r#"{{"jsonrpc":"2.0","id":"creole-{number}","error":{{"code":-1,"message":"no"}}}}"#
            ),
            Self::Batch(elements) => {
                let texts: Vec<_> = elements.iter().map(Self::text).collect();
                return [b"[".as_slice(), &texts.join(&b','), b"]"].concat();
            }
            Self::Garbage(bytes) => return bytes.clone(),
        };
        text.into_bytes()
    }
}

/// Steps that open a session, or none.
pub(crate) fn prelude() -> impl Strategy<Value = Vec<MachineStep>> {
    let versions = select(&["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "1.0"][..]);
    option::weighted(0.8, versions).prop_map(|version| {
        let Some(version) = version else { return Vec::new() };
        let params = json!({"protocolVersion": version, "clientInfo": {"name": "c"}, "capabilities": {"roots": {}}});
        let method = "notifications/initialized".to_owned();
        vec![
            MachineStep::Say(ClientLine::Request { id: "\"opening\"", method: "initialize".to_owned(), params }),
            MachineStep::Finish(0, Outcome::Complete(Payload::Server(server_info()))),
            MachineStep::Say(ClientLine::Notification { method, params: json!({}) }),
        ]
    })
}

/// One step.
pub(crate) fn step() -> impl Strategy<Value = MachineStep> {
    let wait = prop_oneof![0_u64..100_000, Just(700_000)].prop_map(Duration::from_millis);
    prop_oneof![
        8 => anything().prop_map(MachineStep::Say),
        5 => (any::<usize>(), outcome()).prop_map(|(call, outcome)| MachineStep::Finish(call, outcome)),
        2 => (any::<usize>(), event()).prop_map(|(call, event)| MachineStep::Event(call, event)),
        2 => (any::<usize>(), input_request()).prop_map(|(call, input_request)| MachineStep::Ask(call, input_request)),
        1 => wait.prop_map(MachineStep::Wait),
        1 => change().prop_map(MachineStep::Announce),
        1 => Just(MachineStep::EndOfInput),
    ]
}

/// Any line.
pub(crate) fn anything() -> impl Strategy<Value = ClientLine> {
    prop_oneof![
        8 => single(),
        1 => vec(single(), 0..4).prop_map(ClientLine::Batch),
        1 => garbage(),
    ]
}

fn single() -> impl Strategy<Value = ClientLine> {
    prop_oneof![
        6 => request(),
        1 => notification(),
        2 => select(IDS).prop_map(ClientLine::Cancel),
        2 => (1_u64..12, any::<bool>()).prop_map(|(number, error)| ClientLine::Answer { number, error }),
    ]
}

fn notification() -> impl Strategy<Value = ClientLine> {
    // Params that are an array make the message invalid, so it would get an error.
    let params = params().prop_map(|params| if params.is_array() { Value::Null } else { params });
    (select(names()), params)
        .prop_map(|(method, params)| ClientLine::Notification { method, params })
}

/// Any valid request of either era.
pub(crate) fn request() -> impl Strategy<Value = ClientLine> {
    let claim = prop_oneof![
        5 => Just(None),
        4 => Just(Some("2026-07-28")),
        1 => Just(Some("2025-06-18")),
    ];
    (select(IDS), select(names()), params(), claim).prop_map(|(id, method, mut params, claim)| {
        if let (Some(version), true) = (claim, params.is_object()) {
            params["_meta"][meta::PROTOCOL_VERSION] = json!(version);
            params["_meta"][meta::CLIENT_CAPABILITIES] = json!({});
        }
        ClientLine::Request { id, method, params }
    })
}

fn names() -> Vec<String> {
    let known = Method::ALL.iter().map(|(_, name)| (*name).to_owned());
    // Calls and subscriptions cover the most code, so they are more frequent.
    let more = ["tools/call", "tools/call", "subscriptions/listen", "no/such", "initialized"];
    known.chain(more.map(str::to_owned)).collect()
}

/// Params that fit most methods, or none.
fn params() -> impl Strategy<Value = Value> {
    let full = json!({
        "name": "t", "uri": "test://a", "level": "debug", "arguments": {}, "cursor": "c",
        "taskId": "t", "inputResponses": {}, "task": {"ttl": 1},
        "protocolVersion": "2025-03-26", "clientInfo": {"name": "c"}, "capabilities": {},
        "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""},
        "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["test://a"]},
    });
    let with = |meta: Value| {
        let mut params = full.clone();
        params["_meta"] = meta;
        params
    };
    prop_oneof![
        6 => Just(full.clone()),
        2 => Just(with(json!({"progressToken": "p"}))),
        1 => Just(with(json!({"progressToken": 7, meta::LOG_LEVEL: "debug"}))),
        1 => Just(json!({})),
        1 => Just(json!({"name": 1, "uri": 2, "arguments": [], "level": "loud", "protocolVersion": 3})),
        1 => Just(Value::Null),
        1 => Just(json!([1])),
    ]
}

fn garbage() -> impl Strategy<Value = ClientLine> {
    let odd: &[&[u8]] = &[
        b"",
        b"{",
        b"[]",
        b"[[]]",
        b"[1,{}]",
        b"null",
        b"7",
        b"\"x\"",
        b"\xef\xbb\xbf{}",
        b"\xff",
        br#"{"jsonrpc":"1.0","id":"g1","method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":"g2"}"#,
        br#"{"jsonrpc":"2.0","id":"g3","method":7}"#,
        br#"{"jsonrpc":"2.0","id":"g4","method":"ping","result":{}}"#,
        br#"{"jsonrpc":"2.0","id":"g5","result":{},"error":{}}"#,
        br#"{"jsonrpc":"2.0","id":"g6","id":"g7","method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":"g8","method":"ping","method":"ping"}"#,
        br#"{"jsonrpc":"2.0","result":{}}"#,
        br#"{"jsonrpc":"2.0","id":["g9"],"method":"ping"}"#,
    ];
    prop_oneof![
        select(odd).prop_map(|bytes| ClientLine::Garbage(bytes.to_vec())),
        // A newline would end the line.
        vec(any::<u8>().prop_filter("a newline", |byte| *byte != b'\n'), 0..30)
            .prop_map(ClientLine::Garbage),
    ]
}

/// Any outcome, whether it fits the call or not.
pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let payload = prop_oneof![
        Just(Payload::Empty),
        Just(Payload::Server(server_info())),
        Just(Payload::Page(Page {
            kind: ListKind::Tools,
            items: Items::default(),
            excluded: Box::default(),
            next: Some("n".to_owned()),
            cache: CacheHints::NONE,
        })),
        Just(Payload::Tool(ToolResult::structured(Raw::parse("[1,\n2]").unwrap()))),
        Just(Payload::Contents(
            vec![Contents::text("test://a", "text/plain", "a\nb")],
            CacheHints::NONE
        )),
        Just(Payload::Prompt(PromptResult::default())),
        Just(Payload::Completion(Completion::default())),
        Just(Payload::TaskCreated(task(false))),
        Just(Payload::Task(task(true))),
        Just(Payload::Tasks(TaskPage { tasks: vec![task(true)], next: None })),
        Just(Payload::Listening(SubscriptionFilter {
            tools: true,
            uris: vec!["test://a".to_owned()],
            ..SubscriptionFilter::default()
        })),
    ];
    let fault =
        select(&FaultKind::ALL[..]).prop_map(|(kind, detail)| Fault::new(kind, detail).into());
    let asking = input_request().prop_map(|input_request| {
        let input_requests =
            vec![KeyedInputRequest { key: "q".to_owned(), question: input_request }];
        Outcome::InputRequired { requests: input_requests, request_state: Some("s".to_owned()) }
    });
    prop_oneof![6 => payload.prop_map(Outcome::Complete), 2 => fault, 1 => asking, 1 => Just(Outcome::Detach(None))]
}

fn server_info() -> ServerInfo {
    ServerInfo {
        identity: Arc::new(Implementation::default()),
        capabilities: ServerCapabilities { tools: true, ..ServerCapabilities::default() },
        instructions: None,
        cache: CacheHints::NONE,
    }
}

fn task(is_over: bool) -> Arc<Task> {
    let state = match is_over {
        true => TaskState::Ended(TaskOutcome::Result(ToolResult::error("a\nb"))),
        false => TaskState::Working,
    };
    let (id, message) = ("t".to_owned(), Some("m\n".to_owned()));
    Arc::new(Task { id, state, message, created_ms: 0, updated_ms: 1, ttl_ms: 2, poll_ms: 3 })
}

fn event() -> impl Strategy<Value = Event> {
    let number = prop_oneof![any::<f64>(), 0.0..10.0];
    let progress = (number, option::of(any::<f64>())).prop_map(|(progress, total)| {
        Event::Progress { progress, total, message: Some("m\n".into()) }
    });
    let level = select(&[Level::Debug, Level::Info, Level::Emergency][..]);
    let log = level.prop_map(|level| Event::Log {
        level,
        logger: None,
        data: Raw::parse("{\"a\":\n[1,\r2]}").unwrap(),
    });
    prop_oneof![progress, log]
}

fn input_request() -> impl Strategy<Value = InputRequest> {
    let schema = Raw::parse("{\"type\":\r\n\"object\"}").unwrap();
    prop_oneof![
        Just(InputRequest::Roots),
        Just(InputRequest::Form { message: "m".into(), schema: schema.clone() }),
        Just(InputRequest::Url {
            message: "m".into(),
            url: "https://example.org".into(),
            id: "u".into()
        }),
        Just(InputRequest::Sample { params: schema }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let kinds = [ListKind::Tools, ListKind::Resources, ListKind::Templates, ListKind::Prompts];
    prop_oneof![
        select(kinds.to_vec()).prop_map(Change::List),
        Just(Change::Resource("test://a/b".to_owned())),
        any::<bool>().prop_map(|is_over| Change::Task(task(is_over))),
    ]
}
