//! `creole trace`: prints what happened in one call: the request, the layers, the upstreams and the translation.

use creole_admin::AdminClient;
use serde_json::Value;
use tokio::runtime::Builder;

use super::top::{duration, escaped};
use super::{client, failure};
use crate::args::TraceArgs;
use crate::failure::Failure;
use crate::instance::runtime;
use crate::output;
use crate::output::printable;

/// Runs the verb.
pub(crate) fn run(args: &TraceArgs) -> Result<(), Failure> {
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let done = runtime.block_on(async {
        let client = client(&args.admin).await?;
        follow(&client, args).await
    });
    runtime.shutdown_background();
    done
}

async fn follow(client: &AdminClient, args: &TraceArgs) -> Result<(), Failure> {
    let filter = filter(args);
    // The stream is open before the list is read, so that no call is missed in between.
    let mut events = client.events(&format!("/calls?live=1{filter}")).await.map_err(failure)?;
    if !args.next && !args.follow {
        let last = client.get(&format!("/calls?limit=100{filter}")).await.map_err(failure)?;
        let mut calls = last["items"].as_array().into_iter().flatten();
        if let Some(call) = calls.find(|call| is_meant(call, args)) {
            return show(client, call, args.json).await;
        }
    }
    if !args.json {
        output::show_status("waiting for a call");
    }
    while let Some((name, data)) = events.next().await.map_err(failure)? {
        if name != "calls" {
            break;
        }
        if let Some(missed) = data["missed"].as_u64().filter(|missed| *missed > 0) {
            output::write_message(&format!("creole: {missed} calls were missed"));
        }
        let calls = data["items"].as_array().into_iter().flatten();
        for call in calls.filter(|call| is_meant(call, args)) {
            show(client, call, args.json).await?;
            if !args.follow {
                return Ok(());
            }
        }
    }
    let ended = "the admin listener ended the stream; the process may be shutting down";
    Err(Failure::Call(ended.to_owned()))
}

/// Whether a call has ended and is meant. The work of the gateway itself is not meant, and neither is the start of a
/// session or a list, unless a method is wanted.
fn is_meant(call: &Value, args: &TraceArgs) -> bool {
    let has_target = call["target"].as_str().is_some_and(|target| !target.is_empty());
    let is_wanted = has_target || args.method.is_some();
    is_wanted && call["state"] == "ended" && call["via"] != "gateway"
}

fn filter(args: &TraceArgs) -> String {
    let parts = [
        ("target", &args.tool),
        ("upstream", &args.upstream),
        ("principal", &args.principal),
        ("method", &args.method),
    ];
    let part = |(name, value): (&str, &Option<String>)| {
        value.as_ref().map(|value| format!("&{name}={}", escaped(value)))
    };
    parts.into_iter().filter_map(part).collect()
}

async fn show(client: &AdminClient, call: &Value, as_json: bool) -> Result<(), Failure> {
    let id = call["id"].as_str().unwrap_or_default();
    let call = client.get(&format!("/calls/{id}")).await.map_err(failure)?;
    match as_json {
        true => output::write_data(&format!("{call}\n")),
        false => output::write_data(&format!("{}\n", lines(&call).join("\n"))),
    }
}

/// The lines of a call.
fn lines(call: &Value) -> Vec<String> {
    let text = |member: &str| call[member].as_str().unwrap_or_default();
    let mut revisions = text("revision").to_owned();
    if let Some(other) = call["upstream_revision"].as_str() {
        revisions = format!("{revisions} -> {other} ({})", translation(text("translation")));
    }
    let outcome = match (call["fault"].as_str(), call["code"].as_i64()) {
        (Some(fault), Some(code)) => format!("{fault} ({code})"),
        (Some(fault), None) => fault.to_owned(),
        _ => text("outcome").to_owned(),
    };
    let title = format!(
        "{} {} {}   {revisions}   {}   {outcome}",
        text("id").get(..8).unwrap_or_default(),
        text("method"),
        text("target"),
        duration(&call["duration_ms"]),
    );
    let client = ["name", "version"].map(|part| call["client"][part].as_str().unwrap_or_default());
    let client = match client {
        ["", _] => "unknown".to_owned(),
        client => client.join(" ").trim_end().to_owned(),
    };
    let mut lines = vec![printable(&title)];
    lines.push(printable(&format!(
        "  client     {client} as {} over {}, server {}, {}",
        text("principal"),
        text("transport"),
        text("server"),
        text("started"),
    )));
    for (label, member) in [("denied by", "denied_by"), ("trace", "trace")] {
        if let Some(value) = call[member].as_str() {
            lines.push(printable(&format!("  {label:<10} {value}")));
        }
    }
    let steps = call["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    lines.extend(steps.iter().map(|step| printable(&step_line(step, depth(step, steps)))));
    lines
}

/// The translation between two revisions, in words.
fn translation(name: &str) -> &str {
    match name {
        "none" => "not translated",
        name => name,
    }
}

/// How deep a step is among the steps of its call.
fn depth(step: &Value, steps: &[Value]) -> usize {
    let (mut depth, mut parent) = (0, step["parent"].as_u64());
    while let Some(index) = parent.and_then(|index| usize::try_from(index).ok()) {
        depth += 1;
        // A parent comes before its parts, so this ends.
        parent = steps
            .get(index)
            .and_then(|step| step["parent"].as_u64())
            .filter(|it| (*it as usize) < index);
    }
    depth
}

fn step_line(step: &Value, depth: usize) -> String {
    let text = |member: &str| step[member].as_str().unwrap_or_default();
    let what = match text("kind") {
        "layer" => {
            let attempts = step["attempts"].as_u64().unwrap_or(0);
            let times = if attempts > 1 { format!(" {attempts} times") } else { String::new() };
            let name = step["name"].as_str().unwrap_or(text("layer"));
            format!("layer {name}: {}{times}", text("decision"))
        }
        "upstream_request" => format!(
            "upstream {}: {} {} ({}, {}, {})",
            text("upstream"),
            text("method"),
            text("target"),
            text("revision"),
            text("transport"),
            translation(text("translation")),
        ),
        "input_request" => format!("input request {} in round {}", text("input"), step["round"]),
        "parked" => format!("parked: {}", text("end")),
        "upstream_start" => format!("start of {}, attempt {}", text("upstream"), step["attempt"]),
        other => other.to_owned(),
    };
    let error =
        step["error"].as_str().map(|error| format!("  failed: {error}")).unwrap_or_default();
    format!(
        "  {:>9} {:>9}  {}{what}{error}",
        format!("+{}", duration(&step["start_ms"])),
        duration(&step["duration_ms"]),
        "  ".repeat(depth),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_shown_with_its_steps_in_order() {
        let call = json!({
            "id": "7f3a0000000000000000000000000000", "method": "tools/call", "target": "wiki_search",
            "revision": "2026-07-28", "upstream_revision": "2025-06-18", "translation": "parked",
            "duration_ms": 1204.1, "outcome": "success", "principal": "anna", "transport": "http",
            "server": "team", "started": "2026-11-18T10:00:00.000Z",
            "client": {"name": "inspector\u{1b}[2J", "version": "1"},
            "steps": [
                {"index": 0, "start_ms": 0.031, "duration_ms": 1204.0, "kind": "layer", "layer": "retry",
                 "decision": "retried", "attempts": 2},
                {"index": 1, "parent": 0, "start_ms": 0.1, "duration_ms": 3.0, "kind": "upstream_request",
                 "upstream": "wiki", "method": "tools/call", "target": "search", "revision": "2025-06-18",
                 "transport": "stdio", "translation": "parked", "error": "timeout"}],
        });
        let lines = lines(&call);
        assert_eq!(
            lines[0],
            "7f3a0000 tools/call wiki_search   2026-07-28 -> 2025-06-18 (parked)   1.2 s   success"
        );
        assert!(!lines[1].contains('\u{1b}'), "{lines:?}");
        assert_eq!(lines[2], "     +31 µs     1.2 s  layer retry: retried 2 times");
        assert_eq!(
            lines[3],
            "    +100 µs    3.0 ms    upstream wiki: tools/call search (2025-06-18, stdio, parked)  failed: timeout"
        );
    }
}
