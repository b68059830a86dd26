//! Tests of the trace context that a client gets with input requests in a session.

use creole_acceptance::peers::otlp::receiver;
use creole_acceptance::process_under_test::{Server, request};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{CLIENT, PARENT, TRACE_ID, command, exporting};

/// A server whose tools request input.
const ASKING: &str = "[server]\nname = \"main\"\npacks = [\"everything\"]\n";

/// The tools, their arguments, and the methods of their input requests.
fn tools() -> [(&'static str, Value, &'static str); 3] {
    [
        ("test_elicitation", json!({"message": "Who?"}), "elicitation/create"),
        ("test_sampling", json!({"prompt": "Why?"}), "sampling/createMessage"),
        ("test_input_required_result_list_roots", json!({}), "roots/list"),
    ]
}

/// A client of a session on standard input and output that accepts every input request.
struct AskedClient {
    server: Server,
    calls: u64,
}

impl AskedClient {
    fn of(mut server: Server) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
            "clientInfo": {"name": "asked", "version": "1"},
        });
        assert!(server.request("initialize", &params)["result"].is_object());
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        server.write(format!("{ready}\n"));
        Self { server, calls: 100 }
    }

    /// The input request that a call with this `_meta` gets. The call is answered.
    fn input_request(&mut self, tool: &str, arguments: &Value, meta: &Value) -> Value {
        self.calls += 1;
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.server.write(request(self.calls, "tools/call", &params));
        let asked = self.server.answer();
        let result = match asked["method"].as_str() {
            Some("elicitation/create") => {
                json!({"action": "accept", "content": {"username": "Ann", "email": "a@b.c"}})
            }
            Some("sampling/createMessage") => {
                let content = json!({"type": "text", "text": "Because."});
                json!({"role": "assistant", "content": content, "model": "m"})
            }
            _ => json!({"roots": [{"uri": "file:///a"}]}),
        };
        let response = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        self.server.write(format!("{response}\n"));
        let answer = self.server.answer();
        assert!(answer["result"].is_object() && answer["id"] == self.calls, "{answer}");
        asked
    }
}

#[test]
fn an_input_request_carries_its_span_if_the_call_is_sampled_else_the_context_of_the_caller() {
    let Some(receiver) = receiver(&[]) else { return };
    let config = format!("{ASKING}{}", exporting(&receiver, "[telemetry.traces]\nsample = 0"));
    let (command, _folder) = command(&config, &["--stdio"]);
    let mut client = AskedClient::of(Server::start_command(command));
    let unsampled = PARENT.replace("-01", "-00");
    for (tool, arguments, method) in tools() {
        let sampled = json!({"traceparent": PARENT, "tracestate": "a=1", "baggage": "b=1"});
        let asked = client.input_request(tool, &arguments, &sampled);
        assert_eq!(asked["method"], method);
        let span = receiver.span(method);
        assert_eq!((&span["kind"], &span["trace_id"]), (&json!(CLIENT), &json!(TRACE_ID)));
        let expected = format!("00-{TRACE_ID}-{}-01", span["span_id"].as_str().unwrap());
        let meta = json!({"traceparent": expected, "tracestate": "a=1"});
        assert_eq!(asked["params"]["_meta"], meta, "{asked}");

        let context = json!({"traceparent": unsampled, "tracestate": "a=1", "other": 1});
        let asked = client.input_request(tool, &arguments, &context);
        let meta = json!({"traceparent": unsampled, "tracestate": "a=1"});
        assert_eq!(asked["params"]["_meta"], meta, "{asked}");

        let asked = client.input_request(tool, &arguments, &json!({"other": 1}));
        assert!(asked["params"].get("_meta").is_none(), "{asked}");
    }
    eventually("one span for each sampled input request", || {
        let of = |method: &str| receiver.spans(method).len() == 1;
        tools().iter().all(|(_, _, method)| of(method))
    });
}

#[test]
fn without_telemetry_an_input_request_carries_the_context_of_its_caller() {
    let (command, _folder) = command(ASKING, &["--stdio"]);
    let mut client = AskedClient::of(Server::start_command(command));
    for (tool, arguments, _) in tools() {
        let asked = client.input_request(tool, &arguments, &json!({"traceparent": PARENT}));
        assert_eq!(asked["params"]["_meta"], json!({"traceparent": PARENT}), "{asked}");
        let asked = client.input_request(tool, &arguments, &json!({}));
        assert!(asked["params"].get("_meta").is_none(), "{asked}");
    }
}
