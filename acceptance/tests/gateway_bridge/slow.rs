//! Tests of callers that do not read their responses.

use std::thread;

use creole_acceptance::http::Connection;
use serde_json::{Value, json};

use crate::{Bridge, asking, text};

/// The number of messages that a server sends in one call: many times the queue limit of a caller.
const MESSAGES: u64 = 4_000;

/// The maximum growth of the gateway in bytes. It receives several times as much.
const GROWTH: u64 = 10 << 20;

/// Makes a call whose client reads everything. Meanwhile the server may receive the cancellation of another call.
fn plain(bridge: &Bridge, given_up: &mut Option<Value>) {
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let mut message = bridge.puppets.next();
    if message.message["method"] == "notifications/cancelled" {
        *given_up = Some(message.message);
        message = bridge.puppets.next();
    }
    assert_eq!(message.message["method"], "tools/call");
    message.text("plain");
    assert_eq!(text(&call.answer()), "plain");
}

#[test]
fn a_caller_that_does_not_read_costs_little_and_delays_no_other() {
    let bridge = Bridge::new(asking());
    let address = bridge.gateway.address();
    // A client that reads nothing for thirty seconds is disconnected. On a busy machine this test may take that long.
    let mut given_up = None;
    plain(&bridge, &mut given_up);
    let before = bridge.gateway.weight();
    let client = bridge.modern().with_meta(json!({"progressToken": "p"}));
    let params = json!({"name": "ask", "arguments": {}});
    let request = client.written(&json!(1), "tools/call", params);
    let mut slow = Connection::open(address).unwrap();
    slow.write(&request.bytes(address)).unwrap();
    let call = bridge.puppets.hears("tools/call");
    let (by, token) = (call.by.clone(), call.message["params"]["_meta"]["progressToken"].clone());
    let telling = thread::spawn(move || {
        let words = "x".repeat(8 << 10);
        for progress in 1..=MESSAGES {
            let message = json!({"progressToken": token, "progress": progress, "message": words});
            by.tells("notifications/progress", &message);
        }
    });
    while !telling.is_finished() {
        plain(&bridge, &mut given_up);
    }
    telling.join().unwrap();
    plain(&bridge, &mut given_up);
    let grown = bridge.gateway.weight().growth_since(before);
    assert!(grown < GROWTH, "{grown} bytes more");
    // The gateway notices when the client disconnects.
    slow.ender().unwrap().end();
    let given_up = given_up.unwrap_or_else(|| bridge.puppets.next().message);
    assert_eq!(given_up["method"], "notifications/cancelled");
    assert_eq!(given_up["params"]["requestId"], call.message["id"]);
}
