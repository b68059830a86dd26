//! Tests of the log: the ids of traces in it, and its export.

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::peers::otlp::receiver;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{exporting, listen};

#[test]
fn events_of_a_sampled_call_name_its_trace_in_the_log_and_in_the_export() {
    let Some(receiver) = receiver(&[]) else { return };
    let tables =
        exporting(&receiver, "[telemetry.traces]\nsample = 1\n[telemetry.logs]\notlp = true");
    let config = format!(
        "[server]\nname = \"main\"\npacks = [\"echo\"]\n[log]\nlevel = \"info\"\nformat = \"json\"\n{tables}"
    );
    let (server, _folder) = listen(&config);
    let client = StatelessClient::new(server.address());
    assert!(client.call("echo", json!({"message": "hi"}))["result"].is_object());
    let span = receiver.span("tools/call echo");
    let is_tool = |log: &Value| log["body"] == "tool invoked";
    let record =
        eventually("the exported event", || receiver.items("log").into_iter().find(is_tool));
    assert_eq!((&record["trace_id"], &record["span_id"]), (&span["trace_id"], &span["span_id"]));
    assert_eq!((&record["attributes"]["tool"], &record["severity"]), (&json!("echo"), &json!(9)));
    let lines = server.log();
    let line = lines.lines().find(|line| line.contains("tool invoked")).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&line["trace_id"], &line["span_id"]),
        (&span["trace_id"], &span["span_id"]),
        "{line}"
    );
}
