//! Tests of the spans of a server.

use creole_acceptance::gateway::{
    HandshakeClient, ScriptedHttpServer, ScriptedReplies, StatelessClient,
};
use creole_acceptance::peers::otlp::receiver;
use creole_acceptance::process_under_test::Server;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{
    CLIENT, KEY, PARENT, PARENT_ID, SERVER, TRACE_ID, attribute, auth, command, exporting,
    is_part_of, listen,
};

const ALWAYS: &str = "[telemetry.traces]\nsample = 1";
const ECHO: &str = "[server]\nname = \"main\"\npacks = [\"echo\"]\n";
const NAME: &str = "tools/call echo";

fn arguments() -> Value {
    json!({"message": "hi"})
}

#[test]
fn a_stateless_call_over_http_is_one_span_with_the_names_of_the_conventions() {
    let Some(receiver) = receiver(&[]) else { return };
    let (server, _folder) = listen(&format!("{ECHO}{}", exporting(&receiver, ALWAYS)));
    let client = StatelessClient::new(server.address());
    let mut pending = client.begin(
        &json!("id-7"),
        "tools/call",
        json!({"name": "echo", "arguments": arguments()}),
    );
    assert!(pending.answer()["result"].is_object());
    let span = receiver.span(NAME);
    assert_eq!((&span["kind"], &span["status"]), (&json!(SERVER), &json!(0)), "{span:#}");
    for (name, expected) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "echo"),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", "2026-07-28"),
        ("jsonrpc.request.id", "id-7"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("network.protocol.version", "1.1"),
        ("creole.server", "main"),
        ("creole.era", "stateless"),
    ] {
        assert_eq!(attribute(&span, name), expected, "{name}: {span:#}");
    }
    for absent in [
        "mcp.session.id",
        "error.type",
        "creole.principal",
        "client.address",
        "gen_ai.tool.call.arguments",
    ] {
        assert!(attribute(&span, absent).is_null(), "{absent}: {span:#}");
    }
    assert_eq!((&span["parent"], receiver.spans(NAME).len()), (&json!(""), 1));
    let line = receiver.lines().into_iter().find(|line| line.get("span").is_some()).unwrap();
    assert_eq!(line["resource"]["service.name"], "creole");
    assert_eq!(line["resource"]["telemetry.sdk.name"], "creole");
    assert!(line["resource"]["service.instance.id"].is_string());
}

#[test]
fn a_session_is_named_over_http_and_a_pipe_is_a_pipe() {
    let Some(receiver) = receiver(&[]) else { return };
    let config = format!("{ECHO}{}", exporting(&receiver, ALWAYS));
    let (server, _folder) = listen(&config);
    let client = HandshakeClient::open(server.address(), "2025-11-25", json!({}), None);
    assert!(client.call("echo", arguments())["result"].is_object());
    let span = receiver.span(NAME);
    let session = attribute(&span, "mcp.session.id").as_str().unwrap();
    assert!(session.len() == 8 && !client.session().contains(session), "{span:#}");
    assert_eq!(attribute(&span, "mcp.protocol.version"), "2025-11-25");

    let (command, _folder) = command(&config, &["--stdio"]);
    let mut server = Server::start_command(command).greeted();
    assert!(server.call("echo", &arguments())["result"].is_object());
    let spans = eventually("the span of the pipe", || {
        Some(receiver.spans(NAME)).filter(|spans| spans.len() == 2)
    });
    let span = &spans[1];
    assert_eq!(attribute(span, "network.transport"), "pipe", "{span:#}");
    assert!(attribute(span, "mcp.session.id").is_null(), "{span:#}");
    assert!(attribute(span, "network.protocol.name").is_null(), "{span:#}");
}

#[test]
fn every_request_and_notification_has_a_span_also_those_that_need_no_call() {
    let Some(receiver) = receiver(&[]) else { return };
    let config = format!("{ECHO}{}", exporting(&receiver, ALWAYS));
    let (command, _folder) = command(&config, &["--stdio"]);
    let mut server = Server::start_command(command).greeted();
    let meta = json!({"traceparent": PARENT});
    server.request("ping", &json!({"_meta": meta}));
    server.request("logging/setLevel", &json!({"level": "info", "_meta": meta}));
    let refused = server.request("tools/nothing", &json!({"_meta": meta}));
    assert_eq!(refused["error"]["code"], -32601);
    let cancelled = json!({"requestId": 7, "_meta": meta});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled});
    server.write(format!("{cancelled}\n"));
    for name in ["initialize", "notifications/initialized"] {
        assert_eq!(receiver.span(name)["kind"], SERVER, "{name}");
    }
    for name in ["ping", "logging/setLevel", "_OTHER", "notifications/cancelled"] {
        let span = receiver.span(name);
        let place = (&span["kind"], &span["trace_id"], &span["parent"]);
        assert_eq!(place, (&json!(SERVER), &json!(TRACE_ID), &json!(PARENT_ID)), "{span:#}");
        assert_eq!(attribute(&span, "mcp.method.name"), name, "{span:#}");
        assert_eq!(span["status"], 0, "{span:#}");
    }
    let ping = receiver.span("ping");
    assert!(attribute(&ping, "jsonrpc.request.id").is_string(), "{ping:#}");
}

#[test]
fn the_context_in_meta_is_the_parent_and_a_different_header_is_a_link() {
    let Some(receiver) = receiver(&[]) else { return };
    let config = format!(
        "{ECHO}{}",
        exporting(&receiver, "[telemetry.traces]\nsample = 0\nparent = \"client\"")
    );
    let (server, _folder) = listen(&config);
    let other = "00-11111111111111111111111111111111-2222222222222222-01";
    let meta = json!({"traceparent": PARENT, "tracestate": "a=1"});
    let params = json!({"name": "echo", "arguments": arguments()});
    let client = StatelessClient::new(server.address()).with_meta(meta);
    let request = client.written(&json!(1), "tools/call", params).with("traceparent", other);
    assert_eq!(request.send(server.address()).unwrap().head.status, 200);
    let span = receiver.span(NAME);
    assert_eq!((&span["trace_id"], &span["parent"]), (&json!(TRACE_ID), &json!(PARENT_ID)));
    assert_eq!(span["state"], "a=1");
    let link =
        json!({"trace_id": "11111111111111111111111111111111", "span_id": "2222222222222222"});
    assert_eq!(span["links"], json!([link]), "{span:#}");
}

#[test]
fn the_sampled_flag_counts_only_for_an_authenticated_caller() {
    let Some(receiver) = receiver(&[]) else { return };
    let never = exporting(&receiver, "[telemetry.traces]\nsample = 0");
    let meta = json!({"traceparent": PARENT});
    let (server, _folder) = listen(&format!("{ECHO}{never}"));
    let stranger = StatelessClient::new(server.address()).with_meta(meta.clone());
    assert!(stranger.call("echo", arguments())["result"].is_object());
    let (server, _folder) = listen(&format!("{ECHO}{never}{}", auth()));
    let known = StatelessClient::new(server.address()).with_meta(meta).with_key(KEY);
    assert!(known.call("echo", arguments())["result"].is_object());
    let span = receiver.span(NAME);
    assert_eq!(span["trace_id"], TRACE_ID, "{span:#}");
    // The stranger's call was first, and both processes export at once.
    assert_eq!(receiver.spans(NAME).len(), 1);
}

#[test]
fn an_error_of_the_client_is_none_of_the_server_and_every_error_of_an_upstream_is_one() {
    let Some(receiver) = receiver(&[]) else { return };
    let replies = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"]);
    let site = ScriptedHttpServer::new(replies);
    let upstream = format!("[upstreams.site]\nurl = \"{}\"\n", site.url());
    let traces = "[telemetry.traces]\nsample = 0\nslow_ms = 3600000";
    for (more, is_sampled) in [(ALWAYS, true), (traces, false)] {
        let before = receiver.items("span").len();
        let config = format!("[server]\nname = \"g\"\n{upstream}{}", exporting(&receiver, more));
        let (server, _folder) = listen(&config);
        let client = StatelessClient::new(server.address());
        let unknown = client.call("missing", json!({}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let mut call = client.begin_call("site__work", json!({}));
        site.hears("tools/call").error(-32603, "a secret of the upstream");
        assert_eq!(call.answer()["error"]["code"], -32603);
        let mut call = client.begin_call("site__work", json!({}));
        site.hears("tools/call").result(json!({"isError": true, "content": []}));
        assert_eq!(call.answer()["result"]["isError"], true);

        let count = if is_sampled { 5 } else { 2 };
        let new = || receiver.items("span").split_off(before);
        // The start of the upstream and its lists have spans too.
        let is_call = |span: &&Value| {
            span["name"].as_str().is_some_and(|name| name.starts_with("tools/call "))
        };
        let is_complete = |spans: &Vec<Value>| spans.iter().filter(is_call).count() >= count;
        let spans = eventually(|| format!("{:#?}", new()), || Some(new()).filter(is_complete));
        let of = |name: &str, kind: u64| -> Vec<&Value> {
            spans.iter().filter(|span| span["name"] == name && span["kind"] == kind).collect()
        };
        let [failed, tool_error] = of("tools/call site__work", SERVER)[..] else {
            panic!("{spans:#?}")
        };
        assert_eq!(
            (&failed["status"], attribute(failed, "error.type")),
            (&json!(2), &json!("-32603"))
        );
        assert_eq!(attribute(failed, "rpc.response.status_code"), "-32603");
        assert_eq!(
            (&tool_error["status"], attribute(tool_error, "error.type")),
            (&json!(2), &json!("tool_error"))
        );
        assert!(!format!("{spans:?}").contains("secret"), "{spans:#?}");
        if !is_sampled {
            // An unknown tool is no failure, and has no span at all.
            assert_eq!(spans.len(), 2, "{spans:#?}");
            continue;
        }
        let [unknown] = of("tools/call missing", SERVER)[..] else { panic!("{spans:#?}") };
        assert_eq!(
            (&unknown["status"], attribute(unknown, "error.type")),
            (&json!(0), &Value::Null)
        );
        assert_eq!(attribute(unknown, "rpc.response.status_code"), "-32602");
        let [client_failed, _] = of("tools/call work", CLIENT)[..] else { panic!("{spans:#?}") };
        assert_eq!(
            (&client_failed["status"], attribute(client_failed, "error.type")),
            (&json!(2), &json!("-32603"))
        );
        assert_eq!(attribute(client_failed, "creole.upstream"), "site");
        assert!(is_part_of(&receiver, client_failed, failed), "{spans:#?}");
    }
}

#[test]
fn arguments_and_results_are_in_spans_only_if_that_is_wanted_and_as_they_are_redacted() {
    let Some(receiver) = receiver(&[]) else { return };
    let redact = "[[server.chain]]\nkind = \"redact\"\npatterns = [\"hidden-[0-9]+\"]\n";
    let config = |more: &str| {
        format!("{ECHO}{redact}{}", exporting(&receiver, &format!("{ALWAYS}\n{more}")))
    };
    let secret = json!({"message": "say hidden-42 loudly"});
    let (server, _folder) = listen(&config(""));
    let client = StatelessClient::new(server.address()).with_key("a-key-that-nobody-asked-for");
    assert!(client.call("echo", secret.clone())["result"].is_object());
    let span = receiver.span(NAME);
    assert!(attribute(&span, "gen_ai.tool.call.arguments").is_null(), "{span:#}");
    let (server, _folder) = listen(&config("payloads = true\nprincipals = \"name\""));
    let client = StatelessClient::new(server.address()).with_key("a-key-that-nobody-asked-for");
    assert!(client.call("echo", secret)["result"].is_object());
    let spans = eventually("the second span", || {
        Some(receiver.spans(NAME)).filter(|spans| spans.len() == 2)
    });
    let span = &spans[1];
    let arguments = attribute(span, "gen_ai.tool.call.arguments").as_str().unwrap();
    let result = attribute(span, "gen_ai.tool.call.result").as_str().unwrap();
    assert!(arguments.contains("loudly") && result.contains("loudly"), "{span:#}");
    assert_eq!(attribute(span, "creole.principal"), "local");
    let all = format!("{:?}", receiver.lines());
    assert!(!all.contains("hidden-42") && !all.contains("nobody-asked-for"), "{span:#}");
}
