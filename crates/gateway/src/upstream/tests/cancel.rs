//! Tests that an upstream receives the reason of a cancelled call that may be parked.

use std::sync::Mutex;

use creole::client::Program;
use creole::internal::call::Origin;
use creole::proto::operation::{Caller, Operation};
use creole::proto::revision::Revision;
use creole::proto::server::{Call as Started, CallKey};
use creole::stream::MemoryConnection;
use creole::{Server, Service};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::layers::testing::{SilentChannel, plain_caller};
use crate::upstream::connections::connector;

/// The messages about calls that the server receives.
static HEARD: Mutex<Option<mpsc::UnboundedSender<Value>>> = Mutex::new(None);

/// A server that never responds to a call.
async fn serve(mut client: MemoryConnection) {
    let mut rest = Vec::new();
    while let Some(bytes) = client.receive().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "silent", "version": "1"},
                }),
                Some("tools/list") => {
                    json!({"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]})
                }
                Some("tools/call" | "notifications/cancelled") => {
                    _ = HEARD.lock().unwrap().as_ref().unwrap().send(message);
                    continue;
                }
                _ => continue,
            };
            let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            _ = client.send(format!("{text}\n").as_bytes()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_upstream_of_a_parked_call_gets_the_reason_of_its_cancellation() {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    *HEARD.lock().unwrap() = Some(sender);
    connector::in_process::register("cancel_reason", serve);
    let service: Service = Server::new("gateway").start();
    let address = Address::Child(Program::new("cancel_reason", "none"));
    let mut settings = UpstreamSettings::new(address);
    settings.revisions =
        RevisionChoice::Revision(Revision::from_name("2025-06-18").unwrap().rules());
    let upstream = Upstream::start(settings, &service.registry(), true);
    upstream.startup.wait_until_tried().await;
    let capabilities = ClientCapabilities { elicitation_form: true, ..Default::default() };
    let caller = Caller { capabilities: Arc::new(capabilities), ..plain_caller() };
    let operation = Operation::CallTool { name: "wait".to_owned(), arguments: None };
    let started = Started { key: CallKey(1), operation, caller };
    let (call, canceller) =
        service.start_call(started, Arc::new(SilentChannel), Origin::sessionless("ann".into()));
    let call = tokio::spawn(call);
    assert_eq!(receiver.recv().await.unwrap()["method"], "tools/call");
    canceller.cancel_with_reason("enough");
    call.abort();
    let message = receiver.recv().await.unwrap();
    assert_eq!(message["params"]["reason"], "enough", "{message}");
}
