//! Tests of scripts around calls and on lists.

use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{ListKind, ToolResult};
use creole_proto::operation::{Operation, Outcome, Payload};
use creole_proto::wire::Raw;
use creole_tools::script::{Script, ScriptLimits};
use serde_json::{Value, json};

use crate::script_layer::ScriptLayer;
use creole_gateway::layers::testing::{
    FlakyTools, ask, call, definition, fault, listed_names, text,
};

fn layer(script: &str) -> ScriptLayer {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("layer.js");
    std::fs::write(&file, script).unwrap();
    let limits = ScriptLimits { cpu_time: Duration::from_millis(200), ..ScriptLimits::default() };
    ScriptLayer::new(Script::load(&file, limits).unwrap())
}

fn serve(script: &str) -> (creole::Service, std::sync::Arc<FlakyTools>) {
    FlakyTools::serve(layer(script), Fault::new(FaultKind::Busy, "later"), 0)
}

fn relayed(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Complete(Payload::Relayed(relayed)) => relayed.result().decode().unwrap(),
        other => panic!("not changed: {other:?}"),
    }
}

#[tokio::test]
async fn a_script_changes_a_call_and_its_result() {
    let (service, flaky) = serve(
        "async function request(call, next) {
            if (call.method !== 'tools/call') return next(call);
            call.arguments.by = call.principal;
            const result = await next(call);
            result.content[0].text = result.content[0].text.toUpperCase();
            return result;
        }",
    );
    let outcome = call(&service, "ann", "write", r#"{"a":1}"#).await;
    assert_eq!(flaky.last_arguments(), json!({"a": 1, "by": "ann"}));
    assert_eq!(relayed(&outcome)["content"][0]["text"], "DONE");
    let read = Operation::ReadResource { uri: "test://open".to_owned() };
    assert!(matches!(ask(&service, "ann", read).await, Outcome::Complete(Payload::Contents(..))));
}

#[tokio::test]
async fn what_is_handed_on_as_it_came_stays_as_it_was_written() {
    let (service, flaky) = serve("const request = (call, next) => next(call);");
    let outcome = call(&service, "a", "read", r#"{"n":12345678901234567890,"f":1.0}"#).await;
    assert_eq!(text(&outcome), "done");
    assert_eq!(flaky.last_arguments().to_string(), r#"{"f":1.0,"n":12345678901234567890}"#);
}

#[tokio::test]
async fn a_script_answers_by_itself_in_three_shapes() {
    let (service, flaky) = serve(
        "const request = async ({ name, arguments: { how }, method, uri }) => method !== 'tools/call' ? `of ${uri ?? name}` :
            how === 'text' ? 'plain' : how === 'data' ? { a: [1] } : how === 'none' ? undefined :
            how === 'wrong' ? { content: 7 } : { content: [{ type: 'text', text: 'whole' }], isError: true };",
    );
    let how =
        async |how: &str| call(&service, "a", "read", &json!({ "how": how }).to_string()).await;
    assert_eq!(relayed(&how("text").await)["content"][0]["text"], "plain");
    assert_eq!(relayed(&how("data").await)["structuredContent"], json!({"a": [1]}));
    assert_eq!(relayed(&how("whole").await)["isError"], true);
    let nothing = fault(how("none").await);
    assert_eq!(nothing.kind, FaultKind::ToolFailed);
    assert!(
        nothing.detail.contains("layer.js") && nothing.detail.contains("returned nothing"),
        "{nothing:?}"
    );
    assert!(fault(how("wrong").await).detail.contains("`content`"));
    assert_eq!(flaky.calls(), 0);
}

#[tokio::test]
async fn reads_and_prompts_pass_too() {
    let (service, _) = serve("const request = async ({ name, uri }) => `of ${uri ?? name}`;");
    let read = Operation::ReadResource { uri: "test://open".to_owned() };
    assert_eq!(relayed(&ask(&service, "a", read).await)["contents"][0]["text"], "of test://open");
    let prompt = Operation::GetPrompt { name: "prompt".to_owned(), arguments: None };
    let got = relayed(&ask(&service, "a", prompt).await);
    assert_eq!(got["messages"][0]["content"]["text"], "of prompt");
}

#[tokio::test]
async fn a_refusal_is_told_and_a_mistake_has_its_place() {
    let (service, flaky) = serve(
        "async function request(call, next) {
            if (call.arguments.how === 'refuse') throw new Error('not today');
            if (call.arguments.how === 'busy') throw Object.assign(new Error('full'), { kind: 'busy', data: { in: 5 } });
            return missing(call);
        }",
    );
    let refused = fault(call(&service, "a", "write", r#"{"how":"refuse"}"#).await);
    assert_eq!((refused.kind, refused.detail.as_str()), (FaultKind::ToolFailed, "not today"));
    let busy = fault(call(&service, "a", "write", r#"{"how":"busy"}"#).await);
    assert_eq!((busy.kind, busy.data), (FaultKind::Busy, Some(Raw::from_value(&json!({"in": 5})))));
    let mistaken = fault(call(&service, "a", "write", "{}").await);
    let expected = "the script layer.js failed in line 4: ReferenceError: missing is not defined";
    assert_eq!(mistaken.detail, expected);
    assert_eq!(flaky.calls(), 0);
}

#[tokio::test]
async fn a_fault_further_in_can_be_caught_or_passes_as_it_was() {
    let (service, flaky) = serve(
        "async function request(call, next) {
            if (!call.arguments.again) return next(call);
            try { return await next(call); } catch (error) { if (error.kind !== 'busy') throw error; return next(call); }
        }",
    );
    flaky.fail(1);
    assert_eq!(text(&call(&service, "a", "write", r#"{"again":true}"#).await), "done");
    flaky.fail(1);
    let told = fault(call(&service, "a", "write", "{}").await);
    assert_eq!((told.kind, told.detail.as_str()), (FaultKind::Busy, "later"));
}

#[tokio::test]
async fn metadata_changes_and_hides_and_what_is_hidden_is_unknown() {
    let (service, flaky) = serve(
        "function metadata(definition, kind) {
            if (kind === 'tools' && definition.name === 'write') return null;
            if (kind === 'resources' && definition.uri.includes('secret')) return null;
            if (kind === 'tools') return { ...definition, description: `${definition.description} (checked)` };
        }",
    );
    assert_eq!(listed_names(&service, ListKind::Tools).await, ["read"]);
    assert_eq!(listed_names(&service, ListKind::Resources).await, ["test://open"]);
    assert_eq!(listed_names(&service, ListKind::Prompts).await, ["prompt"]);
    assert_eq!(definition(&service, "read").await["description"], "Reads (checked)");
    assert_eq!(fault(call(&service, "a", "write", "{}").await).kind, FaultKind::UnknownTool);
    let read = Operation::ReadResource { uri: "test://secret".to_owned() };
    assert_eq!(fault(ask(&service, "a", read).await).kind, FaultKind::ResourceNotFound);
    assert_eq!(flaky.calls(), 0);
}

#[tokio::test]
async fn an_item_whose_metadata_fails_is_not_listed() {
    for script in [
        "function metadata(it) { throw new Error('no'); }",
        "function metadata(it) { return { ...it, name: 'other', uri: 'other' }; }",
        "function metadata(it) { return 7; }",
        "function metadata(it) { for (;;); }",
    ] {
        let (service, _) = serve(script);
        assert!(listed_names(&service, ListKind::Tools).await.is_empty(), "{script}");
        assert_eq!(fault(call(&service, "a", "write", "{}").await).kind, FaultKind::UnknownTool);
    }
}

#[tokio::test]
async fn a_script_that_computes_too_long_fails_its_own_call_only() {
    let (service, _) = serve(
        "async function request(call, next) { if (call.arguments.spin) for (;;); return next(call); }",
    );
    let told = fault(call(&service, "a", "write", r#"{"spin":true}"#).await);
    assert!(told.detail.contains("used more than 200 ms"), "{told:?}");
    assert_eq!(text(&call(&service, "a", "write", "{}").await), "done");
}

#[tokio::test]
async fn big_results_pass_and_answers_keep_their_data() {
    let result = ToolResult::structured(Raw::from_value(&json!({ "text": "x".repeat(1 << 20) })));
    let layer = layer(
        "async function request(call, next) { const it = await next(call); it.structuredContent.n = 1; return it; }",
    );
    let (service, _) =
        FlakyTools::serve_with_result(layer, Fault::new(FaultKind::Busy, ""), 0, result);
    let changed = relayed(&call(&service, "a", "read", "{}").await);
    assert_eq!(changed["structuredContent"]["n"], 1);
    assert_eq!(changed["structuredContent"]["text"].as_str().unwrap().len(), 1 << 20);
}
