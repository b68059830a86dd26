//! Rows about sessions: ids that clients can neither guess nor choose, and the end of a session (D30, D31, D34).

use std::collections::HashSet;
use std::io::Read;

use creole_acceptance::http::Request;

use crate::bench::{Bench, open_session};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"acceptance","version":"1"}}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// The number of sessions: enough for the statistics, and fewer than a server's limit.
const MANY: usize = 2_000;

#[test]
fn ids_of_sessions_cannot_be_guessed() {
    let bench = Bench::everything();
    let address = bench.server.address();
    let mut connection = bench.connect();
    let mut ids = HashSet::new();
    for _ in 0..MANY {
        connection.write(&Request::post(INITIALIZE).bytes(address)).unwrap();
        let response = connection.response().unwrap();
        let id = response.head.field("mcp-session-id").expect("a session").to_owned();
        connection.write(&Request::delete(&id).bytes(address)).unwrap();
        assert_eq!(connection.response().unwrap().head.status, 204, "D34");
        assert!(ids.insert(id), "D30: an id was repeated");
    }
    let mut digits = [0_usize; 256];
    for id in &ids {
        assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "D30: {id:?}");
        id.bytes().for_each(|byte| digits[usize::from(byte)] += 1);
    }
    // Random ids use all digits about equally often. The test measures the entropy of the digits.
    let total: usize = digits.iter().sum();
    let share = |count: &usize| *count as f64 / total as f64;
    let bits: f64 = digits
        .iter()
        .filter(|count| **count > 0)
        .map(|count| -share(count) * share(count).log2())
        .sum();
    let length = total as f64 / ids.len() as f64;
    assert!(bits * length >= 128.0, "D30: {bits} bits in each of {length} digits");
    bench.canary("D30");
    bench.weigh();
}

#[test]
fn a_client_cannot_choose_the_id_of_a_session() {
    let bench = Bench::everything();
    let chosen = "chosen-by-the-client-0123456789";
    let hello = Request::post(INITIALIZE).with("Mcp-Session-Id", chosen);
    let response = bench.send(&hello);
    let id = response.head.field("mcp-session-id").expect("a session").to_owned();
    assert_ne!(id, chosen, "D31");
    let status = |id: &str| bench.send(&Request::post(LIST).with("Mcp-Session-Id", id)).head.status;
    assert_eq!((status(&id), status(chosen)), (200, 404), "D31");
    // An `initialize` with the id of another session does not return that session.
    let response = bench.send(&Request::post(INITIALIZE).with("Mcp-Session-Id", &id));
    assert_ne!(response.head.field("mcp-session-id"), Some(id.as_str()), "D31");
    bench.canary("D31");
}

#[test]
fn a_session_that_is_over_is_unknown_and_its_stream_ends() {
    let bench = Bench::everything();
    let id = open_session(&bench.server, "2025-11-25");
    let mut stream = bench.connect();
    stream.write(&Request::get(&id).bytes(bench.server.address())).unwrap();
    let head = stream.head().unwrap();
    assert!(head.is_events() && head.status == 200, "{head:?}");
    assert_eq!(bench.send(&Request::delete(&id)).head.status, 204, "D34");
    let mut rest = String::new();
    // The server ends the stream. If the stream stayed open, this read would time out.
    stream.body(&head).read_to_string(&mut rest).expect("D34: the end of the stream");
    let unknown = "0".repeat(id.len());
    for gone in
        [Request::post(LIST).with("Mcp-Session-Id", &id), Request::get(&id), Request::delete(&id)]
    {
        let never = gone.clone().replacing("Mcp-Session-Id", &unknown);
        let (gone, never) = (bench.send(&gone), bench.send(&never));
        assert_eq!(gone.head.status, 404, "D34: {}", gone.text());
        // The response does not differ from the one for a session that never existed (D32).
        assert_eq!((gone.head.status, gone.text()), (never.head.status, never.text()), "D34");
        bench.canary("D34");
    }
}
