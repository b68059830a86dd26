//! Tests of sampling messages between peers of which only one supports lists of blocks and tools.

use creole_proto::client::{CallKey, ClientEvent, OpenMode};
use creole_proto::model::{ClientCapabilities, InputRequest};
use creole_proto::revision::Revision;
use creole_proto::server;
use creole_proto::wire::{Object, Raw};
use serde_json::{Value, json};

use super::pair::{MachinePair, opening};
use super::plain::{endpoint, tool};

/// A call at a server of this revision that sends a sampling request with these params.
fn call_with_sampling(mode: OpenMode, params: &Value) -> (MachinePair, CallKey) {
    let mut pair = MachinePair::open("spec", mode, endpoint);
    pair.events.clear();
    pair.hold();
    let call = pair.call(tool("t"));
    let started = pair.started.remove(0).key;
    let input_request = InputRequest::Sample { params: Raw::from_value(params) };
    pair.server
        .request_input(started, &input_request, None, pair.now, &mut pair.to_server)
        .unwrap();
    pair.exchange();
    (pair, call)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The messages of the sampling request that reached the client.
fn sampling_request(pair: &mut MachinePair) -> Value {
    let Some(ClientEvent::InputRequested { request: InputRequest::Sample { params }, .. }) =
        pair.events.last()
    else {
        panic!("{:?}", pair.events)
    };
    serde_json::from_str::<Value>(params.as_str()).unwrap()["messages"].take()
}

#[test]
fn a_list_of_blocks_is_several_messages_where_messages_have_one_each() {
    let listed = json!([{"role": "user", "content": [text("a"), text("b")]}]);
    let apart = json!([
        {"role": "user", "content": text("a")}, {"role": "user", "content": text("b")},
    ]);
    for (revision, expected) in [
        (Revision::V2024_11_05, &apart),
        (Revision::V2025_06_18, &apart),
        (Revision::V2025_11_25, &listed),
    ] {
        let params = json!({"messages": listed, "maxTokens": 9});
        let (mut pair, _) = call_with_sampling(opening(revision), &params);
        assert_eq!(sampling_request(&mut pair), *expected, "{revision:?}");
    }
}

#[test]
fn a_model_answers_with_one_block_where_there_is_only_one() {
    let both = json!([text("a"), text("b")]);
    let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
    let mixed = json!([text("a"), image]);
    let rows = [
        (Revision::V2025_06_18, &both, Some(text("a\nb"))),
        (Revision::V2025_06_18, &mixed, None),
        (Revision::V2025_11_25, &both, Some(both.clone())),
        (Revision::V2025_11_25, &mixed, Some(mixed.clone())),
    ];
    for (revision, content, expected) in rows {
        let params = json!({"messages": [], "maxTokens": 9});
        let (mut pair, _) = call_with_sampling(opening(revision), &params);
        let Some(ClientEvent::InputRequested { key, .. }) = pair.events.pop() else { panic!() };
        let response = json!({"role": "assistant", "content": content, "model": "m"});
        pair.client.respond(key, Ok(Raw::from_value(&response)), &mut pair.to_client);
        pair.carry();
        let Some(server::Action::InputResponse(_, received)) = pair.to_server.next_action() else {
            panic!("{revision:?}: {content}")
        };
        let received =
            received.ok().map(|value| serde_json::from_str::<Value>(value.as_str()).unwrap());
        assert_eq!(received.map(|mut value| value["content"].take()), expected, "{revision:?}");
    }
}

#[test]
fn tools_are_offered_only_to_a_model_whose_client_supports_them() {
    let tools = json!({"messages": [], "maxTokens": 9, "tools": [{"name": "t"}]});
    let rows = [
        (Revision::V2025_11_25, r#"{"sampling":{"tools":{}}}"#, true),
        (Revision::V2025_11_25, r#"{"sampling":{}}"#, false),
        (Revision::V2025_06_18, r#"{"sampling":{"tools":{}}}"#, false),
    ];
    for (revision, text, is_asked) in rows {
        let capabilities = ClientCapabilities::read(Object::new(text).unwrap()).into();
        let mode = OpenMode::Handshake { proposed_rules: revision.rules(), capabilities };
        let (pair, call) = call_with_sampling(mode, &tools);
        let event = pair.events.last();
        match is_asked {
            true => assert!(matches!(event, Some(ClientEvent::InputRequested { .. })), "{event:?}"),
            false => assert!(
                matches!(event, Some(ClientEvent::InputNotOffered { call: Some(by), .. }) if *by == call),
                "{revision:?} {text}: {event:?}"
            ),
        }
    }
}
