//! Rows about header fields that are missing, superfluous or contradict the body (A40 to A50, A54).

use creole_acceptance::http::{Events, Request};
use serde_json::{Value, json};

use crate::Expected::{Error, Result, Status};
use crate::bench::{Bench, check_response};
use crate::{BOTH, Era, Expected, MISMATCH, UNSUPPORTED, WRONG_PARAMS, row};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text",META}}"#;

/// The `Accept` header that every client sends.
const ANSWERS: &str = "application/json, text/event-stream";

#[test]
fn a_body_must_have_the_content_type_json() {
    let bench = Bench::everything();
    let mut rows = Vec::new();
    for era in BOTH {
        let call = bench.post(era, CALL);
        rows.push(row("A40 missing", call.clone().without("Content-Type"), Status(415)));
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/json-rpc",
            "application/json;charset=utf-16",
            "text/json",
            "application/jsonx",
            "",
        ] {
            rows.push(row("A40", call.clone().replacing("Content-Type", kind), Status(415)));
        }
        for kind in [
            "application/json; charset=utf-8",
            "APPLICATION/JSON",
            "application/json ; charset=\"UTF-8\"",
        ] {
            rows.push(row("A40", call.clone().replacing("Content-Type", kind), Result));
        }
    }
    bench.check(rows);
}

#[test]
fn a_response_has_only_an_accepted_media_type() {
    let bench = Bench::everything();
    // A client must accept both types. A client that does not accept JSON still gets a JSON response: HTTP allows that
    // instead of an error (RFC 9110, 12.4.1).
    let rows = [
        (None, Ok(false)),
        (Some(ANSWERS), Ok(false)),
        (Some("application/json"), Ok(false)),
        (Some("text/event-stream"), Ok(false)),
        (Some("*/*"), Ok(false)),
        (Some("application/*"), Ok(false)),
        (Some("text/*"), Ok(false)),
        (Some("*/*, text/event-stream;q=0"), Ok(false)),
        (Some("*/*, application/json;q=0"), Ok(false)),
        (Some("application/json;q=0, text/event-stream;q=0"), Err(406)),
        (Some("text/html"), Err(406)),
        (Some(""), Err(406)),
    ];
    for era in BOTH {
        for (accept, expected) in rows {
            let call = bench.post(era, CALL).without("Accept");
            let call = accept.map_or(call.clone(), |accept| call.with("Accept", accept));
            let response = bench.send(&call);
            let found = match response.head.status {
                200 => Ok(response.head.is_events()),
                status => Err(status),
            };
            assert_eq!(found, expected, "A42 {era:?} {accept:?}: {}", response.text());
            bench.canary("A42");
        }
        let tells = CALL.replace("test_simple_text", "test_tool_with_progress");
        let tells = tells.replace("META", "META_WITH_TOKEN");
        let meta = match era {
            Era::Alone => crate::bench::META.replacen('{', r#"{"progressToken":"p","#, 1),
            Era::Session => r#""_meta":{"progressToken":"p"}"#.to_owned(),
        };
        let request = bench.post(era, &tells.replace("META_WITH_TOKEN", &meta));
        let refused = bench.send(&request.clone().replacing("Accept", "application/json"));
        assert!(!refused.head.is_events(), "A42: a stream for a client that refused it");
        assert_eq!(refused.message()["id"], 1, "A42: {}", refused.text());
        let told = bench.send(&request);
        assert!(told.head.is_events(), "{}", told.text());
        let events = Events::new(&told.body[..]).filter(|event| !event.data.is_empty());
        assert_eq!(events.count(), 4, "{}", told.text());
    }
}

#[test]
fn the_version_in_header_and_body_must_be_equal() {
    let bench = Bench::everything();
    let call = bench.post(Era::Alone, CALL);
    let version = |value: &str| call.clone().replacing("MCP-Protocol-Version", value);
    let mismatch = Error(400, MISMATCH);
    let claiming = |claimed: &str| {
        let meta = crate::bench::META.replace("2026-07-28", claimed);
        bench.post(Era::Alone, &CALL.replace("META", &meta))
    };
    let unsupported = Error(400, UNSUPPORTED);
    bench.check(vec![
        row("A43", call.clone().without("MCP-Protocol-Version"), mismatch),
        row("A44", version("2025-11-25"), mismatch),
        row("A44", version("2026-07-28, 2026-07-28"), mismatch),
        row("A44", call.clone().with("MCP-Protocol-Version", "2026-07-28"), mismatch),
        row("A44", version("v999.0.0"), mismatch),
        row("A44 spaces around it are HTTP's", version("  2026-07-28\t"), Result),
        row("A45", claiming("1900-01-01"), unsupported),
        row("A45", claiming("v999.0.0"), unsupported),
        // The trailing space is not a part of a header value, so the error is the mismatch and not the unsupported
        // revision.
        row("A45", claiming("2026-07-28 "), mismatch),
        row("A45", claiming(&"9".repeat(10 * 1024)), unsupported),
    ]);
    let response = bench.send(&claiming(&"9".repeat(10 * 1024)));
    let data = &response.message()["error"]["data"];
    assert!(data["requested"].as_str().unwrap().chars().count() <= 64, "{data}");
    assert!(data["supported"].as_array().unwrap().contains(&json!("2026-07-28")), "{data}");
}

#[test]
fn a_session_needs_no_version_and_accepts_only_known_ones() {
    let bench = Bench::everything();
    let call = bench.post(Era::Session, CALL);
    let version = |value: &str| call.clone().replacing("MCP-Protocol-Version", value);
    bench.check(vec![
        row("A43", call.clone().without("MCP-Protocol-Version"), Result),
        row("A45", version("1900-01-01"), Status(400)),
        row("A45", version("nonsense"), Status(400)),
    ]);
}

#[test]
fn the_claim_of_a_request_must_be_complete() {
    let bench = Bench::everything();
    let wrong = Error(400, WRONG_PARAMS);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    let claims: [(&str, Expected); 7] = [
        (r#""x":1"#, wrong),
        (r#""_meta":{}"#, wrong),
        (&format!(r#""_meta":{{{version}}}"#), wrong),
        (&format!(r#""_meta":{{{capabilities}}}"#), wrong),
        (
            &format!(r#""_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":7}}"#),
            wrong,
        ),
        (
            &format!(r#""_meta":{{{capabilities},"io.modelcontextprotocol/protocolVersion":7}}"#),
            wrong,
        ),
        (&format!(r#""_meta":{{{version},{capabilities}}}"#), Result),
    ];
    let named = |text: &str| {
        Request::post(text)
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", "test_simple_text")
    };
    let rows = claims
        .iter()
        .map(|(claim, expected)| row("A46", named(&CALL.replace("META", claim)), *expected));
    bench.check(rows.collect());
}

#[test]
fn the_method_and_its_subject_are_repeated_exactly() {
    let bench = Bench::everything();
    let call = bench.post(Era::Alone, CALL);
    let mismatch = Error(400, MISMATCH);
    let with = |name: &str, value: &str| call.clone().replacing(name, value);
    let twice = |name: &str, value: &str| call.clone().with(name, value);
    bench.check(vec![
        row("method", call.clone().without("Mcp-Method"), mismatch),
        row("method", with("Mcp-Method", "tools/list"), mismatch),
        row("method", with("Mcp-Method", "TOOLS/CALL"), mismatch),
        row("method", twice("Mcp-Method", "tools/call"), mismatch),
        row("A48", call.clone().without("Mcp-Name"), mismatch),
        row("A48", with("Mcp-Name", "greet"), mismatch),
        row("A48", with("Mcp-Name", "TEST_SIMPLE_TEXT"), mismatch),
        row("A48", twice("Mcp-Name", "test_simple_text"), mismatch),
        row("A48", with("mcp-name", "  test_simple_text \t"), Result),
        row("A48", call.clone().without("Mcp-Name").with("mcp-NAME", " test_simple_text"), Result),
        row("A48", with("Mcp-Name", "=?base64?dGVzdF9zaW1wbGVfdGV4dA==?="), Result),
        row("A48", with("Mcp-Name", "=?base64?dGVzdF9zaW1wbGVfdGV4dA?="), mismatch),
        row("A48", with("Mcp-Name", "=?base64?dGVzdF9zaW1w!!VfdGV4dA==?="), mismatch),
        row("A48", with("Mcp-Name", "=?base64?//79?="), mismatch),
        row("A48", with("Mcp-Name", "=?BASE64?dGVzdF9zaW1wbGVfdGV4dA==?="), mismatch),
        row("A48", with("Mcp-Name", "caf\u{e9}"), mismatch),
    ]);
    // A name that looks like an encoded name is compared literally.
    let odd = "=?base64?dGVzdF9zaW1wbGVfdGV4dA==?=";
    let named = bench.post(Era::Alone, &CALL.replace("test_simple_text", odd));
    bench.check(vec![
        row("A48 unknown tool, but no mismatch", named.clone(), Error(200, WRONG_PARAMS)),
        row("A48 taken literally", named.replacing("Mcp-Name", odd), mismatch),
    ]);
}

#[test]
fn arguments_in_headers_say_what_the_body_says() {
    let bench = Bench::everything();
    let listed = bench.send(
        &bench
            .post(Era::Alone, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}"#),
    );
    let message = listed.message();
    let tools = message["result"]["tools"].as_array().unwrap();
    let mirrored = |tool: &&Value| tool["inputSchema"].to_string().contains("x-mcp-header");
    let tool = tools.iter().find(mirrored).expect("a tool with an argument in a header");
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    let of_text = |(_, shape): &(&String, &Value)| {
        shape["x-mcp-header"].is_string() && shape["type"] == "string"
    };
    let (argument, shape) = properties.iter().find(of_text).expect("a text in a header");
    let header = format!("Mcp-Param-{}", shape["x-mcp-header"].as_str().unwrap());
    let name = tool["name"].as_str().unwrap();
    let call = |value: Value| {
        let params = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"{argument}":{value}}},META}}}}"#
        );
        bench.post(Era::Alone, &params)
    };
    let hello = || call(json!("Hello"));
    let mismatch = Error(400, MISMATCH);
    bench.check(vec![
        row("A49", hello().with(&header, "Hello"), Result),
        row("A49", hello().with(&header.to_uppercase(), "  Hello "), Result),
        row("A49", hello().with(&header, "=?base64?SGVsbG8=?="), Result),
        row("A49", hello(), mismatch),
        row("A49", hello().with(&header, "hello"), mismatch),
        row("A49", hello().with(&header, "=?base64?SGVsbG8?="), mismatch),
        row("A49", hello().with(&header, "=?base64?SGVs!!!bG8=?="), mismatch),
        row("A49", hello().with(&header, "Hello").with(&header, "Hello"), mismatch),
        row("A49", call(json!(null)).with(&header, "Hello"), mismatch),
        row(
            "A49",
            call(json!("a\r\nX-Evil: 1")).with(&header, "=?base64?YQ0KWC1FdmlsOiAx?="),
            Result,
        ),
        row("A50 unknown", hello().with(&header, "Hello").with("Mcp-Param-Nobody", "7"), Result),
    ]);
}

#[test]
fn a_request_that_stands_alone_has_no_session() {
    let bench = Bench::everything();
    for id in [bench.session.as_str(), "no-such-session"] {
        let call = bench.post(Era::Alone, CALL);
        let call = call.with("Mcp-Session-Id", id).with("Last-Event-ID", "1-1");
        let response = bench.send(&call);
        check_response(&response, Result).unwrap_or_else(|error| panic!("A54 {id}: {error}"));
        assert_eq!(response.head.field("mcp-session-id"), None, "A54");
        bench.canary("A54");
    }
}
