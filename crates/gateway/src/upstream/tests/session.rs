//! Tests of the results and notifications that callers get from their sessions. The upstream is in this process and
//! keeps a state for each session.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use creole::client::Program;
use creole::internal::call::{ClientChannel, Origin};
use creole::internal::registry::Announcement;
use creole::proto::model::{InputRequest, ListKind};
use creole::proto::operation::{Caller, Event, Operation, Payload};
use creole::proto::revision::{Era, Revision};
use creole::proto::server::{Call as Started, CallKey, InputResponse};
use creole::proto::wire::Raw;
use creole::stream::MemoryConnection;
use creole::{Server, Service};
use creole_test_wait::delay;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::time::timeout;

use super::*;
use crate::federation::Federation;
use crate::layers::testing::plain_caller;
use crate::layers::{
    Chain, Filter, FilterSettings, NamePatterns, Pin, Redact, RedactScope, Redactor,
};
use crate::upstream::connections::connector;
use crate::upstream::lists::unsubscribe_queue::UNSUBSCRIBE_DELAY;

static SESSIONS: AtomicU32 = AtomicU32::new(0);

/// One session with the upstream.
struct Session {
    number: u32,
    client: MemoryConnection,
    capabilities: Value,
    tools: Vec<&'static str>,
    subscriptions: Vec<Value>,
    is_over: bool,
}

impl Session {
    async fn send(&mut self, message: Value) {
        // A client that has left receives nothing.
        _ = self.client.send(format!("{message}\n").as_bytes()).await;
    }

    async fn tell(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    fn tools(&self) -> Value {
        let form = self.capabilities.get("elicitation").map(|_| "form");
        let apps = self.capabilities["extensions"].get("io.modelcontextprotocol/ui");
        let names = self.tools.iter().copied().chain(form).chain(apps.map(|_| "app"));
        let tool = |name| {
            let description = match name {
                "whoami" if self.tools.len() > 4 => format!("in session {}", self.number),
                _ => String::new(),
            };
            json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
        };
        names.map(tool).collect()
    }

    async fn call(&mut self, id: &Value, params: &Value) {
        let name = params["name"].as_str().unwrap();
        match name {
            "add" => {
                self.tools.push("added");
                self.tell("notifications/tools/list_changed", json!({})).await;
            }
            "end" => self.is_over = true,
            "update" => {
                for uri in self.subscriptions.clone() {
                    self.tell("notifications/resources/updated", json!({"uri": uri})).await;
                }
            }
            _ => {}
        }
        let text = match name {
            "watched" => self.subscriptions.len().to_string(),
            _ => format!("{name} in session {}", self.number),
        };
        let result = json!({"content": [{"type": "text", "text": text}]});
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
        if name == "log" {
            delay(Duration::from_secs(1)).await;
            let data = format!("session {}", self.number);
            self.tell("notifications/message", json!({"level": "warning", "data": data})).await;
        }
    }

    async fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                self.capabilities = params["capabilities"].clone();
                json!({
                    "protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                    "capabilities": {
                        "tools": {"listChanged": true}, "resources": {"subscribe": true},
                        "logging": {},
                    },
                })
            }
            "tools/list" => json!({"tools": self.tools()}),
            "resources/list" => json!({"resources": [{"uri": "a://b", "name": "b"}]}),
            "resources/subscribe" => {
                self.subscriptions.push(params["uri"].clone());
                json!({})
            }
            "resources/unsubscribe" => {
                self.subscriptions.retain(|uri| *uri != params["uri"]);
                json!({})
            }
            "tools/call" => return self.call(id, params).await,
            "ping" => json!({}),
            _ if id.is_null() => return,
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                return self.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
            }
        };
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }
}

async fn stateful(client: MemoryConnection) {
    let mut session = Session {
        number: SESSIONS.fetch_add(1, Ordering::Relaxed),
        client,
        capabilities: Value::Null,
        tools: vec!["whoami", "add", "update", "log"],
        subscriptions: Vec::new(),
        is_over: false,
    };
    let mut rest = Vec::new();
    while let Some(bytes) = session.client.receive().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            session.take(&message).await;
        }
        if session.is_over {
            return;
        }
    }
}

/// A client's connection or session.
struct RecordingClient<'a> {
    service: &'a Service,
    origin: Origin,
    caller: Caller,
    outlet: Arc<ReceivedMessages>,
    changes: Mutex<Receiver<Announcement>>,
}

#[derive(Default)]
struct ReceivedMessages(Mutex<Vec<String>>);

type Response<'a> = BoxFuture<'a, InputResponse>;

impl ClientChannel for ReceivedMessages {
    fn send_event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request_input(&self, _: CallKey, _: InputRequest, _: Option<Raw>) -> Response<'_> {
        Box::pin(std::future::ready(Err("no".to_owned())))
    }

    fn send_log(&self, event: Event) {
        let Event::Log { data, .. } = event else { panic!("{event:?}") };
        self.0.lock().unwrap().push(data.as_str().to_owned());
    }
}

impl<'a> RecordingClient<'a> {
    fn new(service: &'a Service, principal: &str, era: Era, capabilities: &Value) -> Self {
        let text = capabilities.to_string();
        let declared = creole::proto::wire::Object::new(&text).unwrap();
        let capabilities = Arc::new(ClientCapabilities::read(declared));
        let caller = Caller {
            rules: Revision::newest(era).rules(),
            capabilities,
            log: Some(creole::proto::model::Level::Info),
            ..plain_caller()
        };
        let origin = match era {
            Era::Handshake => Origin::new(principal.into()),
            Era::Stateless => Origin::sessionless(principal.into()),
        };
        let changes = Mutex::new(service.registry().changes());
        Self { service, origin, caller, outlet: Arc::default(), changes }
    }

    async fn ask(&self, operation: Operation) -> Outcome {
        let started = Started { key: CallKey(1), operation, caller: self.caller.clone() };
        self.service.start_call(started, Arc::clone(&self.outlet) as _, self.origin.clone()).0.await
    }

    async fn tools(&self) -> Vec<String> {
        match self.ask(Operation::List(ListKind::Tools, None)).await {
            Outcome::Complete(Payload::Page(page)) => {
                page.items.iter().map(|item| item.name().to_owned()).collect()
            }
            other => panic!("no page: {other:?}"),
        }
    }

    /// The text of a tool's result.
    async fn call(&self, tool: &str) -> Result<String, FaultKind> {
        let operation = Operation::CallTool { name: tool.to_owned(), arguments: None };
        match self.ask(operation).await {
            Outcome::Complete(Payload::Relayed(result)) => {
                let result: Value = serde_json::from_str(result.result().as_str()).unwrap();
                Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
            }
            Outcome::Fail(fault) => Err(fault.kind),
            other => panic!("no result: {other:?}"),
        }
    }

    /// The changes that the client is notified of until no more arrive.
    async fn told(&self) -> Vec<Change> {
        // The simulated clock advances only when all tasks are idle.
        delay(Duration::from_millis(10)).await;
        let mut changes = self.changes.lock().unwrap();
        let mut told = Vec::new();
        while let Ok(announcement) = changes.try_recv() {
            if announcement.to.includes(&self.origin) {
                told.push(announcement.change);
            }
        }
        told
    }
}

fn settings(name: &str) -> UpstreamSettings {
    connector::in_process::register(name, stateful);
    let revision = Revision::newest(Era::Handshake).rules();
    let choice = RevisionChoice::Revision(revision);
    UpstreamSettings {
        revisions: choice,
        ..UpstreamSettings::new(Address::Child(Program::new(name, "none")))
    }
}

fn gateway(federation: &Federation, settings: UpstreamSettings) -> Service {
    let service = Server::new("gateway").with(federation.layer()).start();
    federation.start_upstreams(vec![settings], &service.registry(), false);
    service
}

const SHARED: [&str; 4] = ["whoami", "add", "update", "log"];

#[tokio::test(start_paused = true)]
async fn a_tool_that_a_session_gets_is_listed_and_called_there_and_nowhere_else() {
    // Input requests to a client with roots belong to a session of that client.
    let kinds = [json!({}), json!({"roots": {}})];
    let eras = [Era::Handshake, Era::Stateless];
    for (era, able) in eras.into_iter().flat_map(|era| kinds.iter().map(move |value| (era, value)))
    {
        let federation = Federation::default();
        let service = gateway(&federation, settings("sessions_adding"));
        let ann = RecordingClient::new(&service, "ann", era, able);
        let bob = RecordingClient::new(&service, "bob", era, able);
        assert_eq!(ann.tools().await, SHARED);
        let added = ann.call("add").await.unwrap();
        bob.call("whoami").await.unwrap();
        assert_eq!(ann.told().await, [Change::List(ListKind::Tools)]);
        assert_eq!(bob.told().await, [], "the session belongs to Ann");
        assert_eq!(ann.tools().await, ["whoami", "add", "update", "log", "added"]);
        assert_eq!(bob.tools().await, SHARED);
        let called = ann.call("added").await.unwrap();
        assert_eq!(called.replace("added", "add"), added, "in the same session");
        let texts = match ann.ask(Operation::List(ListKind::Tools, None)).await {
            Outcome::Complete(Payload::Page(page)) => format!("{:?}", page.items),
            other => panic!("{other:?}"),
        };
        assert!(texts.contains("in session"), "the texts of her session: {texts}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_a_capability_or_an_extension_sees_what_the_server_has_for_it() {
    let apps = json!({"extensions": {"io.modelcontextprotocol/ui": {}}});
    let rows = [(json!({"elicitation": {}}), "form"), (apps, "app")];
    for (capabilities, tool) in rows {
        for era in [Era::Handshake, Era::Stateless] {
            for affinity in [Affinity::Principal, Affinity::Session, Affinity::Single] {
                let federation = Federation::default();
                let settings = UpstreamSettings { affinity, ..settings("sessions_able") };
                let service = gateway(&federation, settings);
                let able = RecordingClient::new(&service, "ann", era, &capabilities);
                let plain = RecordingClient::new(&service, "ann", era, &json!({}));
                let what = format!("{tool} {era:?} {affinity:?}");
                assert_eq!(able.tools().await.last().unwrap(), tool, "{what}");
                let before = SESSIONS.load(Ordering::Relaxed);
                assert!(able.call(tool).await.is_ok(), "{what}");
                // A call that names no session has its own.
                let is_alone = affinity == Affinity::Session && era == Era::Stateless;
                if !is_alone {
                    assert_eq!(
                        SESSIONS.load(Ordering::Relaxed),
                        before,
                        "the same session: {what}"
                    );
                }
                if affinity != Affinity::Single {
                    assert_eq!(plain.tools().await, SHARED, "{what}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_no_list_has_is_called_unless_a_layer_withholds_it() {
    let federation = Federation::default();
    let service = gateway(&federation, settings("sessions_plain"));
    let ann = RecordingClient::new(&service, "ann", Era::Handshake, &json!({}));
    assert!(ann.call("unlisted").await.unwrap().starts_with("unlisted in session"));

    let deny = FilterSettings {
        kinds: vec![ListKind::Tools],
        deny: NamePatterns::new(["un*"]),
        ..FilterSettings::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let pin = Pin::new("sessions_pinned", &folder.path().join("pins.json")).unwrap();
    let layers: [(&str, Arc<dyn creole::Middleware>); 2] =
        [("sessions_denied", Arc::new(Filter::new(deny))), ("sessions_pinned", Arc::new(pin))];
    for (name, layer) in layers {
        let federation = Federation::default();
        let chain = Chain::new(vec![layer]);
        let service = gateway(&federation, UpstreamSettings { chain, ..settings(name) });
        let ann = RecordingClient::new(&service, "ann", Era::Handshake, &json!({}));
        assert_eq!(ann.call("unlisted").await, Err(FaultKind::UnknownTool), "{name}");
        assert!(ann.call("whoami").await.is_ok(), "{name}");
        ann.call("add").await.unwrap();
        ann.told().await;
        assert_eq!(ann.tools().await.last().unwrap(), "added", "the layers check it");
        assert!(ann.call("added").await.is_ok(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prefix_says_which_upstream_has_an_unlisted_tool_and_without_one_nobody_guesses() {
    let prefixed = |name: &str, prefix: &str| UpstreamSettings {
        naming: Naming { prefix: prefix.to_owned() },
        ..settings(name)
    };
    let federation = Federation::default();
    let service = Server::new("gateway").with(federation.layer()).start();
    let servers = vec![
        prefixed("sessions_one", "one__"),
        prefixed("sessions_two", ""),
        prefixed("sessions_three", ""),
    ];
    federation.start_upstreams(servers, &service.registry(), false);
    let ann = RecordingClient::new(&service, "ann", Era::Handshake, &json!({}));
    ann.tools().await;
    assert_eq!(ann.call("unlisted").await, Err(FaultKind::UnknownTool), "two may have it");
    // No upstream has this prefix, and both upstreams without a prefix may have a tool of any name.
    assert!(ann.call("two__unlisted").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_watched_in_the_session_that_the_callers_calls_use() {
    let able = json!({"elicitation": {}});
    let rooted = json!({"elicitation": {}, "roots": {}});
    for (era, capabilities, affinity) in [
        (Era::Handshake, json!({}), Affinity::Principal),
        (Era::Handshake, able.clone(), Affinity::Principal),
        (Era::Stateless, json!({}), Affinity::Principal),
        (Era::Stateless, able.clone(), Affinity::Single),
        (Era::Handshake, able, Affinity::Single),
        (Era::Stateless, rooted.clone(), Affinity::Principal),
        (Era::Stateless, rooted.clone(), Affinity::Single),
        (Era::Handshake, rooted, Affinity::Principal),
    ] {
        let federation = Federation::default();
        let settings = UpstreamSettings { affinity, ..settings("sessions_watched") };
        let service = gateway(&federation, settings);
        let ann = RecordingClient::new(&service, "ann", era, &capabilities);
        let bob = RecordingClient::new(&service, "bob", era, &capabilities);
        let subscribe = || Operation::Subscribe { uri: "a://b".to_owned() };
        let subscribed = ann.ask(subscribe()).await;
        assert!(matches!(subscribed, Outcome::Complete(_)), "{subscribed:?}");
        ann.call("update").await.unwrap();
        let updated = Change::Resource("a://b".to_owned());
        assert_eq!(ann.told().await, std::slice::from_ref(&updated), "{era:?} {affinity:?}");
        if affinity == Affinity::Principal {
            assert_eq!(bob.told().await, [], "the session belongs to Ann");
            bob.ask(subscribe()).await;
            ann.call("update").await.unwrap();
            assert_eq!((ann.told().await, bob.told().await), (vec![updated.clone()], vec![]));
        }
        service.registry().subscription_ended("a://b", ann.outlet.connection_id());
        delay(2 * UNSUBSCRIBE_DELAY).await;
        ann.call("update").await.unwrap();
        assert_eq!(ann.told().await, [], "no subscription is left");
    }
}

#[tokio::test(start_paused = true)]
async fn one_task_unsubscribes_from_all_unused_resources() {
    let federation = Federation::default();
    let service = gateway(&federation, settings("sessions_leaving"));
    let ann = RecordingClient::new(&service, "ann", Era::Handshake, &json!({}));
    let uris: Vec<String> = (0..100).map(|number| format!("a://{number}")).collect();
    for uri in &uris {
        let subscribed = ann.ask(Operation::Subscribe { uri: uri.clone() }).await;
        assert!(matches!(subscribed, Outcome::Complete(_)), "{subscribed:?}");
    }
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    uris.iter()
        .for_each(|uri| service.registry().subscription_ended(uri, ann.outlet.connection_id()));
    assert!(tasks() <= before + 1, "{} additional tasks", tasks() - before);
    assert_eq!(ann.call("watched").await.unwrap(), "100", "subscriptions end after a delay");
    delay(2 * UNSUBSCRIBE_DELAY).await;
    assert_eq!(ann.call("watched").await.unwrap(), "0", "no subscription is left");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_moves_to_the_session_that_a_call_opens() {
    for affinity in [Affinity::Principal, Affinity::Single] {
        let federation = Federation::default();
        let settings = UpstreamSettings { affinity, ..settings("sessions_moving") };
        let service = gateway(&federation, settings);
        // Such a caller provides its roots in input responses, so only a call opens its session.
        let ann = RecordingClient::new(&service, "ann", Era::Stateless, &json!({"roots": {}}));
        ann.tools().await;
        let before = SESSIONS.load(Ordering::Relaxed);
        let subscribed = ann.ask(Operation::Subscribe { uri: "a://b".to_owned() }).await;
        assert!(matches!(subscribed, Outcome::Complete(_)), "{subscribed:?}");
        assert_eq!(SESSIONS.load(Ordering::Relaxed), before, "no session is opened");
        let updated = Change::Resource("a://b".to_owned());
        ann.call("update").await.unwrap();
        assert_eq!(ann.told().await, std::slice::from_ref(&updated), "{affinity:?}");

        ann.call("end").await.unwrap();
        delay(Duration::from_secs(60)).await;
        assert!(ann.told().await.contains(&updated), "the resource may have changed: {affinity:?}");
        ann.call("update").await.unwrap();
        assert_eq!(ann.told().await, std::slice::from_ref(&updated), "in the next session");
        service.registry().subscription_ended("a://b", ann.outlet.connection_id());
        delay(2 * UNSUBSCRIBE_DELAY).await;
        ann.call("update").await.unwrap();
        assert_eq!(ann.told().await, [], "no subscription is left");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_outside_of_a_call_reaches_the_session_of_its_caller_and_no_other() {
    for affinity in [Affinity::Principal, Affinity::Single, Affinity::Shared] {
        let federation = Federation::default();
        let settings = UpstreamSettings { affinity, ..settings("sessions_logging") };
        let service = gateway(&federation, settings);
        let ann = RecordingClient::new(&service, "ann", Era::Handshake, &json!({}));
        let bob = RecordingClient::new(&service, "bob", Era::Handshake, &json!({}));
        bob.call("whoami").await.unwrap();
        let said = ann.call("log").await.unwrap();
        timeout(Duration::from_secs(5), std::future::pending::<()>()).await.unwrap_err();
        let heard = |client: &RecordingClient<'_>| client.outlet.0.lock().unwrap().clone();
        let expected = match affinity {
            // It may concern a call of another caller.
            Affinity::Shared => Vec::new(),
            _ => vec![format!("{:?}", said.replace("log in ", ""))],
        };
        assert_eq!(heard(&ann), expected, "{affinity:?}");
        if affinity == Affinity::Principal {
            assert!(heard(&bob).is_empty(), "the session belongs to Ann");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_outside_of_a_call_passes_the_layers_of_the_upstream_and_of_the_server() {
    let redact = |pattern: &str| {
        let redactor = Redactor::new(&[pattern.to_owned()], &[], "[redacted]").unwrap();
        Redact::new(redactor, RedactScope::Results)
    };
    let federation = Federation::default();
    let chain = Chain::new(vec![Arc::new(redact("session"))]);
    let server = Server::new("gateway").with(redact("[0-9]+")).with(federation.layer());
    let service = server.start();
    let settings = UpstreamSettings { chain, ..settings("sessions_redacted") };
    federation.start_upstreams(vec![settings], &service.registry(), false);
    let ann = RecordingClient::new(&service, "ann", Era::Handshake, &json!({}));
    ann.call("log").await.unwrap();
    timeout(Duration::from_secs(5), std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(*ann.outlet.0.lock().unwrap(), ["\"[redacted] [redacted]\""]);
}
