//! Tests of tasks across the eras: their form on either side, their end, and which callers may query them.

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use serde_json::{Value, json};

use crate::driving::modern;
use crate::tasks::{TASKS, is_answered, stands, task, working};
use crate::{Bridge, form, named, text};

/// A client with the tasks extension. The gateway has already fetched which tools create tasks.
fn following(bridge: &Bridge) -> StatelessClient {
    let client = bridge.modern().that_can(json!({"elicitation": {}, "extensions": {TASKS: {}}}));
    assert!(client.request("tools/list", json!({})).get("error").is_none());
    client
}

/// Starts a task for the client and returns its id.
#[track_caller]
fn begin(client: &StatelessClient, bridge: &Bridge) -> Value {
    let created = client.call("job", json!({}))["result"].clone();
    assert_eq!(created["resultType"], "task", "{created}");
    for flat in ["ttlMs", "pollIntervalMs"] {
        assert!(created[flat].is_number(), "{created}");
    }
    for of_the_other_era in ["task", "ttl", "pollInterval"] {
        assert!(created.get(of_the_other_era).is_none(), "{created}");
    }
    bridge.puppets.hears("tools/call").result(json!({"task": task("working")}));
    created["taskId"].clone()
}

#[test]
fn a_task_that_failed_is_complete_if_its_tool_answered_and_failed_if_nothing_did() {
    let bridge = Bridge::new(working());
    let client = following(&bridge);
    let id = begin(&client, &bridge);
    bridge.puppets.hears("tasks/get").result(task("failed"));
    let message = json!({"content": [{"type": "text", "text": "no such file"}], "isError": true});
    bridge.puppets.hears("tasks/result").result(message);
    let done = stands(&client, &id, "completed");
    assert_eq!(done["result"]["isError"], true, "{done}");
    assert_eq!(done["result"]["content"][0]["text"], "no such file");

    let id = begin(&client, &bridge);
    bridge.puppets.hears("tasks/get").result(task("failed"));
    bridge.puppets.hears("tasks/result").error(-32603, "it broke", &Value::Null);
    let done = stands(&client, &id, "failed");
    assert_eq!(done["error"]["code"], -32603, "{done}");
    assert!(done.get("result").is_none(), "{done}");
}

#[test]
fn a_task_requests_input_again_under_another_key_and_may_be_cancelled_when_it_is_finished() {
    let bridge = Bridge::new(working());
    let client = following(&bridge);
    let id = begin(&client, &bridge);
    bridge.puppets.hears("tasks/get").result(task("input_required"));
    let waiting = bridge.puppets.hears("tasks/result");
    let mut keys = Vec::new();
    for (question, name) in [("q1", "Ann"), ("q", "Ann")] {
        let mut request = form("Who?");
        request["_meta"] =
            json!({"io.modelcontextprotocol/related-task": {"taskId": "their task"}});
        waiting.by.asks(json!(question), "elicitation/create", request);
        let standing = stands(&client, &id, "input_required");
        let key = standing["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let responses = json!({"taskId": id, "inputResponses": {&key: named(name)}});
        let taken = client.request("tasks/update", responses);
        assert_eq!(taken["result"]["resultType"], "complete", "{taken}");
        assert!(!keys.contains(&key), "the input request {key} was sent before");
        keys.push(key);
        if question == "q1" {
            assert_eq!(bridge.puppets.next().message["id"], "q1");
        }
    }
    is_answered(&bridge, &waiting);
    stands(&client, &id, "completed");
    let cancelled = client.request("tasks/cancel", json!({"taskId": id}));
    assert!(cancelled.get("error").is_none(), "{cancelled}");
    assert_eq!(stands(&client, &id, "completed")["result"]["content"][0]["text"], "Hello, Ann!");
}

#[test]
fn a_task_under_another_name_in_the_header_or_of_a_client_without_tasks_is_refused() {
    let bridge = Bridge::new(working());
    let client = following(&bridge);
    let id = begin(&client, &bridge);
    let address = bridge.gateway.address();
    let get = client.written(&json!(9), "tasks/get", json!({"taskId": id}));
    let refused = get.replacing("Mcp-Name", "another").send(address).unwrap();
    assert_eq!((refused.head.status, refused.code()), (400, Some(-32020)), "{}", refused.text());
    let without = bridge.modern().written(&json!(9), "tasks/get", json!({"taskId": id}));
    let refused = without.send(address).unwrap();
    assert_eq!((refused.head.status, refused.code()), (400, Some(-32021)), "{}", refused.text());
}

#[test]
fn a_client_of_2025_11_25_gets_a_task_of_a_server_that_answers_at_once() {
    let value = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 60_000,
        "capabilities": {"tools": {}, "extensions": {TASKS: {}}}, "cacheScope": "private",
    });
    let bridge = Bridge::new(modern().answering("server/discover", value));
    let capabilities = json!({"tasks": {"list": {}, "cancel": {}}});
    let client = HandshakeClient::open(bridge.gateway.address(), "2025-11-25", capabilities, None);
    assert!(client.welcome["capabilities"]["tasks"].is_object(), "{}", client.welcome);
    let wish = json!({"name": "ask", "arguments": {}, "task": {"ttl": 60_000}});
    let mut call = client.begin(&json!(1), "tools/call", &wish);
    let received = bridge.puppets.hears("tools/call");
    assert!(received.message["params"].get("task").is_none(), "{}", received.message);
    let created = call.answer();
    let id = created["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{created}");
    received.result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": "at once"}]}),
    );
    let done = client.request("tasks/result", &json!({"taskId": id}));
    assert_eq!(text(&done), "at once");
    let related = &done["result"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], id, "{done}");
    let standing = client.request("tasks/get", &json!({"taskId": id}));
    assert_eq!(standing["result"]["status"], "completed");
}

#[test]
fn a_task_that_is_cancelled_here_is_cancelled_at_its_server() {
    let bridge = Bridge::new(working());
    let client = following(&bridge);
    let id = begin(&client, &bridge);
    bridge.puppets.hears("tasks/get").result(task("working"));
    let cancelled = client.request("tasks/cancel", json!({"taskId": id}));
    assert!(cancelled.get("error").is_none(), "{cancelled}");
    let message = (0..100).map(|_| bridge.puppets.next()).find(|text| {
        // The gateway may poll the task once more before it knows of the cancellation.
        let is_look = text.message["method"] == "tasks/get";
        if is_look {
            text.result(task("working"));
        }
        !is_look && text.message["method"] != "notifications/cancelled"
    });
    let message = message.unwrap();
    assert_eq!(message.message["method"], "tasks/cancel", "{}", message.message);
    assert_eq!(message.message["params"]["taskId"], "their task");
    message.result(task("cancelled"));
    assert_eq!(stands(&client, &id, "cancelled")["status"], "cancelled");
}
