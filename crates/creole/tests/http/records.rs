//! Tests of the records of calls over HTTP.

use std::sync::{Arc, Mutex};

use creole::auth::{Principal, ProtectedResource, ResourceSettings, ScopeRule, ScopeRules};
use creole::internal::name_patterns::NamePatterns;
use creole::internal::telemetry::{
    CallOutcome, CallRecord, CallStart, Detail, FrameDirection, ReaderGuard, RecordReader,
    RequestFacts, Telemetry, Transport,
};
use creole::proto::fault::FaultKind;
use creole::serve::http::McpEndpoint;
use creole::{Server, Tool};
use http::Request;
use serde_json::{Value, json};

use crate::client::{Whole, call, document, modern_call, open, post};
use crate::principals::token;

/// Collects the records of ended calls.
#[derive(Default)]
struct HttpRecords(Mutex<Vec<Arc<CallRecord>>>);

impl HttpRecords {
    fn take(&self, method: &str) -> Arc<CallRecord> {
        let mut records = std::mem::take(&mut *self.0.lock().unwrap());
        records.retain(|record| record.method == method);
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

impl RecordReader for HttpRecords {
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

fn endpoint() -> (McpEndpoint, Arc<HttpRecords>, ReaderGuard) {
    let (telemetry, collector) = (Telemetry::default(), Arc::new(HttpRecords::default()));
    let guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let greet = Tool::new("greet", "Greets", |_: Value| async { "hello" });
    let server = Server::new("test").tool(greet).telemetry(telemetry);
    (server.start().into(), collector, guard)
}

#[tokio::test]
async fn a_stateless_request_has_its_transport_and_both_messages() {
    let (endpoint, collector, _guard) = endpoint();
    let response = document(endpoint.handle(modern_call("greet")).await).await;
    let record = collector.take("tools/call");
    assert_eq!(record.transport, Transport::Http { version: "1.1" });
    assert_eq!((record.session, record.remote), (None, None));
    assert_eq!(record.end().unwrap().outcome, CallOutcome::Success);
    let frames = record.frames();
    let directions: Vec<_> = frames.iter().map(|frame| frame.direction).collect();
    assert_eq!(directions, [FrameDirection::ClientIn, FrameDirection::ClientOut]);
    assert!(frames[0].text.contains("\"method\":\"tools/call\""), "{}", frames[0].text);
    assert_eq!(serde_json::from_str::<Value>(&frames[1].text).unwrap(), response);
}

#[tokio::test]
async fn a_request_of_a_session_has_the_digest_of_its_id() {
    let (endpoint, collector, _guard) = endpoint();
    let id = open(&endpoint).await;
    assert_eq!(collector.take("initialize").end().unwrap().outcome, CallOutcome::Success);
    document(endpoint.handle(call(&id, 5, "greet")).await).await;
    let record = collector.take("tools/call");
    assert_eq!(record.session, Some(RequestFacts::session_digest(&id)));
    assert_eq!(record.request_id.as_deref(), Some("5"));
}

#[tokio::test]
async fn a_call_that_a_scope_refuses_ends_with_that_fault() {
    let (endpoint, collector, _guard) = endpoint();
    let rule = ScopeRule {
        name: "greetings".into(),
        tools: NamePatterns::new(["greet"]),
        ..ScopeRule::default()
    };
    let settings = ResourceSettings { path: "/mcp".to_owned(), ..ResourceSettings::default() };
    let rules = Arc::new(ScopeRules::new([rule].into(), false));
    let resource = Arc::new(ProtectedResource::new(settings, rules));
    let by_ada = |mut request: Request<Whole>| {
        let principal = Principal::from_token(token("ada", "editor", &[]), &[], &[]);
        request.extensions_mut().insert(principal);
        request.extensions_mut().insert(Arc::clone(&resource));
        request
    };
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = endpoint.handle(by_ada(post(&[], &hello))).await;
    let id = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    collector.take("initialize");
    for request in [modern_call("greet"), call(&id, 5, "greet")] {
        assert_eq!(endpoint.handle(by_ada(request)).await.status(), 403);
        let record = collector.take("tools/call");
        let end = record.end().unwrap().outcome;
        assert!(matches!(end, CallOutcome::Fault(FaultKind::InsufficientScope, _)), "{end:?}");
        assert!(record.steps().is_empty() && record.principal.id().contains("ada"));
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_has_a_record() {
    let (endpoint, collector, _guard) = endpoint();
    let wrong = json!({"jsonrpc": "1.0", "id": 1, "method": "ping"});
    endpoint.handle(post(&[], &wrong)).await;
    let end = collector.take("_OTHER").end().unwrap().outcome;
    assert!(matches!(end, CallOutcome::Fault(FaultKind::InvalidRequest, Some(_))), "{end:?}");
    let mut mismatched = modern_call("greet");
    mismatched.headers_mut().insert("mcp-name", "other".parse().unwrap());
    endpoint.handle(mismatched).await;
    let record = collector.take("_OTHER");
    let end = record.end().unwrap().outcome;
    assert!(matches!(end, CallOutcome::Fault(FaultKind::HeaderMismatch, Some(-32020))), "{end:?}");
    assert_eq!(record.transport, Transport::Http { version: "1.1" });
}
