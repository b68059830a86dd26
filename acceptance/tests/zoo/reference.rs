//! Tests of the servers that are published for tests: one has every feature, the other uses the roots.

use creole_acceptance::zoo::{Package, Published, ZooStep};
use serde_json::json;

use ZooStep::{
    Call, CallUntil, ChangeRoots, Complete, Hear, HearLog, Level, Lists, ListsUntil, Prompt, Read,
    Subscribe,
};

use crate::same;

pub(crate) const EVERYTHING: Published =
    Published::new(Package::Reference("@modelcontextprotocol/server-everything/dist/index.js"));

#[test]
fn server_everything_answers_the_same() {
    same(&EVERYTHING, &results());
}

#[test]
fn server_everything_sends_the_same_input_requests() {
    same(&EVERYTHING, &input_request_steps());
}

#[test]
fn server_everything_lists_the_same() {
    // The server adds tools for the client's input capabilities after the handshake.
    let steps = [ListsUntil("simulate-research-query"), Lists, Call("no-such-tool", json!({}))];
    same(&EVERYTHING, &steps);
}

#[test]
fn server_everything_sends_sessions_the_same_notifications() {
    same(&EVERYTHING, &changes());
}

#[test]
fn server_filesystem_is_the_same() {
    let script = "@modelcontextprotocol/server-filesystem/dist/index.js";
    // It requests the client's roots outside of calls, and then serves them in place of its argument.
    let server = Published::new(Package::Reference(script)).with(&["{folder}"]);
    let steps = [
        Lists,
        // Without Creole the first calls may arrive before it has applied the roots.
        CallUntil("list_allowed_directories", "{folder}/below"),
        Call("list_allowed_directories", json!({})),
        Call("read_text_file", json!({"path": "{folder}/below/third.md"})),
        Call("read_text_file", json!({"path": "{folder}/first.md"})),
        Call("write_file", json!({"path": "{folder}/below/new.md", "content": "new"})),
        Call("list_directory", json!({"path": "{folder}/below"})),
        Call("read_text_file", json!({"path": 5})),
    ];
    same(&server, &steps);
}

/// Results of every shape.
fn results() -> Vec<ZooStep> {
    let dynamic =
        json!({"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"});
    let completable = json!({"type": "ref/prompt", "name": "completable-prompt"});
    vec![
        Call("echo", json!({"message": "Gr\u{fc}\u{df}e, \u{4e16}\u{754c} \u{1f980}"})),
        Call("get-sum", json!({"a": 2, "b": 3.5})),
        Call("get-sum", json!({"a": "two"})),
        Call("get-tiny-image", json!({})),
        Call("get-structured-content", json!({"location": "Chicago"})),
        Call("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        Call("get-resource-links", json!({"count": 2})),
        Call("trigger-long-running-operation", json!({"duration": 0.4, "steps": 4})),
        Read("demo://resource/static/document/architecture.md"),
        Read("demo://resource/no-such-thing"),
        Prompt("simple-prompt", json!({})),
        Prompt("args-prompt", json!({"city": "Berlin"})),
        Prompt("args-prompt", json!({})),
        Complete(dynamic, json!({"name": "resourceId", "value": "1"})),
        Complete(completable, json!({"name": "department", "value": "E"})),
    ]
}

/// The input requests of the server.
fn input_request_steps() -> Vec<ZooStep> {
    let url = json!({"url": "https://example.com/", "elicitationId": "one"});
    vec![
        Call("get-roots-list", json!({})),
        Call("trigger-elicitation-request", json!({})),
        Call("trigger-url-elicitation", url),
        Call("trigger-sampling-request", json!({"prompt": "Think.", "maxTokens": 10})),
        ChangeRoots,
        Call("get-roots-list", json!({})),
    ]
}

/// Notifications that the server sends without a request.
fn changes() -> Vec<ZooStep> {
    let gzip =
        json!({"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"});
    vec![
        Call("gzip-file-as-resource", gzip),
        Hear("notifications/resources/list_changed"),
        Lists,
        Read("demo://resource/session/a.gz"),
        Subscribe("demo://resource/static/document/features.md"),
        Call("toggle-subscriber-updates", json!({})),
        Hear("notifications/resources/updated"),
        Call("toggle-subscriber-updates", json!({})),
        Level("debug"),
        Call("toggle-simulated-logging", json!({})),
        HearLog("Received Subscribe"),
        // One arrives with the call, the other five seconds later. The server includes a level in each.
        HearLog("level"),
        HearLog("level"),
        Call("toggle-simulated-logging", json!({})),
    ]
}
