//! A trace through a client and a server with the OpenTelemetry SDK of Python, across the eras.

use std::fs;

use creole_acceptance::peers::otlp::{Receiver, call_traced, receiver, traced_server};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{CLIENT, INTERNAL, SERVER, attribute, exporting, is_part_of, listen};

/// The spans of a call through the gateway, once all have arrived.
fn spans(receiver: &Receiver, kind: u64, count: usize) -> Vec<Value> {
    let of_kind = || -> Vec<Value> {
        let spans = receiver.spans("tools/call greet").into_iter();
        spans.filter(|span| span["kind"] == kind).collect()
    };
    eventually(
        || format!("{count} spans of kind {kind}: {:#?}", receiver.items("span")),
        || Some(of_kind()).filter(|spans| spans.len() >= count),
    )
}

#[test]
fn one_trace_crosses_the_eras_and_its_rounds_are_linked() {
    let Some(receiver) = receiver(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server-spans.txt");
    let command: Vec<String> = traced_server(&file)
        .unwrap()
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let upstream = format!(
        "[upstreams.traced]\ncommand = {}\nprefix = \"\"\nrevision = \"2025-06-18\"\nenv_pass = [\"PATH\"]\n",
        json!(command)
    );
    let traces = exporting(&receiver, "[telemetry.traces]\nsample = 0\nparent = \"client\"");
    let (server, _folder) = listen(&format!("[server]\nname = \"g\"\n{upstream}{traces}"));
    let told = call_traced(&server.url(), "greet", &json!({})).unwrap();
    assert_eq!(told["text"], json!(["Hello, Ada!"]), "{told:#}");

    let of_client = told["spans"].as_array().unwrap();
    let find = |id: &Value| of_client.iter().find(|span| span["span_id"] == *id);
    let trace_id = &of_client[0]["trace_id"];
    let rounds = spans(&receiver, SERVER, 2);
    let [first, second] = &rounds[..] else { panic!("{rounds:#?}") };
    for round in [first, second] {
        assert_eq!(round["trace_id"], *trace_id);
        assert!(find(&round["parent"]).is_some(), "the parent is a span of the client: {round:#}");
    }
    assert_eq!(attribute(first, "creole.outcome"), "input_required", "{first:#}");
    let link = json!({"trace_id": first["trace_id"], "span_id": first["span_id"]});
    assert!(second["links"].as_array().unwrap().contains(&link), "{second:#}");

    let requests = spans(&receiver, CLIENT, 1);
    let request = &requests[0];
    assert_eq!(request["trace_id"], *trace_id);
    eventually("the spans between", || is_part_of(&receiver, request, first));
    assert_eq!(attribute(request, "creole.translation"), "parked", "{request:#}");
    assert_eq!(attribute(request, "mcp.protocol.version"), "2025-06-18");
    let parked = receiver.span("parked");
    assert_eq!(
        (&parked["kind"], attribute(&parked, "creole.parked.end")),
        (&json!(INTERNAL), &json!("resumed"))
    );

    let of_server = || -> Vec<Value> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let is_child =
        |span: &Value| span["parent"] == request["span_id"] && span["trace_id"] == *trace_id;
    eventually(|| format!("{:#?}", of_server()), || of_server().iter().any(is_child));
}
