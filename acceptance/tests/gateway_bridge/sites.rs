//! Tests of the requests to upstreams over HTTP, header by header.

use std::fs;

use creole_acceptance::gateway::{
    HandshakeClient, ScriptedHttpServer, ScriptedReplies, StatelessClient,
};
use creole_acceptance::http::ListeningServer;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driving::modern;
use crate::{A_MOMENT, Bridge, asking, form, text};

/// A gateway in front of the site, with additional keys in its table.
fn before(site: &ScriptedHttpServer, more: &str) -> (ListeningServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let url = site.url();
    let upstream = format!("[upstreams.site]\nurl = \"{url}\"\nprefix = \"\"\n{more}");
    fs::write(&file, format!("[server]\nname = \"gateway\"\n\n{upstream}")).unwrap();
    (ListeningServer::start(&[&file.display().to_string()]).unwrap(), folder)
}

fn old(gateway: &ListeningServer) -> HandshakeClient {
    HandshakeClient::open(gateway.address(), "2025-06-18", json!({}), None)
}

/// A page of tools of the newest revision.
fn page(tools: Value) -> Value {
    json!({"resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "private"})
}

/// A tool whose argument `region` is mirrored in a header of this name.
fn repeating(header: &str) -> Value {
    let region = json!({"type": "string", "x-mcp-header": header});
    json!({"name": "ask", "inputSchema": {"type": "object", "properties": {"region": region}}})
}

fn complete(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

#[test]
fn a_call_with_outdated_headers_is_repeated_once_with_those_of_the_new_schema() {
    let site = ScriptedHttpServer::new(modern().leaving("tools/list"));
    let (gateway, _folder) = before(&site, "");
    site.hears("tools/list").result(page(json!([repeating("Old")])));
    let client = old(&gateway);
    let call = json!({"name": "ask", "arguments": {"region": "eu"}});
    let mut pending = client.begin(&json!(1), "tools/call", &call);
    let mut request = site.hears("tools/call");
    assert_eq!(request.field("mcp-param-old"), Some("eu"));
    request.error(-32020, "Header mismatch: mcp-param-new is missing");
    site.hears("tools/list").result(page(json!([repeating("New")])));
    let mut request = site.hears("tools/call");
    assert_eq!(
        (request.field("mcp-param-old"), request.field("mcp-param-new")),
        (None, Some("eu"))
    );
    request.result(complete("done"));
    assert_eq!(text(&pending.answer()), "done");
    // A server that keeps rejecting is not retried forever.
    let mut pending = client.begin(&json!(2), "tools/call", &call);
    site.hears("tools/call").error(-32020, "Header mismatch");
    site.hears("tools/list").result(page(json!([repeating("New")])));
    site.hears("tools/call").error(-32020, "Header mismatch");
    let response = pending.answer();
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert!(site.within(A_MOMENT).is_none(), "there are only two attempts");
}

/// Two tools, of which the first declares a mirrored header at a location without an argument.
fn misplaced() -> Value {
    let items = json!({"type": "string", "x-mcp-header": "Tag"});
    let tags = json!({"type": "array", "items": items});
    json!([
        {"name": "wrong", "inputSchema": {"type": "object", "properties": {"tags": tags}}},
        {"name": "ask", "inputSchema": {"type": "object"}},
    ])
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn a_tool_with_an_invalid_header_is_excluded_over_http_and_the_others_are_listed() {
    let bridge = Bridge::new(asking().answering("tools/list", json!({"tools": misplaced()})));
    let listed = bridge.modern().request("tools/list", json!({}));
    assert_eq!(names(&listed), ["ask"]);
    // A client that sends no mirrored headers gets the tool.
    let client = old(&bridge.gateway);
    assert_eq!(names(&client.request("tools/list", &json!({}))), ["wrong", "ask"]);
    let call = json!({"name": "wrong", "arguments": {"tags": ["a"]}});
    let mut pending = client.begin(&json!(1), "tools/call", &call);
    bridge.puppets.hears("tools/call").text("used");
    assert_eq!(text(&pending.answer()), "used");
}

#[test]
fn a_tool_with_an_invalid_header_of_an_http_upstream_is_excluded_for_all() {
    let site = ScriptedHttpServer::new(modern().answering("tools/list", page(misplaced())));
    let (gateway, _folder) = before(&site, "");
    let client = old(&gateway);
    assert_eq!(names(&client.request("tools/list", &json!({}))), ["ask"]);
    let listed = StatelessClient::new(gateway.address()).request("tools/list", json!({}));
    assert_eq!(names(&listed), ["ask"]);
    let refused = client.call("wrong", json!({"tags": []}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let log = || gateway.log();
    eventually(log, || log().contains("x-mcp-header") && log().contains("wrong"));
    assert!(site.within(A_MOMENT).is_none(), "the upstream gets no call");
}

#[test]
fn an_input_request_on_a_session_stream_reaches_the_client_of_that_session_only() {
    let site = ScriptedHttpServer::with_streams(asking());
    let (gateway, _folder) = before(&site, "");
    let client =
        HandshakeClient::open(gateway.address(), "2025-06-18", json!({"elicitation": {}}), None);
    let mut pending = client.listen();
    // The call makes the gateway open a session with this client's input capabilities.
    let mut waiting = client.begin(&json!(1), "tools/call", &json!({"name": "ask"}));
    let mut streams = Vec::new();
    let mut request = loop {
        let mut request = site.next();
        if request.method == "POST" {
            break request;
        }
        request.stream();
        streams.push(request);
    };
    request.text("done");
    assert_eq!(text(&waiting.answer()), "done");
    while let Some(mut request) = site.within(A_MOMENT) {
        assert_eq!(request.method, "GET", "{}", request.message);
        request.stream();
        streams.push(request);
    }
    assert!(!streams.is_empty(), "the gateway requested no stream");
    let mut forwarded = 0;
    for (number, stream) in streams.iter_mut().enumerate() {
        let params = form("Is anybody there?");
        stream.event(&json!({
            "jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params,
        }));
        let accepted = json!({"action": "accept", "content": {}});
        let asked = pending.within(A_MOMENT);
        if let Some(received) = &asked {
            assert_eq!(received["method"], "elicitation/create", "{received}");
            forwarded += 1;
            client.tell(&json!({"jsonrpc": "2.0", "id": received["id"], "result": accepted}));
        }
        let mut sent = site.next();
        assert_eq!(sent.message["id"], number, "{}", sent.message);
        match asked {
            Some(_) => assert_eq!(sent.message["result"], accepted),
            // The gateway's own session, which supports no input requests.
            None => assert!(sent.message.get("error").is_some(), "{}", sent.message),
        }
        sent.respond("202 Accepted", "", "");
    }
    assert_eq!(forwarded, 1, "of {} streams", streams.len());
}

#[test]
fn an_upstream_without_sessions_is_used_and_receives_only_the_gateways_password() {
    let topic = json!({"type": "string", "required": true});
    let properties = json!({"topic": topic, "size": {"type": "integer", "required": false}});
    let tool = json!({"name": "ask", "inputSchema": {"type": "object", "properties": properties}});
    let show = ScriptedReplies::new("2025-11-25", json!({"tools": {}}), &[])
        .answering("tools/list", json!({"tools": [tool]}));
    let site = ScriptedHttpServer::with_streams(show);
    let more =
        "dialect = \"buddyboss\"\nheaders = { Authorization = \"Basic Z2F0ZXdheTpzZWNyZXQ=\" }\n";
    let (gateway, _folder) = before(&site, more);
    let client = StatelessClient::new(gateway.address()).with_key("of-the-client");
    let listed = client.request("tools/list", json!({}));
    let schema = &listed["result"]["tools"][0]["inputSchema"];
    assert_eq!(schema["required"], json!(["topic"]), "{schema}");
    assert!(schema["properties"]["topic"].get("required").is_none(), "{schema}");
    assert!(schema["properties"]["size"].get("required").is_none(), "{schema}");
    let mut call = client.begin_call("ask", json!({"topic": "x"}));
    // A request for a stream would also arrive here.
    let mut request = site.next();
    assert_eq!((&*request.method, &request.message["method"]), ("POST", &json!("tools/call")));
    assert_eq!(request.field("authorization"), Some("Basic Z2F0ZXdheTpzZWNyZXQ="));
    let message = format!("{:?} {}", request.fields, request.message);
    assert!(!message.contains("of-the-client"), "{message}");
    request.text("read");
    assert_eq!(text(&call.answer()), "read");
    assert!(site.within(A_MOMENT).is_none(), "no stream is requested");
}
