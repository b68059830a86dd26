//! Tests of plain calls: handshake, lists, tools, failures.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::client::{
    CallRequest, ClientEvent, ClientLimits, Machine, OpenMode, Outbox, Profile,
};
use creole_proto::dialect::builtin;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{
    CLIENT_CREDENTIALS_EXTENSION, CacheHints, ClientCapabilities, Definition, Implementation,
    ListKind, ServerCapabilities, ToolResult,
};
use creole_proto::operation::{Caller, Operation, Outcome, Page, Payload, ServerInfo};
use creole_proto::revision::Revision;
use creole_proto::wire::{Object, Raw};

use super::pair::{MachinePair, opening};

/// A server with one tool, which fails on request.
pub(crate) fn endpoint(operation: &Operation, _: &Caller) -> Outcome {
    let fail = |kind| Outcome::Fail(Fault::new(kind, "so it is").with_subject(operation.target()));
    Outcome::Complete(match operation {
        Operation::Discover => Payload::Server(ServerInfo {
            identity: Arc::new(Implementation {
                name: "pair".into(),
                version: "1".into(),
                ..Implementation::default()
            }),
            capabilities: ServerCapabilities {
                tools: true,
                list_changed: true,
                ..ServerCapabilities::default()
            },
            instructions: Some("Be kind.".into()),
            cache: CacheHints::NONE,
        }),
        Operation::List(ListKind::Tools, _) => {
            let tool = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
            let tool = Definition::from_upstream(ListKind::Tools, tool, None).unwrap();
            let items = [Arc::new(tool)].into_iter().collect();
            let cache = CacheHints { ttl_ms: 7, public: true };
            let (next, excluded) = (Some("n".into()), Box::default());
            Payload::Page(Page { kind: ListKind::Tools, items, excluded, next, cache })
        }
        Operation::CallTool { name, arguments } => match name.as_str() {
            "t" => Payload::Tool(ToolResult::text(arguments.as_ref().map_or("none", Raw::as_str))),
            "fails" => return fail(FaultKind::ToolFailed),
            "lost" => return fail(FaultKind::UnknownTool),
            _ => return fail(FaultKind::InvalidArguments),
        },
        Operation::ReadResource { .. } => return fail(FaultKind::ResourceNotFound),
        _ => Payload::Empty,
    })
}

pub(crate) fn tool(name: &str) -> CallRequest {
    let arguments = Some(Raw::parse(r#"{"b":1.0, "a":1e400}"#).unwrap());
    CallRequest::new(Operation::CallTool { name: name.into(), arguments })
}

#[test]
fn every_revision_is_opened_and_agreed_on() {
    for revision in Revision::ALL {
        let pair = MachinePair::open("spec", opening(revision), endpoint);
        let Some(ClientEvent::Opened(greeting)) = pair.events.first() else {
            panic!("{revision:?}: {:?}", pair.events);
        };
        assert_eq!(greeting.rules.revision, revision);
        assert_eq!(greeting.server_info.instructions.as_deref(), Some("Be kind."));
        assert!(
            greeting.server_info.capabilities.tools
                && greeting.server_info.capabilities.list_changed
        );
        assert_eq!(pair.client.rules().revision, revision);
    }
}

#[test]
fn a_tool_answers_in_every_revision_and_its_arguments_arrive_as_they_were_written() {
    for revision in Revision::ALL {
        let mut pair = MachinePair::open("spec", opening(revision), endpoint);
        let key = pair.call(tool("t"));
        let Some(Outcome::Complete(Payload::Relayed(relayed))) = pair.outcome(key) else {
            panic!("{revision:?}: {:?}", pair.events);
        };
        assert!(relayed.result().as_str().contains(r#"{\"b\":1.0, \"a\":1e400}"#), "{relayed:?}");
        assert_eq!(relayed.rules.revision, revision);
    }
}

#[test]
fn extra_members_are_relayed_verbatim() {
    let (params, meta) =
        (r#"{"x-own":{"b":1e400,"a":1}}"#, r#"{"traceparent":"00-1","a.b/c":[ ]}"#);
    for revision in Revision::ALL {
        let mut pair = MachinePair::open("spec", opening(revision), endpoint);
        pair.hold();
        let mut request = tool("t");
        request.options.progress = true;
        // Members that the protocol defines are not taken from the extra members.
        let known = r#"{"name":"evil","_meta":{},"x-own":{"b":1e400,"a":1}}"#;
        request.options.params = Some(Raw::parse(known).unwrap());
        request.options.meta = Some(Raw::parse(meta).unwrap());
        pair.call(request);
        let call = pair.started.pop().unwrap();
        let extra = call.caller.extra.as_deref().unwrap();
        assert_eq!(extra.params.as_ref().unwrap().as_str(), params, "{revision:?}");
        assert_eq!(extra.meta.as_ref().unwrap().as_str(), meta, "{revision:?}");
        pair.call(tool("t"));
        assert_eq!(pair.started.pop().unwrap().caller.extra, None);
    }
}

#[test]
fn a_list_is_read_with_cursor_and_freshness() {
    for revision in Revision::ALL {
        let mut pair = MachinePair::open("spec", opening(revision), endpoint);
        let key = pair.call(CallRequest::new(Operation::List(ListKind::Tools, None)));
        let Some(Outcome::Complete(Payload::Page(page))) = pair.outcome(key) else {
            panic!("{revision:?}: {:?}", pair.events);
        };
        assert_eq!(page.items.iter().next().unwrap().name(), "t");
        assert_eq!(page.next.as_deref(), Some("n"));
        assert_eq!(page.cache.public, revision.rules().cache_hints);
    }
}

#[test]
fn faults_are_understood_again_by_the_dialect_that_wrote_them() {
    for dialect in ["spec", "bb-mcp-server", "mcp-chain", "bossman", "fpf-governance"] {
        let base = builtin(dialect).unwrap().base;
        let mut pair = MachinePair::open(dialect, opening(base), endpoint);
        let kinds: Vec<_> = ["lost", "fails", "odd"]
            .map(|name| {
                let key = pair.call(tool(name));
                match pair.outcome(key).unwrap() {
                    Outcome::Fail(fault) => fault.kind.name(),
                    Outcome::Complete(Payload::Relayed(_)) => "result",
                    other => panic!("{dialect} {other:?}"),
                }
            })
            .into();
        let expected = match dialect {
            "bb-mcp-server" | "mcp-chain" => ["unknown-tool", "tool-failed", "invalid-arguments"],
            "bossman" => ["unknown-tool", "result", "invalid-arguments"],
            _ => ["unknown-tool", "result", "result"],
        };
        assert_eq!(kinds, expected, "{dialect}");
    }
}

#[test]
fn calls_wait_for_the_handshake_and_the_dialect_says_how_it_ends() {
    let rows = [
        ("spec", Some("notifications/initialized")),
        ("bb-mcp-server", None),
        ("mcp-chain", Some("initialized")),
    ];
    for (dialect, confirmation) in rows {
        let base = builtin(dialect).unwrap().base;
        let mut pair = MachinePair::new(dialect, opening(base), Some(endpoint));
        let key = pair.client.request(&tool("t"), pair.now, &mut pair.to_client);
        pair.exchange();
        assert_eq!(pair.sent.len(), 0, "{dialect}");
        pair.client.open(pair.now, &mut pair.to_client);
        pair.exchange();
        assert!(pair.sent[0].contains("initialize"), "{dialect}");
        match confirmation {
            Some(name) => {
                assert!(pair.sent[1].contains(&format!("\"method\":\"{name}\"")), "{dialect}")
            }
            None => assert!(pair.sent[1].contains("tools/call"), "{dialect}"),
        }
        assert!(
            matches!(pair.outcome(key), Some(Outcome::Complete(_))),
            "{dialect}: {:?}",
            pair.events
        );
    }
}

#[test]
fn a_missing_resource_is_one_in_every_revision() {
    for revision in Revision::ALL {
        let mut pair = MachinePair::open("spec", opening(revision), endpoint);
        let key = pair.call(CallRequest::new(Operation::ReadResource { uri: "test://a".into() }));
        let Some(Outcome::Fail(fault)) = pair.outcome(key) else { panic!("{revision:?}") };
        assert_eq!(fault.kind, FaultKind::ResourceNotFound, "{revision:?}");
    }
}

#[test]
fn a_client_declares_its_own_extensions_and_not_those_of_its_callers() {
    let given = format!(
        r#"{{"extensions":{{"a/b":{{"c":1}},"{CLIENT_CREDENTIALS_EXTENSION}":{{"d":1}}}}}}"#
    );
    let capabilities = Arc::new(ClientCapabilities::read(Object::new(&given).unwrap()));
    let sent = |extensions: Vec<&'static str>| {
        let profile = Profile {
            dialect: builtin("spec").unwrap(),
            identity: Raw::parse(r#"{"name":"tester","version":"1"}"#).unwrap(),
            limits: ClientLimits::default(),
            extensions,
        };
        let proposed_rules = Revision::V2025_11_25.rules();
        let capabilities = Arc::clone(&capabilities);
        let mode = OpenMode::Handshake { proposed_rules, capabilities };
        let mut out = Outbox::default();
        Machine::new(profile.into(), mode).open(Duration::ZERO, &mut out);
        String::from_utf8(out.take_bytes()).unwrap()
    };
    let text = sent(Vec::new());
    assert!(text.contains(r#""extensions":{"a/b":{"c":1}}"#), "{text}");
    let text = sent(vec![CLIENT_CREDENTIALS_EXTENSION]);
    let expected =
        format!(r#""extensions":{{"{CLIENT_CREDENTIALS_EXTENSION}":{{}},"a/b":{{"c":1}}}}"#);
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn the_time_in_which_a_call_is_held_does_not_count() {
    let mut pair = MachinePair::open("spec", opening(Revision::V2026_07_28), endpoint);
    pair.hold();
    let call = pair.call(tool("t"));
    let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
    let deadline = pair.client.deadline_of(call).unwrap();
    pair.client.set_call_held(call, true, second);
    assert_eq!(pair.client.deadline_of(call), None);
    pair.client.tick(10 * hour, &mut pair.to_client);
    assert!(pair.client.is_open(call));
    pair.client.set_call_held(call, false, second + 10 * hour);
    assert_eq!(pair.client.deadline_of(call), Some(deadline + 10 * hour));
    pair.client.tick(deadline + 10 * hour, &mut pair.to_client);
    assert!(!pair.client.is_open(call));
}
