//! Tests of invalid input responses: a parked call keeps waiting for valid ones.

use creole::client::Program;
use creole::internal::call::Origin;
use creole::proto::operation::{Caller, InputResponses, Operation, Payload};
use creole::proto::revision::Revision;
use creole::proto::server::{Call as Started, CallKey};
use creole::stream::MemoryConnection;
use creole::{Server, Service};
use serde_json::{Value, json};

use super::*;
use crate::layers::testing::{SilentChannel, plain_caller};
use crate::upstream::connections::connector;

/// A server that requests a name during its tool call and returns the response.
async fn serve(mut client: MemoryConnection) {
    let (mut rest, mut request) = (Vec::new(), Value::Null);
    while let Some(bytes) = client.receive().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let message: Value = serde_json::from_slice(&line).unwrap();
            let answer = |id: &Value, result| json!({"jsonrpc": "2.0", "id": id, "result": result});
            let output = match message["method"].as_str() {
                Some("tools/call") => {
                    request = message["id"].clone();
                    let params = json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
                    json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
                }
                Some("initialize") => answer(
                    &message["id"],
                    json!({
                        "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                        "serverInfo": {"name": "asking", "version": "1"},
                    }),
                ),
                Some("tools/list") => {
                    let tool = json!({"name": "ask", "inputSchema": {"type": "object"}});
                    answer(&message["id"], json!({"tools": [tool]}))
                }
                Some(_) => continue,
                None => {
                    let text = message["result"].to_string();
                    answer(&request, json!({"content": [{"type": "text", "text": text}]}))
                }
            };
            if client.send(format!("{output}\n").as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn call(service: &Service, reentry: Option<InputResponses>) -> Outcome {
    let capabilities = ClientCapabilities { elicitation_form: true, ..Default::default() };
    let caller =
        Caller { capabilities: Arc::new(capabilities), input_responses: reentry, ..plain_caller() };
    let operation = Operation::CallTool { name: "ask".to_owned(), arguments: None };
    let started = Started { key: CallKey(1), operation, caller };
    service.start_call(started, Arc::new(SilentChannel), Origin::sessionless("ann".into())).0.await
}

#[tokio::test(start_paused = true)]
async fn an_invalid_input_response_is_refused_and_a_valid_one_still_counts() {
    connector::in_process::register("asking", serve);
    let service = Server::new("gateway").start();
    let mut settings = UpstreamSettings::new(Address::Child(Program::new("asking", "none")));
    settings.revisions =
        RevisionChoice::Revision(Revision::from_name("2025-06-18").unwrap().rules());
    let upstream = Upstream::start(settings, &service.registry(), true);
    upstream.startup.wait_until_tried().await;
    let Outcome::InputRequired { requests: input_requests, request_state: state } =
        call(&service, None).await
    else {
        panic!("no input request")
    };
    let again = |response: Value| {
        let responses = Some(Raw::from_value(&json!({input_requests[0].key.clone(): response})));
        call(&service, Some(InputResponses { responses, request_state: state.clone() }))
    };
    for invalid in
        [json!({"action": "maybe"}), json!({"action": "accept", "content": [1]}), json!({})]
    {
        let refused = again(invalid.clone()).await;
        let Outcome::Fail(fault) = refused else { panic!("{invalid}: {refused:?}") };
        assert_eq!(fault.kind, FaultKind::InvalidParams, "{invalid}: {}", fault.detail);
        assert_eq!(upstream.forwarder.parked_calls.usage().0, 1, "the call stays parked");
    }
    let answered = again(json!({"action": "accept", "content": {"name": "Ann"}})).await;
    let Outcome::Complete(Payload::Relayed(relayed)) = answered else { panic!("{answered:?}") };
    assert!(relayed.result().as_str().contains("Ann"), "{}", relayed.result().as_str());
}
