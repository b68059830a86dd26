//! Rows about bodies that are not JSON, not a message, or an invalid message (A01 to A18, A25 to A33).

use creole_acceptance::http::Request;

use crate::Expected::{Error, Result, Status};
use crate::bench::{Bench, check_response, open_session};
use crate::{BOTH, Era, Expected, NO_MESSAGE, NO_METHOD, NOT_JSON, Row, WRONG_PARAMS, row};

/// A valid call. `META` stands for the members that the era adds.
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text",META}}"#;

/// The same rows for both eras.
fn both(bench: &Bench, rows: &[(&'static str, &str, Expected)]) -> Vec<Row> {
    let rows = rows.iter();
    rows.flat_map(|(name, text, expected)| {
        BOTH.map(|era| row(name, bench.post(era, text), *expected))
    })
    .collect()
}

/// Rows for both eras whose bodies are not JSON.
fn no_json(bench: &Bench, name: &'static str, bodies: &[&[u8]]) -> Vec<Row> {
    let expected = Error(400, NOT_JSON);
    let bodies = bodies.iter();
    bodies
        .flat_map(|body| BOTH.map(|era| row(name, bench.post_bytes(era, body), expected)))
        .collect()
}

#[test]
fn invalid_json_is_reported() {
    let bench = Bench::everything();
    bench.check(no_json(&bench, "A01 nothing", &[b"", b" \t\r\n ", b"\n"]));
    bench.check(no_json(&bench, "A02 truncated", &[br#"{"jsonrpc":"2.0","#, b"{", b"[", b"\"a"]));
    let almost = [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} // said"#,
        r#"{"jsonrpc":"2.0",/* said */"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":Infinity,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":0x10,"method":"ping"}"#,
        r"{'jsonrpc':'2.0','id':1,'method':'ping'}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\0ng\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x1bng\"}",
        r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"\udc00","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"\ude00\ud83d","method":"ping"}"#,
    ];
    let almost: Vec<&[u8]> = almost.iter().map(|text| text.as_bytes()).collect();
    bench.check(no_json(&bench, "A04, A07, A08 almost JSON", &almost));
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let marked = [b"\xef\xbb\xbf".as_slice(), ping].concat();
    bench.check(no_json(&bench, "A05 a byte order mark", &[&marked]));
    let within = |bytes: &[u8]| {
        [br#"{"jsonrpc":"2.0","id":""#.as_slice(), bytes, br#"","method":"ping"}"#].concat()
    };
    let broken = [b"\xff\xfe".as_slice(), b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\xf8\x88"];
    let broken: Vec<Vec<u8>> = broken.into_iter().map(within).collect();
    let broken: Vec<&[u8]> = broken.iter().map(Vec::as_slice).collect();
    bench.check(no_json(&bench, "A06 no UTF-8", &broken));
    bench.weigh();
}

#[test]
fn an_error_without_a_readable_id_has_none() {
    let bench = Bench::everything();
    for era in BOTH {
        for body in ["", "{", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#] {
            let response = bench.send(&bench.post(era, body));
            assert_eq!(response.message().get("id"), None, "{era:?} {body}: {}", response.text());
            assert!(response.message()["error"]["message"].is_string(), "{}", response.text());
        }
    }
    let old = open_session(&bench.server, "2025-06-18");
    let response = bench.send(&Request::post("{").with("Mcp-Session-Id", &old));
    assert!(response.message()["id"].is_null(), "{}", response.text());
    assert_eq!(response.head.status, 400, "{}", response.text());
}

#[test]
fn an_invalid_message_is_reported() {
    let bench = Bench::everything();
    let refused = Error(400, NO_MESSAGE);
    bench.check(both(
        &bench,
        &[
            ("A11", r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{META}}"#, refused),
            ("A11", r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list","params":{META}}"#, refused),
            ("A12", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","name":"test_error_handling",META}}"#, refused),
            ("A12", r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","n\u0061me":"test_error_handling",META}}"#, refused),
            ("A13", r#"{"jsonrpc":"2.0","id":1,"Method":"tools/list","params":{META}}"#, refused),
            ("A13", r#"{"jsonrpc":"2.0","id":1,"METHOD":"tools/list","params":{META}}"#, refused),
            ("A13", r#"{"jsonrpc":"2.0","id":1,"methoᴅ":"tools/list","params":{META}}"#, refused),
            ("A16", r#"{"id":1,"method":"tools/list","params":{META}}"#, refused),
            ("A16", r#"{"jsonrpc":"1.0","id":1,"method":"tools/list","params":{META}}"#, refused),
            ("A16", r#"{"jsonrpc":2.0,"id":1,"method":"tools/list","params":{META}}"#, refused),
            ("A16", r#"{"jsonrpc":" 2.0","id":1,"method":"tools/list","params":{META}}"#, refused),
            ("A17", r#"{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{META}}"#, refused),
            ("A18", r#"{"jsonrpc":"2.0","id":true,"method":"tools/list","params":{META}}"#, refused),
            ("A18", r#"{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{META}}"#, refused),
            ("A18", r#"{"jsonrpc":"2.0","id":[],"method":"tools/list","params":{META}}"#, refused),
            ("A18", r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{META}}"#, refused),
            ("A18", r#"{"jsonrpc":"2.0","id":1e2,"method":"tools/list","params":{META}}"#, refused),
            ("A18", r#"{"jsonrpc":"2.0","id":"","method":"tools/list","params":{META}}"#, Result),
            ("A25", r#"{"jsonrpc":"2.0","id":1,"params":{META}}"#, refused),
            ("A25", r#"{"jsonrpc":"2.0","id":1,"method":7,"params":{META}}"#, refused),
            ("A25", r#"{"jsonrpc":"2.0","id":1,"method":"","params":{META}}"#, refused),
            ("A27", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, refused),
            ("A27", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}"#, refused),
            ("A27", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":7}"#, refused),
            ("A28", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","result":{},"params":{META}}"#, refused),
            ("A28", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","error":{"code":1,"message":"x"},"params":{META}}"#, refused),
            ("A29", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, refused),
            ("A29", r#"{"jsonrpc":"2.0","id":"q-1","error":{"code":1,"message":"x"}}"#, refused),
            ("A30", r#"{"jsonrpc":"2.0","id":1,"extra":[{}],"method":"tools/call","params":{"name":"test_simple_text","more":{"x":1},META}}"#, Result),
            ("A31", "[]", refused),
            ("A33", r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}]"#, refused),
            ("A33", "[1]", refused),
            ("scalars", "1", refused),
            ("scalars", "\"tools/list\"", refused),
            ("scalars", "null", refused),
        ],
    ));
    let null = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#;
    // Null counts as absent, so the revision is missing.
    bench.check(vec![
        row("A27 null", bench.post(Era::Alone, null), Error(400, WRONG_PARAMS)),
        row("A27 null", bench.post(Era::Session, null), Result),
    ]);
    bench.weigh();
}

#[test]
fn a_readable_id_is_in_the_error() {
    let bench = Bench::everything();
    for era in BOTH {
        for text in [
            r#"{"jsonrpc":"1.0","id":"mine","method":"tools/list","params":{META}}"#,
            r#"{"jsonrpc":"2.0","id":"mine","method":"no/such","params":{META}}"#,
            r#"{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"no_such",META}}"#,
        ] {
            let response = bench.send(&bench.post(era, text));
            assert_eq!(response.message()["id"], "mine", "{era:?} {text}: {}", response.text());
            assert!(response.code().is_some(), "{era:?} {text}: {}", response.text());
        }
    }
}

#[test]
fn unknown_methods_have_the_status_of_their_era() {
    let bench = Bench::everything();
    let long = "x".repeat(1500);
    let unknown = ["no/such", "rpc.x", "tools/CALL", long.as_str()];
    let request = |era, method: &str| {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"M","params":{META}}"#;
        bench.post(era, &text.replace("\"M\"", &format!("\"{method}\"")))
    };
    let mut rows = Vec::new();
    for method in unknown {
        rows.push(row("A25", request(Era::Alone, method), Error(404, NO_METHOD)));
        rows.push(row("A25", request(Era::Session, method), Error(200, NO_METHOD)));
    }
    let removed =
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    for method in removed {
        rows.push(row("A26", request(Era::Alone, method), Error(404, NO_METHOD)));
    }
    bench.check(rows);
}

#[test]
fn batches_belong_to_one_revision() {
    let bench = Bench::everything();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let batch = format!("[{list}]");
    let mut rows = Vec::new();
    for (version, full) in [
        ("2024-11-05", Result),
        ("2025-03-26", Status(200)),
        ("2025-06-18", Error(400, NO_MESSAGE)),
    ] {
        let session = open_session(&bench.server, version);
        let post = |body: &str| Request::post(body).with("Mcp-Session-Id", &session);
        rows.push(row("A31", post("[]"), Error(400, NO_MESSAGE)));
        if version != "2024-11-05" {
            rows.push(row("A33", post(&batch), full));
        }
    }
    bench.check(rows);
}

#[test]
fn nothing_of_a_refused_body_is_executed() {
    let bench = Bench::default();
    let create = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_task","arguments":{"description":"sneaked in"},META}}"#;
    let twice = format!("{create}\n{create}");
    let trailing = format!("{create} x");
    let batch = format!("[{create}]");
    let repeated = create.replacen(r#""id":1,"#, r#""id":1,"id":2,"#, 1);
    for era in BOTH {
        for (name, text, code) in [
            ("A03", &twice, NOT_JSON),
            ("A03", &trailing, NOT_JSON),
            ("A11", &repeated, NO_MESSAGE),
            ("A33", &batch, NO_MESSAGE),
        ] {
            let response = bench.send(&bench.post(era, text));
            let found = check_response(&response, Error(400, code));
            found.unwrap_or_else(|error| panic!("{name} {era:?}: {error}"));
            bench.canary(name);
        }
        let form = bench.post(era, create);
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let response = bench.send(&form.clone().replacing("Content-Type", kind));
            assert_eq!(response.head.status, 415, "A40 {era:?} {kind}: {}", response.text());
        }
    }
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_tasks","arguments":{},META}}"#;
    let listed = bench.send(&bench.post(Era::Session, list));
    assert_eq!(listed.head.status, 200, "{}", listed.text());
    assert!(!listed.text().contains("sneaked in"), "{}", listed.text());
    // The same call in valid form does create a task: this shows that the check above can fail.
    let created = bench.send(&bench.post(Era::Alone, create));
    assert_eq!(created.head.status, 200, "{}", created.text());
    let listed = bench.send(&bench.post(Era::Session, list));
    assert!(listed.text().contains("sneaked in"), "{}", listed.text());
}

#[test]
fn invalid_parameters_are_errors_of_the_method() {
    let bench = Bench::everything();
    let wrong = Error(200, WRONG_PARAMS);
    let long = "x".repeat(64 * 1024);
    let cursor = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"cursor":"{long}",META}}}}"#
    );
    let call = CALL.replace("META", r#""arguments":7,META"#);
    bench.check(both(
        &bench,
        &[
            ("A57", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"tampered",META}}"#, wrong),
            ("A57", &cursor, wrong),
            ("A57", &call, wrong),
            ("a good call", CALL, Result),
        ],
    ));
    let in_meta = |member: &str| {
        let (open, close) = (r#""_meta":{"#, "}");
        let meta = crate::bench::META.strip_suffix(close).unwrap().strip_prefix(open).unwrap();
        CALL.replace("META", &format!("{open}{meta},{member}{close}"))
    };
    let token = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","_meta":{"progressToken":{}}}}"#;
    bench.check(vec![
        row("A57 token", bench.post(Era::Alone, &in_meta(r#""progressToken":{}"#)), wrong),
        row("A57 token", bench.post(Era::Session, token), wrong),
        row(
            "A57 level",
            bench.post(Era::Alone, &in_meta(r#""io.modelcontextprotocol/logLevel":"loud""#)),
            wrong,
        ),
        row(
            "A57 level",
            bench.post(
                Era::Session,
                r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}"#,
            ),
            wrong,
        ),
    ]);
}
