//! Tests of relayed results: they are rewritten for the client's revision, and unchanged if possible.

use core::time::Duration;

use creole_proto::client::{CallRequest, ClientEvent, Outbox};
use creole_proto::dialect::builtin;
use creole_proto::model::Implementation;
use creole_proto::operation::{Operation, Outcome, Payload};
use creole_proto::revision::{Era, Revision};
use creole_proto::server;
use proptest::prelude::{ProptestConfig, proptest};
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::pair::{MachinePair, client, opening};
use super::plain::{endpoint, tool};

const ALL: [Revision; 5] = Revision::ALL;

/// The client's outcome for the response of a server of this revision and dialect.
fn outcome_of(dialect: &str, revision: Revision, request: CallRequest, answer: &str) -> Outcome {
    let mut machine = client(dialect, opening(revision));
    let mut out = Outbox::default();
    if revision.rules().era == Era::Handshake {
        let call = machine.open(Duration::ZERO, &mut out).0;
        let version = match dialect {
            "bb-mcp-server" => "1.0",
            _ => revision.rules().name,
        };
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":{call},"result":{{"protocolVersion":"{version}","capabilities":{{}}}}}}"#
        );
        machine.receive(hello.as_bytes(), None, Duration::ZERO, &mut out);
        assert!(matches!(out.next_event(), Some(ClientEvent::Opened(_))));
    }
    let call = machine.request(&request, Duration::ZERO, &mut out);
    let response = format!(r#"{{"jsonrpc":"2.0","id":{},{answer}}}"#, call.0);
    machine.receive(response.as_bytes(), None, Duration::ZERO, &mut out);
    match out.next_event() {
        Some(ClientEvent::CallDone(done, outcome)) if done == call => outcome,
        other => panic!("{response}: {other:?}"),
    }
}

/// The response of a server of this revision and dialect to its own client for an outcome.
fn response_for(
    dialect: &str,
    revision: Revision,
    request: CallRequest,
    outcome: Outcome,
) -> Value {
    let text = raw_response_for(dialect, revision, request, outcome);
    serde_json::from_str(&text).unwrap()
}

fn raw_response_for(
    dialect: &str,
    revision: Revision,
    request: CallRequest,
    outcome: Outcome,
) -> String {
    let mut pair = MachinePair::open(dialect, opening(revision), endpoint);
    pair.hold();
    pair.call(request);
    let started = pair.started.remove(0).key;
    pair.server.finish(started, outcome, pair.now, &mut pair.to_server);
    String::from_utf8(pair.to_server.take_bytes()).unwrap()
}

fn relayed(source: Revision, target: Revision, request: CallRequest, result: &str) -> Value {
    let outcome = outcome_of("spec", source, request.clone(), &format!(r#""result":{result}"#));
    response_for("spec", target, request, outcome)["result"].take()
}

fn read() -> CallRequest {
    CallRequest::new(Operation::ReadResource { uri: "test://a".into() })
}

#[test]
fn a_legacy_result_is_raised_and_its_accidents_are_not_believed() {
    let result = r#"{"resultType":"input_required","content":[],"ttlMs":5}"#;
    for source in &ALL[..4] {
        let raised = relayed(*source, Revision::V2026_07_28, tool("t"), result);
        assert_eq!(raised, json!({"resultType": "complete", "content": [], "ttlMs": 5}));
        let contents = r#"{"contents":[],"ttlMs":5,"cacheScope":"public"}"#;
        let raised = relayed(*source, Revision::V2026_07_28, read(), contents);
        let expected = json!({"resultType": "complete", "contents": [], "ttlMs": 0,
            "cacheScope": "private"});
        assert_eq!(raised, expected);
    }
}

#[test]
fn a_modern_result_loses_its_envelope_at_the_top_only() {
    let result = r#"{"resultType":"complete","content":[],"structuredContent":{"ttlMs":1},
        "ttlMs":3,"cacheScope":"public",
        "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}, "mine":1}}"#;
    let lowered = relayed(Revision::V2026_07_28, Revision::V2025_11_25, tool("t"), result);
    let expected = json!({"content": [], "structuredContent": {"ttlMs": 1}, "_meta": {"mine": 1}});
    assert_eq!(lowered, expected);
    let bare = r#"{"resultType":"complete","content":[],
        "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#;
    let lowered = relayed(Revision::V2026_07_28, Revision::V2025_11_25, tool("t"), bare);
    assert_eq!(lowered, json!({"content": []}));
}

#[test]
fn data_is_wrapped_or_told_in_words_where_it_is_not_known() {
    let result = r#"{"resultType":"complete","content":[],"structuredContent":[1.0]}"#;
    let lowered = |target| relayed(Revision::V2026_07_28, target, tool("t"), result);
    let wrapped = lowered(Revision::V2025_06_18);
    assert_eq!(wrapped["structuredContent"], json!({"result": [1.0]}));
    let words = lowered(Revision::V2025_03_26);
    assert_eq!(words, json!({"content": [{"type": "text", "text": "[1.0]"}]}));
    let none = r#"{"resultType":"complete","structuredContent":{}}"#;
    let lowered = relayed(Revision::V2026_07_28, Revision::V2024_11_05, tool("t"), none);
    assert_eq!(lowered, json!({"content": [{"type": "text", "text": "{}"}]}));
}

#[test]
fn blocks_of_unknown_kinds_are_lowered_and_others_stay() {
    let result = r#"{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"},
        {"type":"resource_link","uri":"a:b","name":"B"},{"type":"new","x":1}]}"#;
    let lowered = relayed(Revision::V2025_11_25, Revision::V2024_11_05, tool("t"), result);
    let blob = json!({"uri": "mcp-audio://0", "mimeType": "audio/wav", "blob": "AA=="});
    let expected = json!([{"type": "resource", "resource": blob},
        {"type": "text", "text": "B - a:b"}, {"type": "new", "x": 1}]);
    assert_eq!(lowered["content"], expected);
    let prompt = CallRequest::new(Operation::GetPrompt { name: "p".into(), arguments: None });
    let result = r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"a:b","name":"B"}}]}"#;
    let lowered = relayed(Revision::V2025_11_25, Revision::V2025_03_26, prompt, result);
    assert_eq!(lowered["messages"][0]["content"], json!({"type": "text", "text": "B - a:b"}));
    assert_eq!(lowered["messages"][0]["role"], "user");
}

#[test]
fn a_tool_failure_is_an_error_for_dialects_without_tool_errors() {
    let result = r#""result":{"content":[{"type":"text","text":"no"},{"type":"text","text":"go"}],"isError":true}"#;
    let outcome = outcome_of("spec", Revision::V2025_11_25, tool("t"), result);
    let message = response_for("bb-mcp-server", Revision::V2024_11_05, tool("t"), outcome);
    assert_eq!(message["error"]["code"], -32001);
    assert_eq!(message["error"]["data"]["error"], "no\ngo");
}

#[test]
fn an_error_of_a_dialect_is_a_result_for_clients_with_tool_errors() {
    let error = r#""error":{"code":-32001,"message":"Tool execution failed","data":{"tool":"t","error":"no disk"}}"#;
    let outcome = outcome_of("bb-mcp-server", Revision::V2024_11_05, tool("t"), error);
    let message = response_for("spec", Revision::V2026_07_28, tool("t"), outcome);
    assert_eq!(message["result"]["isError"], true);
    assert_eq!(message["result"]["content"][0]["text"], "no disk");
}

#[test]
fn ambiguous_codes_are_moved_to_the_data() {
    let code = |source, target, code: i64| {
        let error = format!(r#""error":{{"code":{code},"message":"m","data":[1.0]}}"#);
        let outcome = outcome_of("spec", source, tool("t"), &error);
        response_for("spec", target, tool("t"), outcome)["error"].take()
    };
    let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
    let as_is = |code: i64| json!({"code": code, "message": "m", "data": [1.0]});
    let hidden = |code: i64| {
        let data = json!({"upstreamCode": code, "upstreamData": [1.0]});
        json!({"code": -32603, "message": "m", "data": data})
    };
    for own in [-1, 1, 42, -31999, -32100, -40000] {
        assert_eq!(code(old, new, own), as_is(own));
        assert_eq!(code(new, old, own), as_is(own));
    }
    for reserved in [-32000, -32001, -32019, -32020, -32021, -32022, -32099] {
        assert_eq!(code(old, new, reserved), hidden(reserved));
        assert_eq!(code(old, old, reserved), as_is(reserved));
    }
    for general in [-32600, -32601, -32602, -32603] {
        assert_eq!(code(old, new, general), as_is(general), "{general}");
    }
}

#[test]
fn an_error_with_url_elicitations_is_an_input_request() {
    let error = r#""error":{"code":-32042,"message":"visit","data":{"elicitations":[
        {"mode":"url","message":"Log in","url":"https://a.example","elicitationId":"e1"}]}}"#;
    let outcome = outcome_of("spec", Revision::V2025_11_25, tool("t"), error);
    let Outcome::InputRequired { requests: input_requests, request_state: None } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(input_requests.len(), 1);
    let elsewhere = outcome_of("spec", Revision::V2025_06_18, tool("t"), error);
    assert!(matches!(elsewhere, Outcome::Fail(_)));
}

#[test]
fn the_server_behind_keeps_its_name_and_one_without_gets_ours() {
    let limits = server::ServerLimits::default();
    let us = Implementation { name: "us".into(), ..Implementation::default() };
    let profile = server::Profile::new(builtin("spec").unwrap(), limits).identity(&us);
    let profile = std::sync::Arc::new(profile);
    let named = r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"them"}}}"#;
    let rows = [
        (Revision::V2026_07_28, named, "them"),
        (Revision::V2026_07_28, r#"{"resultType":"complete","content":[]}"#, "us"),
        (Revision::V2025_11_25, r#"{"content":[],"_meta":{"a":1}}"#, "us"),
    ];
    for (source, result, name) in rows {
        let outcome = outcome_of("spec", source, tool("t"), &format!(r#""result":{result}"#));
        let mut pair = MachinePair::open("spec", opening(Revision::V2026_07_28), endpoint);
        pair.server = server::Machine::new(profile.clone());
        pair.hold();
        pair.call(tool("t"));
        let started = pair.started.remove(0).key;
        pair.server.finish(started, outcome, pair.now, &mut pair.to_server);
        let message: Value = serde_json::from_slice(&pair.to_server.take_bytes()).unwrap();
        let text = &message["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        assert_eq!(text, name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_result_that_needs_no_change_is_copied_byte_for_byte(
        revision in select(&ALL[..]),
        space in select(&["", " ", "  \t"][..]),
        odd in select(&["1.0", "1e400", "\"\\u0061\"", "[ 1 ,2]", "{\"ttlMs\" :1}"][..]),
        name in "[a-z]{1,8}",
    ) {
        let kind = match revision.rules().result_type {
            true => r#""resultType":"complete","#,
            false => "",
        };
        let result = format!(
            r#"{{{space}{kind}"x-{name}"{space}:{odd},"content":[{{"type":"text","text":"\u0062"}}]{space}}}"#
        );
        let outcome = outcome_of("spec", revision, tool("t"), &format!(r#""result":{result}"#));
        let text = raw_response_for("spec", revision, tool("t"), outcome);
        assert!(text.ends_with(&format!("\"result\":{result}}}\n")), "{text}\n{result}");
    }
}

/// Members of results that only some peers require.
const MEMBERS: [&str; 13] = [
    r#""resultType":"complete""#,
    r#""content":[{"type":"text","text":"a"}]"#,
    r#""content":[{"type":"audio","data":"","mimeType":"a/b"}]"#,
    r#""structuredContent":{"a":1}"#,
    r#""structuredContent":[1]"#,
    r#""isError":true"#,
    r#""ttlMs":5"#,
    r#""cacheScope":"public""#,
    r#""contents":[]"#,
    r#""messages":[]"#,
    r#""_meta":[1]"#,
    r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"them"},"a":1}"#,
    r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"},"a":1}"#,
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scan_of_a_result_changes_only_the_time(
        source in select(&ALL[..]),
        target in select(&ALL[..]),
        kind in 0..3_usize,
        members in subsequence(&MEMBERS[..], 0..MEMBERS.len()),
    ) {
        let name = |member: &&str| member.split(':').next().unwrap_or_default().to_owned();
        let mut members = members;
        members.dedup_by_key(|member| name(member));
        let request = || CallRequest::new(match kind {
            0 => Operation::CallTool { name: "t".into(), arguments: None },
            1 => Operation::ReadResource { uri: "a:b".into() },
            _ => Operation::GetPrompt { name: "p".into(), arguments: None },
        });
        let result = format!(r#""result":{{{}}}"#, members.join(","));
        let seen = outcome_of("spec", source, request(), &result);
        let Outcome::Complete(Payload::Relayed(mut relayed)) = seen.clone() else { return Ok(()) };
        relayed.set_result(relayed.result().clone());
        let unseen = Outcome::Complete(Payload::Relayed(relayed));
        let said = |outcome| raw_response_for("spec", target, request(), outcome);
        assert_eq!(said(seen), said(unseen), "{result}");
    }
}

#[test]
fn a_payload_is_relayed_completely_in_every_pair_of_revisions() {
    let text = r#"[{"type":"text","text":"a\u0062"}]"#;
    for source in ALL {
        for target in ALL {
            let kind = if source.rules().result_type { r#""resultType":"complete","# } else { "" };
            let result = format!(r#""result":{{{kind}"content":{text},"isError":false}}"#);
            let outcome = outcome_of("spec", source, tool("t"), &result);
            assert!(matches!(outcome, Outcome::Complete(Payload::Relayed(_))));
            let output = raw_response_for("spec", target, tool("t"), outcome);
            assert!(output.contains(text) && output.contains(r#""isError":false"#), "{output}");
            assert_eq!(output.contains("resultType"), target.rules().result_type, "{output}");
        }
    }
}
