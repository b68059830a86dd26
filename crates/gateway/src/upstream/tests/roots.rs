//! Tests of requests for roots outside of calls. The upstream is in this process and has the root of its command line
//! until a client provides another one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use creole::client::Program;
use creole::internal::call::{ClientChannel, Origin};
use creole::proto::model::InputRequest;
use creole::proto::operation::{Caller, Event, Operation, Payload};
use creole::proto::revision::{Era, Revision};
use creole::proto::server::{Call as Started, CallKey, InputResponse};
use creole::stream::MemoryConnection;
use creole::{Server, Service};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::*;
use crate::federation::Federation;
use crate::layers::testing::plain_caller;
use crate::upstream::connections::connector;

/// Serves one session.
async fn folders(mut client: MemoryConnection) {
    let (mut rest, mut folder, mut asked) = (Vec::new(), "the argument".to_owned(), 0);
    while let Some(bytes) = client.receive().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            let mut messages = Vec::new();
            let question = |asked| json!({"jsonrpc": "2.0", "id": asked, "method": "roots/list"});
            let (id, tool) = (&message["id"], message["params"]["name"].as_str());
            let result = match message["method"].as_str() {
                Some("initialize") => Some(json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                })),
                Some("notifications/initialized" | "notifications/roots/list_changed") => {
                    asked += 1;
                    messages.push(question(asked));
                    None
                }
                Some("tools/list") => Some(json!({"tools": [
                    {"name": "where", "inputSchema": {"type": "object"}},
                    {"name": "ask", "inputSchema": {"type": "object"}},
                ]})),
                Some("tools/call") => {
                    let text = folder.clone();
                    if tool == Some("ask") {
                        // It does not wait for the response.
                        (asked, folder) = (asked + 1, "nothing".to_owned());
                        messages.push(question(asked));
                    }
                    Some(json!({"content": [{"type": "text", "text": text}]}))
                }
                Some(_) => (!id.is_null()).then(|| json!({})),
                None => {
                    if let Some(uri) = message["result"]["roots"][0]["uri"].as_str() {
                        folder = uri.to_owned();
                    }
                    None
                }
            };
            messages
                .extend(result.map(|value| json!({"jsonrpc": "2.0", "id": id, "result": value})));
            let output: String = messages.iter().map(|value| format!("{value}\n")).collect();
            if !output.is_empty() {
                // A client that has left receives nothing.
                _ = client.send(output.as_bytes()).await;
            }
        }
    }
}

/// A client that provides one root.
struct Client {
    origin: Origin,
    root: Mutex<String>,
    changes: watch::Sender<()>,
    /// The number of requests for roots, in calls and outside of them.
    asked: AtomicUsize,
    told: tokio::sync::Notify,
}

impl Client {
    fn new(principal: &str, root: &str) -> Arc<Self> {
        Arc::new(Self {
            origin: Origin::new(principal.into()),
            root: Mutex::new(root.to_owned()),
            changes: watch::Sender::new(()),
            asked: AtomicUsize::new(0),
            told: tokio::sync::Notify::new(),
        })
    }

    fn answer(&self, input_request: &InputRequest) -> InputResponse {
        assert_eq!(*input_request, InputRequest::Roots);
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.told.notify_one();
        let uri = self.root.lock().unwrap().clone();
        Ok(Raw::from_value(&json!({"roots": [{"uri": uri}]})))
    }

    async fn call(self: &Arc<Self>, service: &Service, tool: &str) -> String {
        let declared = r#"{"roots":{"listChanged":true}}"#;
        let declared = creole::proto::wire::Object::new(declared).unwrap();
        let caller = Caller {
            rules: Revision::newest(Era::Handshake).rules(),
            capabilities: Arc::new(ClientCapabilities::read(declared)),
            ..plain_caller()
        };
        let operation = Operation::CallTool { name: tool.to_owned(), arguments: None };
        let started = Started { key: CallKey(1), operation, caller };
        let outcome =
            service.start_call(started, Arc::clone(self) as _, self.origin.clone()).0.await;
        let Outcome::Complete(Payload::Relayed(relayed)) = outcome else { panic!("{outcome:?}") };
        let result: Value = serde_json::from_str(relayed.result().as_str()).unwrap();
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Changes the root, and waits until the server requested it.
    async fn change(&self, root: &str) {
        root.clone_into(&mut self.root.lock().unwrap());
        // Discards an older request.
        _ = tokio::time::timeout(Duration::ZERO, self.told.notified()).await;
        self.changes.send_replace(());
        let asked = tokio::time::timeout(Duration::from_secs(5), self.told.notified()).await;
        assert!(asked.is_ok(), "the server has not requested {root}");
    }
}

impl ClientChannel for Client {
    fn send_event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request_input(
        &self,
        _: CallKey,
        input_request: InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(std::future::ready(self.answer(&input_request)))
    }

    fn request_session_input(
        &self,
        input_request: InputRequest,
    ) -> oneshot::Receiver<InputResponse> {
        let (answer, waiting) = oneshot::channel();
        _ = answer.send(self.answer(&input_request));
        waiting
    }

    fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        Some(self.changes.subscribe())
    }
}

fn gateway(federation: &Federation, name: &str, affinity: Affinity) -> Service {
    connector::in_process::register(name, folders);
    let settings = UpstreamSettings {
        affinity,
        revisions: RevisionChoice::Revision(Revision::newest(Era::Handshake).rules()),
        ..UpstreamSettings::new(Address::Child(Program::new(name, "none")))
    };
    let service = Server::new("gateway").with(federation.layer()).start();
    federation.start_upstreams(vec![settings], &service.registry(), false);
    service
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_requests_roots_outside_of_calls_has_them_before_the_first_call() {
    for affinity in [Affinity::Single, Affinity::Principal, Affinity::Session] {
        let (federation, name) = (Federation::default(), format!("roots first {affinity:?}"));
        let service = gateway(&federation, &name, affinity);
        let ada = Client::new("ada", "file:///ada");
        assert_eq!(ada.call(&service, "where").await, "file:///ada", "{affinity:?}");
        ada.change("file:///other").await;
        assert_eq!(ada.call(&service, "where").await, "file:///other", "{affinity:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn roots_of_one_client_are_requested_from_no_other() {
    let federation = Federation::default();
    let service = gateway(&federation, "roots of two", Affinity::Principal);
    let (ada, again, eve) = (
        Client::new("ada", "file:///ada"),
        Client::new("ada", "file:///again"),
        Client::new("eve", "file:///eve"),
    );
    for client in [&ada, &again, &eve] {
        assert_eq!(client.call(&service, "where").await, *client.root.lock().unwrap().clone());
    }
    let before = [&again, &eve].map(|client| client.asked.load(Ordering::Relaxed));
    ada.change("file:///new").await;
    assert_eq!(ada.call(&service, "where").await, "file:///new");
    assert_eq!(again.call(&service, "where").await, "file:///again");
    assert_eq!(eve.call(&service, "where").await, "file:///eve");
    assert_eq!([&again, &eve].map(|client| client.asked.load(Ordering::Relaxed)), before);
}

#[tokio::test(start_paused = true)]
async fn roots_that_were_asked_for_in_vain_are_asked_for_before_the_next_call() {
    for affinity in [Affinity::Single, Affinity::Principal] {
        let (federation, name) = (Federation::default(), format!("roots in vain {affinity:?}"));
        let service = gateway(&federation, &name, affinity);
        let ada = Client::new("ada", "file:///ada");
        assert_eq!(ada.call(&service, "ask").await, "file:///ada");
        assert_eq!(ada.call(&service, "where").await, "file:///ada");
    }
}
