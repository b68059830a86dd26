//! A trace of a call that waits at one replica while its client returns to others.

use std::fs;

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies, StatelessClient};
use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::otlp::{Receiver, receiver};
use creole_acceptance::process_under_test::serve;
use creole_acceptance::replicas::{ReplicaStore, each_store};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{CLIENT, INTERNAL, SERVER, TRACE_ID, attribute, exporting, is_part_of};

/// The span of the client in each round.
const ROUNDS: [&str; 3] = ["1111111111111111", "2222222222222222", "3333333333333333"];

/// A gateway in front of these children, on this store.
fn replica(store: &ReplicaStore, children: &ScriptedChildren, traces: &str) -> ListeningServer {
    let upstream = format!("command = {}", json!(children.command()));
    let configuration = format!(
        "[server]\nname = \"g\"\n{}\n[upstreams.behind]\nprefix = \"\"\n{upstream}\n{traces}",
        store.table()
    );
    let file = store.folder().join("traced.toml");
    fs::write(&file, configuration).unwrap();
    let mut command =
        serve(store.folder(), &["--http", "127.0.0.1:0", &file.display().to_string()]);
    command.env("OTEL_BSP_SCHEDULE_DELAY", "20");
    ListeningServer::other(command).unwrap()
}

/// The client of one round, in the same trace.
fn client(replica: &ListeningServer, round: usize) -> StatelessClient {
    let context = format!("00-{TRACE_ID}-{}-01", ROUNDS[round]);
    StatelessClient::new(replica.address())
        .that_can(json!({"elicitation": {}}))
        .with_meta(json!({"traceparent": context}))
}

fn form(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"message": message, "requestedSchema": schema})
}

/// The input responses of a user who writes this name.
fn named(required: &Value, name: &str) -> Value {
    let keys = required["inputRequests"].as_object().unwrap().keys();
    let response = json!({"action": "accept", "content": {"name": name}});
    keys.map(|key| (key.clone(), response.clone())).collect()
}

/// The spans of this name and kind in the trace, once there are as many as expected.
fn spans(receiver: &Receiver, name: &str, kind: u64, count: usize) -> Vec<Value> {
    let is_wanted = |span: &Value| span["kind"] == kind && span["trace_id"] == TRACE_ID;
    let found = || -> Vec<Value> { receiver.spans(name).into_iter().filter(is_wanted).collect() };
    let missing = || format!("{count} spans {name}: {:#?}", receiver.items("span"));
    let found = eventually(missing, || Some(found()).filter(|found| found.len() >= count));
    assert_eq!(found.len(), count, "{found:#?}");
    found
}

/// The only one of the spans with this parent.
#[track_caller]
fn child_of<'a>(spans: &'a [Value], parent: &Value) -> &'a Value {
    let mut children = spans.iter().filter(|span| span["parent"] == *parent);
    let child = children.next().unwrap_or_else(|| panic!("no child of {parent}: {spans:#?}"));
    assert!(children.next().is_none(), "{spans:#?}");
    child
}

/// Asserts that a span is linked to another one.
#[track_caller]
fn is_linked(span: &Value, to: &Value) {
    let link = json!({"trace_id": to["trace_id"], "span_id": to["span_id"]});
    assert!(span["links"].as_array().unwrap().contains(&link), "{span:#?}");
}

#[test]
fn one_trace_crosses_the_replicas_that_a_client_returns_to() {
    each_store(|store| {
        let Some(receiver) = receiver(&[]) else { return };
        let asking = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["ask"]);
        let children = ScriptedChildren::new(asking);
        let traces = exporting(&receiver, "[telemetry.traces]\nsample = 0\nparent = \"client\"");
        let [first, second, third] = [(); 3].map(|()| replica(&store, &children, &traces));
        let mut call = client(&first, 0).begin_call("ask", json!({}));
        let received = children.hears("tools/call");
        received.by.asks(json!(1), "elicitation/create", form("Who?"));
        let required = call.answer()["result"].clone();
        let responses = named(&required, "Ann");
        let state = &required["requestState"];
        let mut retry = client(&second, 1).begin_again("ask", json!({}), state, responses);
        assert_eq!(children.next().message["result"]["content"]["name"], "Ann");
        received.by.asks(json!(2), "elicitation/create", form("Whose?"));
        let required = retry.answer()["result"].clone();
        let (state, responses) = (&required["requestState"], named(&required, "Eve"));
        let mut last = client(&third, 2).begin_again("ask", json!({}), state, responses);
        assert_eq!(children.next().message["result"]["content"]["name"], "Eve");
        received.text("done");
        assert!(last.answer().to_string().contains("done"));

        let servers = spans(&receiver, "tools/call ask", SERVER, 3);
        let rounds = ROUNDS.map(|client| child_of(&servers, &json!(client)));
        is_linked(rounds[1], rounds[0]);
        is_linked(rounds[2], rounds[0]);
        let requests = spans(&receiver, "tools/call ask", CLIENT, 3);
        let request_of = |round: &Value| {
            let parts = || requests.iter().find(|span| is_part_of(&receiver, span, round));
            eventually(|| format!("a request of {round:#?}: {requests:#?}"), parts)
        };
        let sent =
            format!("00-{TRACE_ID}-{}-01", request_of(rounds[0])["span_id"].as_str().unwrap());
        assert_eq!(received.message["params"]["_meta"]["traceparent"], sent);
        // The replica that has the call worked twice for the others.
        let worked = spans(&receiver, "replica request", INTERNAL, 2);
        let parked = spans(&receiver, "parked", INTERNAL, 2);
        for round in [rounds[1], rounds[2]] {
            let work = child_of(&worked, &request_of(round)["span_id"]);
            assert_eq!(attribute(work, "creole.via"), "replica", "{work:#?}");
            assert_eq!(attribute(work, "mcp.method.name"), "tools/call", "{work:#?}");
            is_linked(work, rounds[0]);
            let parked = child_of(&parked, &work["span_id"]);
            assert_eq!(attribute(parked, "creole.parked.end"), "resumed", "{parked:#?}");
            is_linked(parked, rounds[0]);
        }
    });
}
