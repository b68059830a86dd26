//! Runs the official conformance suite against another server through the gateway.
//!
//! The tests combine each client era with each upstream era, over stdio and over HTTP. The suite may accept the text of
//! an error as a result. So the tests also compare lists and results with those that the server sends to its direct
//! clients. If the suite cannot be installed, the tests report it on stderr. With `CI=true` they fail.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stdout, reason = "the score is printed")]

use std::net::SocketAddr;

use creole_acceptance::conformance::{SuiteResult, run_suite};
use creole_acceptance::gateway::{GatewaySetup, HandshakeClient, ServerEra, StatelessClient};
use creole_acceptance::peers::{Suite, is_suite_installed};
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// The scenario requires an input request with a key that it chooses. A server of the handshake era has no keys.
const NEEDS_KEYS: &str = "input-required-result-basic-elicitation";

/// The scenarios require an input request before there is a task, where a server of the handshake era creates a task
/// and sends the input request in it; and an error for a client without tasks, where the gateway waits for the task on
/// behalf of the client.
const NEEDS_TASKS: [&str; 2] = ["tasks-mrtr-composition", "tasks-required-task-error"];

#[test]
fn clients_and_servers_of_the_newest_revision_meet_over_a_pipe() {
    let setup = GatewaySetup::child(ServerEra::Modern).unwrap();
    assert_equal_responses(&setup, ServerEra::Modern);
    let Some(result) = run_installed_suite(&setup, MODERN) else { return };
    assert_passed(&result, 37, 13);
}

#[test]
fn clients_of_the_newest_revision_meet_servers_of_the_oldest_era_over_a_pipe() {
    let setup = GatewaySetup::child(ServerEra::Legacy).unwrap();
    assert_equal_responses(&setup, ServerEra::Legacy);
    let Some(result) = run_installed_suite(&setup, MODERN) else { return };
    holds_but_for_what_is_new(&result);
}

#[test]
fn clients_with_a_handshake_meet_servers_of_the_newest_revision_over_a_pipe() {
    let setup = GatewaySetup::child(ServerEra::Modern).unwrap();
    let Some(result) = run_installed_suite(&setup, LEGACY) else { return };
    assert_passed(&result, 30, 3);
}

#[test]
fn clients_and_servers_with_a_handshake_meet_over_a_pipe() {
    let setup = GatewaySetup::child(ServerEra::Legacy).unwrap();
    let Some(result) = run_installed_suite(&setup, LEGACY) else { return };
    assert_passed(&result, 30, 3);
}

#[test]
fn clients_of_both_eras_meet_servers_of_the_newest_revision_over_http() {
    let setup = GatewaySetup::listening(ServerEra::Modern).unwrap();
    assert_equal_responses(&setup, ServerEra::Modern);
    let Some(result) = run_installed_suite(&setup, MODERN) else { return };
    assert_passed(&result, 37, 13);
    assert_passed(&run_installed_suite(&setup, LEGACY).unwrap(), 30, 3);
}

#[test]
fn clients_of_both_eras_meet_servers_with_a_handshake_over_http() {
    let setup = GatewaySetup::listening(ServerEra::Legacy).unwrap();
    assert_equal_responses(&setup, ServerEra::Legacy);
    let Some(result) = run_installed_suite(&setup, MODERN) else { return };
    holds_but_for_what_is_new(&result);
    assert_passed(&run_installed_suite(&setup, LEGACY).unwrap(), 30, 3);
}

/// Runs the suite against the gateway, and prints the score.
fn run_installed_suite(setup: &GatewaySetup, revision: &str) -> Option<SuiteResult> {
    if !is_suite_installed(Suite::Newest) {
        return None;
    }
    let result = run_suite(Suite::Newest, &setup.gateway.url(), &["--requirements", revision]);
    let result = result.unwrap_or_else(|error| panic!("{error}\n{}", setup.gateway.log()));
    println!("{}", result.table());
    Some(result)
}

/// Asserts that all scenarios hold, scored or not.
#[track_caller]
fn assert_passed(result: &SuiteResult, scenarios: usize, not_scored: usize) {
    assert_eq!(failing(result), Vec::<&str>::new(), "{}", result.table());
    assert_eq!(result.score(true), (scenarios, scenarios), "{}", result.table());
    assert_eq!(result.score(false), (not_scored, not_scored), "{}", result.table());
}

/// Asserts that all scenarios of the newest revision hold, except those that a server of the handshake era cannot
/// fulfil: it cannot choose keys.
#[track_caller]
fn holds_but_for_what_is_new(result: &SuiteResult) {
    assert_eq!(failing(result), [NEEDS_KEYS], "{}", result.table());
    assert_eq!(result.score(true), (36, 37), "{}", result.table());
    let is_held = |name: &&String| result.passed(name);
    let (_, failing): (Vec<_>, Vec<_>) = result.not_scored.iter().partition(is_held);
    assert_eq!(failing, NEEDS_TASKS, "{}", result.table());
}

/// The scored scenarios that do not hold.
fn failing(result: &SuiteResult) -> Vec<&str> {
    let scored = result.scenarios.keys().filter(|name| !result.not_scored.contains(*name));
    scored.filter(|name| !result.passed(name)).map(String::as_str).collect()
}

/// Asserts that clients of both eras get through the gateway what the server sends to direct clients of its own era.
#[track_caller]
fn assert_equal_responses(setup: &GatewaySetup, era: ServerEra) {
    let alone = setup.alone().unwrap();
    let direct = match era {
        ServerEra::Modern => modern(alone.address()),
        ServerEra::Legacy => legacy(alone.address()),
    };
    let through = setup.gateway.address();
    for messages in [modern(through), legacy(through)] {
        says_what_the_suite_demands(&messages);
        for (ours, theirs) in messages.iter().zip(&direct) {
            assert_eq!(ours, theirs, "{}", setup.gateway.log());
        }
        assert_eq!(messages.len(), direct.len());
    }
}

/// Asserts the lengths of the lists and the exact texts of the fixtures: two equal servers might both return nothing.
#[track_caller]
fn says_what_the_suite_demands(said: &[Value]) {
    let answer = |method: &str, subject: &str| {
        let is_match = |(_, (asked, params)): &(&Value, (&str, Value))| {
            let about = params.get("name").or(params.get("uri")).and_then(Value::as_str);
            *asked == method && about.unwrap_or_default() == subject
        };
        said.iter()
            .zip(compared_requests())
            .find(is_match)
            .map(|(message, _)| message.clone())
            .unwrap()
    };
    for (list, count) in LISTS {
        let listed = answer(list, "").as_array().map(Vec::len);
        assert_eq!(listed, Some(count), "{list}");
    }
    let called = |tool: &str| answer("tools/call", tool);
    let simple = called("test_simple_text");
    let text = json!([{"type": "text", "text": "This is a simple text response for testing."}]);
    assert_eq!((&simple["content"], &simple["isError"]), (&text, &json!(false)));
    let failed = called("test_error_handling");
    let text = "This tool intentionally returns an error for testing";
    let text = json!([{"type": "text", "text": text}]);
    assert_eq!((&failed["content"], &failed["isError"]), (&text, &json!(true)));
    assert_eq!(called("no_such_tool")["error"], "Unknown tool: no_such_tool");
    let read = answer("resources/read", "test://static-text");
    assert_eq!(read["contents"][0]["text"], "This is the content of the static text resource.");
    let missing = answer("resources/read", "test://nothing");
    assert_eq!(missing["error"], "Resource not found: test://nothing");
}

/// The lists of the fixtures, and the number of items in each: those of the suite, and those of our own tests.
const LISTS: [(&str, usize); 4] = [
    ("tools/list", 44),
    ("resources/list", 5),
    ("resources/templates/list", 1),
    ("prompts/list", 5),
];

/// The requests to each server.
fn compared_requests() -> Vec<(&'static str, Value)> {
    let call = |tool: &str, arguments: Value| {
        ("tools/call", json!({"name": tool, "arguments": arguments}))
    };
    vec![
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        call("test_simple_text", json!({})),
        call("test_image_content", json!({})),
        call("test_multiple_content_types", json!({})),
        call("test_error_handling", json!({})),
        call("test_structured", json!({})),
        call("no_such_tool", json!({})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("resources/read", json!({"uri": "test://template/7/data"})),
        ("resources/read", json!({"uri": "test://nothing"})),
        ("prompts/get", json!({"name": "test_simple_prompt"})),
        (
            "prompts/get",
            json!({"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}}),
        ),
        ("prompts/get", json!({"name": "no_such_prompt"})),
    ]
}

fn modern(address: SocketAddr) -> Vec<Value> {
    let client = StatelessClient::new(address);
    compared_requests()
        .into_iter()
        .map(|(method, params)| gist(&client.request(method, params)))
        .collect()
}

fn legacy(address: SocketAddr) -> Vec<Value> {
    let client = HandshakeClient::open(address, LEGACY, json!({}), None);
    compared_requests()
        .into_iter()
        .map(|(method, params)| gist(&client.request(method, &params)))
        .collect()
}

/// The part of a response that is equal in both eras.
fn gist(response: &Value) -> Value {
    let names = |items: &Value| -> Vec<Value> {
        let items = items.as_array().into_iter().flatten();
        items
            .map(|item| {
                let named = [&item["name"], &item["uri"], &item["uriTemplate"]];
                json!([named, item["description"], item["inputSchema"], item["arguments"]])
            })
            .collect()
    };
    let result = &response["result"];
    for list in ["tools", "resources", "resourceTemplates", "prompts"] {
        if result[list].is_array() {
            return json!(names(&result[list]));
        }
    }
    json!({
        "content": result["content"], "contents": result["contents"], "messages": result["messages"],
        "structured": result["structuredContent"], "isError": result["isError"] == true,
        "error": response["error"]["message"],
    })
}
