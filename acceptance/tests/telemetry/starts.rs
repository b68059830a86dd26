//! Tests of the trace context that a program gets when an upstream starts.

use std::fs;
use std::path::Path;

use creole_acceptance::peers::otlp::receiver;
use creole_acceptance::process_under_test::Server;
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::{INTERNAL, PARENT, TRACE_ID, command, exporting};

/// An upstream whose program writes its trace context into a file.
fn upstream(file: &Path, keys: &str) -> String {
    let binary = binary().unwrap();
    let script = format!(
        "printf '%s|%s\\n' \"$TRACEPARENT\" \"$TRACESTATE\" >> '{}'; exec '{}' serve --stdio --preset everything",
        file.display(),
        binary.display()
    );
    let command = json!(["sh", "-c", script]);
    format!(
        "[server]\nname = \"g\"\n[upstreams.child]\ncommand = {command}\nprefix = \"\"\n{keys}\n"
    )
}

/// The contexts of the programs that were started so far.
fn contexts(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_program_gets_the_span_of_its_start() {
    let Some(receiver) = receiver(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contexts");
    let always = exporting(&receiver, "[telemetry.traces]\nsample = 1");
    let config = upstream(&file, "affinity = \"request\"") + &always;
    let (command, _data) = command(&config, &["--stdio"]);
    let mut server = Server::start_command(command).greeted();
    let is_context = |context: &str| {
        receiver.spans("upstream start").into_iter().find(|span| {
            let [trace, id] = ["trace_id", "span_id"].map(|key| span[key].as_str().unwrap());
            context.starts_with(&format!("00-{trace}-{id}-01|"))
        })
    };
    let own = eventually("the gateway's own start", || contexts(&file).first().cloned());
    let span = eventually("the span of the start", || is_context(&own));
    assert_eq!(span["kind"], INTERNAL, "{span:#}");
    assert!(own.ends_with('|'), "{own}");

    let params = json!({
        "name": "test_simple_text", "arguments": {},
        "_meta": {"traceparent": PARENT, "tracestate": "a=1"},
    });
    assert!(server.request("tools/call", &params)["result"].is_object());
    let started = contexts(&file);
    let of_call = started.iter().find(|context| context.contains(TRACE_ID)).cloned();
    let of_call = of_call.unwrap_or_else(|| panic!("{started:?}"));
    assert!(of_call.ends_with("|a=1"), "{of_call}");
    let span = eventually("the span of the start for the call", || is_context(&of_call));
    assert_eq!(span["attributes"]["creole.upstream"], "child", "{span:#}");
}

#[test]
fn a_program_gets_no_context_from_an_unsampled_start_or_without_propagation() {
    let Some(receiver) = receiver(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [always, never] =
        [1, 0].map(|it| exporting(&receiver, &format!("[telemetry.traces]\nsample = {it}")));
    for (number, (keys, tables)) in
        [("propagate = false", &*always), ("", &*never), ("", "")].into_iter().enumerate()
    {
        let file = folder.path().join(number.to_string());
        let (mut command, _data) = command(&(upstream(&file, keys) + tables), &["--stdio"]);
        // That of the process itself does not reach its programs.
        command.env("TRACEPARENT", PARENT);
        let mut server = Server::start_command(command).greeted();
        assert!(server.call("test_simple_text", &json!({}))["result"].is_object());
        assert_eq!(contexts(&file), ["|"], "{keys} {tables}");
    }
}
