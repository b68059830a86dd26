//! Calls of a session that wait at one replica, and messages about them that arrive at others.

use std::net::SocketAddr;
use std::time::Duration;

use creole_acceptance::gateway::{HandshakeClient, ScriptedChildren, ScriptedReplies};
use creole_acceptance::replicas::{ReplicaSet, each_store};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::event_stream::EventStream;

/// The revisions, each with a tool that requests input, its arguments, and what the client can.
fn asking() -> [(&'static str, &'static str, Value, Value); 3] {
    let elicitation =
        || ("test_elicitation", json!({"message": "Who?"}), json!({"elicitation": {}}));
    let sampling = ("test_sampling", json!({"prompt": "Why?"}), json!({"sampling": {}}));
    let with = |revision, (tool, arguments, can)| (revision, tool, arguments, can);
    [
        with("2025-03-26", sampling),
        with("2025-06-18", elicitation()),
        with("2025-11-25", elicitation()),
    ]
}

/// An input response with this text.
fn input(request: &Value, text: &str) -> Value {
    let result = match request["method"].as_str() {
        Some("elicitation/create") => {
            json!({"action": "accept", "content": {"username": text, "email": "a@b.c"}})
        }
        _ => json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "m"}),
    };
    json!({"jsonrpc": "2.0", "id": request["id"], "result": result})
}

/// A call that waits for input: its stream, and the input request.
#[track_caller]
fn ask(
    client: &HandshakeClient,
    at: SocketAddr,
    tool: &str,
    arguments: &Value,
) -> (EventStream, Value) {
    let call = client.at(at).written_call(&json!(1), tool, arguments.clone());
    let mut stream = EventStream::open(at, &call);
    let request = stream.next().expect("an input request");
    assert!(request["method"].is_string(), "{request}");
    (stream, request)
}

#[test]
fn input_requests_of_a_session_are_answered_at_any_replica() {
    each_store(|store| {
        let everything = "[server]\nname = \"replicated\"\npacks = [\"everything\"]\n";
        let replicas = ReplicaSet::start(&store, everything, 3);
        let [first, second, third] = [0, 1, 2].map(|index| replicas.address(index));
        for (revision, tool, arguments, capabilities) in asking() {
            let client = HandshakeClient::open(third, revision, capabilities, None);
            // Two calls of one session wait at two replicas, and each answer arrives elsewhere.
            let (mut one, who) = ask(&client, first, tool, &arguments);
            let (mut other, whose) = ask(&client, second, tool, &arguments);
            assert_ne!(who["id"], whose["id"], "an id is used once in a session");
            client.at(second).tell(&input(&who, "Ann"));
            client.at(third).tell(&input(&whose, "Eve"));
            for (stream, name) in [(&mut one, "Ann"), (&mut other, "Eve")] {
                let response = stream.next().expect("a response");
                assert!(crate::text(&response).contains(name), "{response}");
                assert_eq!(stream.next(), None);
            }
            // An answer to nothing is refused everywhere, and ends no session.
            for address in replicas.addresses() {
                let refused = client.at(address).exchange(&input(&who, "Bob"));
                assert_eq!(refused.head.status, 400, "{}", refused.text());
            }
            let refused = client.exchange(&input(&json!({"id": "other"}), "Bob"));
            assert_eq!(refused.head.status, 400, "{}", refused.text());
        }
    });
}

#[test]
fn a_call_of_a_session_is_cancelled_at_any_replica() {
    each_store(|store| {
        let asking = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"]);
        let children = ScriptedChildren::new(asking);
        let gateway = format!(
            "[server]\nname = \"g\"\n[upstreams.behind]\nprefix = \"\"\ncommand = {}\n",
            json!(children.command())
        );
        let replicas = ReplicaSet::start(&store, &gateway, 2);
        let [first, second] = [0, 1].map(|index| replicas.address(index));
        let client = HandshakeClient::open(first, "2025-11-25", json!({}), None);
        let call = client.written_call(&json!("seven"), "work", json!({}));
        // The response becomes a stream when the call takes long.
        let mut stream = EventStream::open(first, &call);
        let received = children.hears("tools/call");
        let params = json!({"requestId": "seven", "reason": "enough"});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        // The replicas know of each other within some seconds.
        let cancelled = eventually("the upstream hears of the cancellation", || {
            client.at(second).tell(&cancel);
            children.within(Duration::from_millis(200))
        });
        assert_eq!(cancelled.message["method"], "notifications/cancelled", "{}", cancelled.message);
        assert_eq!(cancelled.message["params"]["requestId"], received.message["id"]);
        assert_eq!(stream.next(), None, "a cancelled call has no response");
    });
}
