//! Rows about values at their limits: ids, texts, many values, ids in flight (A07, A08, A10, A19 to A23, A56).

use std::thread;

use creole_acceptance::http::{Events, Request};
use serde_json::json;

use crate::Expected::{Error, Result};
use crate::bench::Bench;
use crate::{BOTH, NO_MESSAGE, row};

#[test]
fn an_id_is_returned_byte_for_byte() {
    let bench = Bench::everything();
    let long = format!("\"{}\"", "x".repeat(1000));
    let ids = [
        "-1",
        "0",
        "9007199254740991",
        "9007199254740993",
        "-9223372036854775808",
        "9223372036854775807",
        "18446744073709551615",
        r#""""#,
        r#""1""#,
        r#""a\nb""#,
        r#""\u001b[31m""#,
        r#""😀 \" \\ \ud83d\ude00""#,
        &long,
    ];
    for era in BOTH {
        for id in ids {
            let text = r#"{"jsonrpc":"2.0","id":ID,"method":"tools/list","params":{META}}"#;
            let response = bench.send(&bench.post(era, &text.replace("ID", id)));
            assert_eq!(response.head.status, 200, "A19, A21 {era:?} {id}: {}", response.text());
            let expected = format!("\"id\":{id}");
            assert!(response.text().contains(&expected), "{era:?} {id}: {}", response.text());
        }
        let long = format!("\"{}\"", "x".repeat(64 * 1024));
        let text = r#"{"jsonrpc":"2.0","id":ID,"method":"tools/list","params":{META}}"#;
        let request = bench.post(era, &text.replace("ID", &long));
        bench.check(vec![row("A21 too long", request, Error(400, NO_MESSAGE))]);
    }
    bench.weigh();
}

#[test]
fn texts_are_returned_unchanged() {
    let bench = Bench::default();
    let texts = [
        (r"\ud83d\ude00", "😀"),
        (r"a\u0000b", "a\0b"),
        (r"line\n\ndata: {}\n\nid: 7\r\rend", "line\n\ndata: {}\n\nid: 7\r\rend"),
        ("\u{2028}\u{2029}\u{85}", "\u{2028}\u{2029}\u{85}"),
    ];
    for era in BOTH {
        for (sent, meant) in texts {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{sent}"}},META}}}}"#
            );
            let response = bench.send(&bench.post(era, &text));
            assert_eq!(response.message()["result"]["content"][0]["text"], *meant, "{era:?}");
        }
    }
}

#[test]
fn the_number_of_values_is_limited() {
    let bench = Bench::everything();
    let body = |count: usize, value: &str| {
        let values = vec![value; count].join(",");
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"many":[{values}],META}}}}"#
        )
    };
    for era in BOTH {
        bench.check(vec![
            row("A10", bench.post(era, &body(199_000, "1")), Result),
            row("A10", bench.post(era, &body(201_000, "1")), Error(400, NO_MESSAGE)),
            row("A10", bench.post(era, &body(199_000, "{}")), Result),
            row("A10", bench.post(era, &body(201_000, "{}")), Error(400, NO_MESSAGE)),
        ]);
    }
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"deep":{open}{close},META}}}}"#
        )
    };
    for era in BOTH {
        bench.check(vec![
            row("depth", bench.post(era, &nested(120)), Result),
            row("depth", bench.post(era, &nested(130)), Error(400, NO_MESSAGE)),
            row("depth", bench.post(era, &nested(100_000)), Error(400, NO_MESSAGE)),
        ]);
    }
    bench.weigh();
}

#[test]
fn equal_ids_in_flight_do_not_meet() {
    let bench = Bench::everything();
    let slow = |id: &str, milliseconds: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"test_slow","arguments":{{"milliseconds":{milliseconds}}},META}}}}"#
        )
    };
    for era in BOTH {
        let calls = [("1", 300), ("\"1\"", 290), ("1", 280)];
        let requests = calls.map(|(id, time)| (id, time, bench.post(era, &slow(id, time))));
        thread::scope(|scope| {
            for (id, milliseconds, request) in &requests {
                let bench = &bench;
                scope.spawn(move || {
                    let response = bench.send(request);
                    let message = response.message();
                    assert_eq!(message["id"].to_string(), *id, "A22, A23: {message}");
                    let text = format!("Slept {milliseconds} ms");
                    assert_eq!(message["result"]["content"][0]["text"], text, "{message}");
                });
            }
        });
        bench.canary("A22");
    }
    bench.weigh();
}

#[test]
fn an_input_response_counts_only_in_its_own_session() {
    let bench = Bench::everything();
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "asked", "version": "1"},
        },
    });
    let response = bench.send(&Request::post(hello.to_string()));
    let asked = response.head.field("mcp-session-id").unwrap().to_owned();
    // Line breaks in a text do not become lines of the event stream (A56).
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_elicitation","arguments":{"message":"Who?\n\ndata: {}\n\nid: 7\r\rend"}}}"#;
    let address = bench.server.address();
    let mut connection = bench.connect();
    let request = Request::post(call).with("Mcp-Session-Id", &asked);
    connection.write(&request.bytes(address)).unwrap();
    let head = connection.head().unwrap();
    let mut events = Events::new(connection.body(&head)).filter(|event| !event.data.is_empty());
    let received: serde_json::Value = serde_json::from_str(&events.next().unwrap().data).unwrap();
    assert_eq!(received["method"], "elicitation/create", "{received}");
    let asked_for = "Who?\n\ndata: {}\n\nid: 7\r\rend";
    assert_eq!(received["params"]["message"], asked_for, "A56: {received}");
    let returned = json!({"jsonrpc": "2.0", "id": received["id"], "result": {"action": "decline"}});
    let answered = |session: &str| {
        bench.send(&Request::post(returned.to_string()).with("Mcp-Session-Id", session))
    };
    assert_eq!(answered(&bench.session).head.status, 400, "A29: the response of another session");
    bench.canary("A29");
    assert_eq!(answered(&asked).head.status, 202, "A29: the response of the requested client");
    let result: serde_json::Value = serde_json::from_str(&events.next().unwrap().data).unwrap();
    assert_eq!(result["id"], 1, "{result}");
    assert_eq!(answered(&asked).head.status, 400, "A29: the same response again");
}
