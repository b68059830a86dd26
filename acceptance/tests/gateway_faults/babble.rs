//! Tests of upstreams that send unsolicited or invalid messages.

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies};
use serde_json::json;

use crate::{A_MOMENT, answers_again, before, before_shell, show, wait_for_message};

#[test]
fn an_invalid_message_is_ignored_and_reaches_no_caller() {
    let children = ScriptedChildren::new(show());
    let gateway = before(&children);
    let (mut call, received) = wait_for_message(&gateway, &children);
    let noise = [
        "Server listening on stdio\n",
        "\u{1b}[32mready\u{1b}[0m\n",
        "\n",
        "[1,2,3]\n",
        "{\"level\":\"info\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"m\"}}\n",
        "{\"jsonrpc\":\"1.0\",\"id\":1}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/what\"}\n",
    ];
    noise.iter().for_each(|line| received.by.writes(line));
    received.text("after all");
    let (before, response) = call.all();
    assert_eq!(before.len(), 0, "{before:?}");
    assert_eq!(response["result"]["content"][0]["text"], "after all");
    // A request with an unknown method is rejected and not forwarded.
    received.by.asks(json!("r"), "what/ever", json!({}));
    let refused = children.next().message;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("r"), &json!(-32601)));
}

#[test]
fn a_stateless_upstream_cannot_send_input_requests() {
    let value = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
    });
    let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
    let tools =
        json!({"resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private"});
    let show = ScriptedReplies::new("2026-07-28", json!({}), &[])
        .answering("server/discover", value)
        .answering("tools/list", tools);
    let children = ScriptedChildren::new(show);
    let gateway = before(&children);
    let (mut call, received) = wait_for_message(&gateway, &children);
    received.by.asks(
        json!(1),
        "elicitation/create",
        json!({"message": "m", "requestedSchema": {}}),
    );
    assert!(call.within(A_MOMENT).is_none(), "the client gets no input request");
    received.result(json!({"resultType": "complete", "content": [{"type": "text", "text": "ok"}]}));
    let (before, response) = call.all();
    assert_eq!((before.len(), &response["result"]["content"][0]["text"]), (0, &json!("ok")));
}

#[test]
fn an_upstream_that_floods_its_stderr_does_not_fill_the_log() {
    let children = ScriptedChildren::new(show());
    let flood = "(head -c 100000000 /dev/zero | tr '\\0' '\\377' >&2; yes 'too much' | head -n 2000000 >&2) &";
    let gateway = before_shell(&children, &format!("{flood} PUPPET"));
    for _ in 0..20 {
        answers_again(&gateway, &children);
    }
    let log = gateway.log().len();
    assert!(log < 4 << 20, "{log} bytes of log");
}
