//! Tests of input requests inside tasks of upstreams of the handshake era, for clients that return with the responses.

use creole_acceptance::gateway::{ReceivedMessage, ScriptedReplies, StatelessClient};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{Bridge, form, named, only_key, text};

pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A server with a tool that only runs as a task, and one that never does.
pub(crate) fn working() -> ScriptedReplies {
    let tasks = json!({"requests": {"tools": {"call": {}}}});
    let tools = json!([
        {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
        {"name": "ask", "inputSchema": {"type": "object"}},
    ]);
    ScriptedReplies::new("2025-11-25", json!({"tools": {}, "tasks": tasks}), &[])
        .answering("tools/list", json!({"tools": tools}))
}

pub(crate) fn task(status: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({
        "taskId": "their task", "status": status, "createdAt": time, "lastUpdatedAt": time,
        "ttl": 60000, "pollInterval": 100,
    })
}

/// Makes the server create a task for the call and send an input request in it. Returns the request for its result.
#[track_caller]
fn asks_in_a_task(bridge: &Bridge) -> ReceivedMessage {
    let call = bridge.puppets.hears("tools/call");
    assert!(call.message["params"]["task"].is_object(), "{}", call.message);
    call.result(json!({"task": task("working")}));
    let looked = bridge.puppets.hears("tasks/get");
    assert_eq!(looked.message["params"]["taskId"], "their task");
    looked.result(task("input_required"));
    let waiting = bridge.puppets.hears("tasks/result");
    for message in [&looked, &waiting] {
        assert_eq!(message.by.pid, call.by.pid, "the task belongs to the session that created it");
    }
    let mut request = form("Who?");
    request["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": "their task"}});
    waiting.by.asks(json!("q"), "elicitation/create", request);
    waiting
}

/// Asserts that the input response reaches the server, which then ends its task.
#[track_caller]
pub(crate) fn is_answered(bridge: &Bridge, waiting: &ReceivedMessage) {
    let response = bridge.puppets.next();
    assert_eq!(response.by.pid, waiting.by.pid);
    let expected = json!({"jsonrpc": "2.0", "id": "q", "result": named("Ann")});
    assert_eq!(response.message, expected);
    waiting.text("Hello, Ann!");
}

#[test]
fn a_tool_that_requires_a_task_is_a_plain_call_for_clients_without_tasks() {
    let bridge = Bridge::new(working());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("job", json!({}));
    let waiting = asks_in_a_task(&bridge);
    let request = call.answer()["result"].clone();
    let key = only_key(&request);
    assert_eq!(request["inputRequests"][&key]["params"]["message"], "Who?");
    let responses = json!({key: named("Ann")});
    let mut retry = client.begin_again("job", json!({}), &request["requestState"], responses);
    is_answered(&bridge, &waiting);
    assert_eq!(text(&retry.answer()), "Hello, Ann!");
}

#[test]
fn a_tool_that_requires_a_task_also_runs_with_a_session_per_call() {
    let upstream = "[server]\n[upstreams.behind]\nprefix = \"\"\naffinity = \"request\"\n";
    let bridge = Bridge::configured(working(), upstream);
    let client = bridge.modern();
    assert!(client.request("tools/list", json!({})).get("error").is_none());
    let mut pids = Vec::new();
    for follows in [false, true] {
        let extensions = if follows { json!({TASKS: {}}) } else { json!({}) };
        let capabilities = json!({"elicitation": {}, "extensions": extensions});
        let client = client.that_can(capabilities);
        let mut call = client.begin_call("job", json!({}));
        let waiting = asks_in_a_task(&bridge);
        pids.push(waiting.by.pid);
        let first = call.answer()["result"].clone();
        let mut again = None;
        if follows {
            let request = stands(&client, &first["taskId"], "input_required");
            let key = request["inputRequests"].as_object().unwrap().keys().next().unwrap();
            let responses =
                json!({"taskId": first["taskId"], "inputResponses": {key: named("Ann")}});
            assert!(client.request("tasks/update", responses).get("error").is_none());
        } else {
            let (state, responses) =
                (&first["requestState"], json!({only_key(&first): named("Ann")}));
            again = Some(client.begin_again("job", json!({}), state, responses));
        }
        is_answered(&bridge, &waiting);
        let done = match again {
            Some(mut retry) => retry.answer(),
            None => stands(&client, &first["taskId"], "completed"),
        };
        assert_eq!(text(&done), "Hello, Ann!", "{done}");
    }
    assert_ne!(pids[0], pids[1]);
}

#[test]
fn a_call_that_becomes_a_task_after_an_input_response_is_followed_to_its_end() {
    let bridge = Bridge::new(working());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("job", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Really?"));
    let request = call.answer()["result"].clone();
    let responses = json!({only_key(&request): named("Ann")});
    let mut retry = client.begin_again("job", json!({}), &request["requestState"], responses);
    assert_eq!(bridge.puppets.next().message["result"], named("Ann"));
    received.result(json!({"task": task("working")}));
    let looked = bridge.puppets.hears("tasks/get");
    assert_eq!(looked.by.pid, received.by.pid, "the task belongs to the session that created it");
    looked.result(task("completed"));
    bridge.puppets.hears("tasks/result").text("done");
    assert_eq!(text(&retry.answer()), "done");
}

#[test]
fn a_task_is_polled_in_the_session_in_which_it_was_created() {
    let bridge = Bridge::new(working());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    // The first session is used by a parked call.
    let mut call = client.begin_call("ask", json!({}));
    let first = bridge.puppets.hears("tools/call");
    first.by.asks(json!(1), "elicitation/create", form("First?"));
    let request = call.answer()["result"].clone();
    let mut job = client.begin_call("job", json!({}));
    let waiting = asks_in_a_task(&bridge);
    assert_ne!(waiting.by.pid, first.by.pid);
    let received = job.answer()["result"].clone();
    // The session is free again before the task continues.
    let responses = json!({only_key(&request): named("One")});
    let mut retry = client.begin_again("ask", json!({}), &request["requestState"], responses);
    assert_eq!(bridge.puppets.next().message["result"], named("One"));
    first.text("one");
    assert_eq!(text(&retry.answer()), "one");
    let responses = json!({only_key(&received): named("Ann")});
    let mut retry = client.begin_again("job", json!({}), &received["requestState"], responses);
    is_answered(&bridge, &waiting);
    assert_eq!(text(&retry.answer()), "Hello, Ann!");
}

#[test]
fn a_task_of_a_client_that_follows_tasks_waits_for_input() {
    let bridge = Bridge::new(working());
    let client = bridge.modern().that_can(json!({"elicitation": {}, "extensions": {TASKS: {}}}));
    // Once the tool's definition is cached, the gateway need not fetch it to know whether tasks are supported.
    assert!(client.request("tools/list", json!({})).get("error").is_none());
    let created = client.call("job", json!({}));
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let id = created["result"]["taskId"].clone();
    let waiting = asks_in_a_task(&bridge);
    let request = stands(&client, &id, "input_required");
    let requests = request["inputRequests"].as_object().unwrap();
    let (key, received) = requests.iter().next().unwrap();
    assert_eq!((requests.len(), &received["params"]["message"]), (1, &json!("Who?")));
    let responses = json!({"taskId": id, "inputResponses": {key: named("Ann")}});
    let taken = client.request("tasks/update", responses);
    assert!(taken.get("error").is_none(), "{taken}");
    is_answered(&bridge, &waiting);
    let done = stands(&client, &id, "completed");
    assert_eq!(done["result"]["content"][0]["text"], "Hello, Ann!");
}

/// Polls a task until it has this status.
#[track_caller]
pub(crate) fn stands(client: &StatelessClient, id: &Value, status: &str) -> Value {
    eventually(
        || format!("the task never had the status {status}"),
        || {
            let looked = client.request("tasks/get", json!({"taskId": id}))["result"].clone();
            (looked["status"] == status).then_some(looked)
        },
    )
}
