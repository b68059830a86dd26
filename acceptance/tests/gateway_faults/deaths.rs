//! Tests of upstreams that exit, and of upstreams that do not.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{fs, thread};

use creole_acceptance::gateway::ScriptedChildren;
use serde_json::json;

use crate::{
    A_MOMENT, answers_again, before, before_shell, client, is_gone, is_named, kill, number_in,
    show, wait_for_message,
};

#[test]
fn a_server_that_is_killed_in_a_call_is_named_and_started_again_and_the_call_is_not_repeated() {
    let children = ScriptedChildren::new(show());
    let gateway = before(&children);
    let (mut call, received) = wait_for_message(&gateway, &children);
    kill(received.by.pid);
    is_named(&call.answer());
    is_gone(received.by.pid);
    assert!(
        children.within(A_MOMENT).is_none(),
        "the call must not be repeated: its effects are unknown"
    );
    assert_ne!(answers_again(&gateway, &children), received.by.pid);
}

#[test]
fn an_incomplete_last_line_is_ignored() {
    let children = ScriptedChildren::new(show());
    let gateway = before(&children);
    let (mut call, received) = wait_for_message(&gateway, &children);
    let response =
        json!({"jsonrpc": "2.0", "id": received.message["id"], "result": {"content": []}});
    // The whole response without its newline.
    received.by.writes(&response.to_string());
    received.by.ends();
    is_named(&call.answer());
    answers_again(&gateway, &children);
}

#[test]
fn after_an_incomplete_line_the_call_waits_until_the_caller_leaves() {
    let children = ScriptedChildren::new(show());
    let gateway = before(&children);
    let (mut call, received) = wait_for_message(&gateway, &children);
    let id = &received.message["id"];
    received.by.writes(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"resu"));
    assert!(call.within(A_MOMENT).is_none());
    call.hang_up();
    children.hears("notifications/cancelled");
    // The rest of the line is discarded, and the next call gets its response.
    received.by.writes("lt\":{\"content\":[]}}\n");
    assert_eq!(answers_again(&gateway, &children), received.by.pid);
}

#[test]
fn a_server_that_does_not_end_is_ended_with_all_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("grandchild");
    let children = ScriptedChildren::new(show());
    let script = format!("trap '' TERM; sleep 1000 & echo $! > {}; PUPPET", file.display());
    let mut gateway = before_shell(&children, &script);
    let child = answers_again(&gateway, &children);
    let grandchild = number_in(&file);
    gateway.stop().unwrap();
    is_gone(child);
    is_gone(grandchild);
}

#[test]
fn a_server_that_closes_its_stdout_is_ended_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mouth");
    let children = ScriptedChildren::new(show());
    let mouth = format!("sh -c 'echo $$ > {}; exec cat'", file.display());
    // No other process may hold the stdout that has to end.
    let script = format!("exec 4<&0; PUPPET <&4 | {mouth} & exec 1>&-; wait");
    let gateway = before_shell(&children, &script);
    let (mut call, received) = wait_for_message(&gateway, &children);
    kill(number_in(&file));
    is_named(&call.answer());
    is_gone(received.by.pid);
    assert_ne!(answers_again(&gateway, &children), received.by.pid);
}

#[test]
fn a_server_that_never_starts_is_not_started_over_and_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("starts");
    let children = ScriptedChildren::new(show());
    let gateway = before_shell(&children, &format!("echo >> {}; exit 1", file.display()));
    let started = Instant::now();
    let mut calls = 0;
    while started.elapsed() < Duration::from_secs(4) {
        let response = client(&gateway).call("work", json!({}));
        // The tools of an upstream that never started are unknown.
        assert!(response.get("error").is_some(), "{response}");
        calls += 1;
    }
    let starts = fs::read_to_string(&file).unwrap().lines().count();
    assert!(starts <= 10, "started {starts} times in {calls} calls");
    let message = client(&gateway).request("server/discover", json!({}));
    is_named(&message);
}

#[test]
fn a_hundred_calls_to_a_server_that_is_killed_are_a_hundred_answers() {
    let children = ScriptedChildren::new(show());
    let gateway = before(&children);
    let (sender, receiver) = channel();
    for number in 0..100 {
        let (sender, client) = (sender.clone(), client(&gateway));
        thread::spawn(move || {
            let response = client.call("work", json!({"number": number}));
            sender.send((number, response)).unwrap();
        });
    }
    let calls: Vec<_> = (0..100).map(|_| children.hears("tools/call")).collect();
    let child = calls[0].by.pid;
    assert!(calls.iter().all(|call| call.by.pid == child), "one caller has one session");
    for call in &calls[..30] {
        call.text(&call.message["params"]["arguments"]["number"].to_string());
    }
    let mut answered = 0;
    for _ in 0..30 {
        let (number, response) = receiver.recv().unwrap();
        let text = response["result"]["content"][0]["text"].as_str().map(str::to_owned);
        assert_eq!(text, Some(format!("{number}")), "{response}");
        answered += 1;
    }
    kill(child);
    for _ in 30..100 {
        let (_, response) = receiver.recv().unwrap();
        is_named(&response);
        answered += 1;
    }
    assert_eq!(answered, 100);
    is_gone(child);
    assert_ne!(answers_again(&gateway, &children), child);
}
