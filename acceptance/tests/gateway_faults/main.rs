//! Tests of upstreams that exit, hang, send invalid messages or never start.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod babble;
#[cfg(target_os = "linux")]
mod cut;
mod deaths;
mod sites;
mod tokens;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use creole_acceptance::gateway::{
    ReceivedMessage, ScriptedChildren, ScriptedReplies, StatelessClient,
};
use creole_acceptance::http::ListeningServer;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

/// The timeout of each step: only a gateway that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Long enough to notice a message that must not be sent.
const A_MOMENT: Duration = Duration::from_millis(300);

/// The time to wait for one of two alternatives before the other one is checked.
const GLANCE: Duration = Duration::from_millis(20);

fn show() -> ScriptedReplies {
    ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["work"])
}

/// A gateway in front of a scripted child.
fn before(children: &ScriptedChildren) -> ListeningServer {
    let command = children.command();
    ListeningServer::start(&["--", &command[0], &command[1]]).unwrap()
}

/// A gateway in front of a shell whose script starts a scripted child where it contains `PUPPET`.
fn before_shell(children: &ScriptedChildren, script: &str) -> ListeningServer {
    let script = script.replace("PUPPET", &children.command().join(" "));
    ListeningServer::start(&["--", "sh", "-c", &script]).unwrap()
}

fn client(gateway: &ListeningServer) -> StatelessClient {
    StatelessClient::new(gateway.address())
}

/// A call that the upstream has received.
#[track_caller]
fn wait_for_message(
    gateway: &ListeningServer,
    children: &ScriptedChildren,
) -> (creole_acceptance::gateway::PendingResponse, ReceivedMessage) {
    let call = client(gateway).begin_call("work", json!({}));
    (call, children.hears("tools/call"))
}

/// Asserts that the error names the upstream, and does not reveal its command.
#[track_caller]
fn is_named(response: &Value) {
    let error = &response["error"];
    assert_eq!(error["code"], -32603, "{response}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("puppet") || message.contains("sh"), "{message}");
    assert!(
        !message.contains("127.0.0.1:"),
        "the error must not contain the command line: {message}"
    );
}

/// Calls until the server is running again. Returns the call that it received.
#[track_caller]
fn answers_again(gateway: &ListeningServer, children: &ScriptedChildren) -> u32 {
    let started = Instant::now();
    let mut call = client(gateway).begin_call("work", json!({}));
    while started.elapsed() < PATIENCE {
        if let Some(message) = children.within(GLANCE) {
            assert_eq!(message.message["method"], "tools/call");
            message.text("back");
            assert_eq!(call.answer()["result"]["content"][0]["text"], "back");
            return message.by.pid;
        }
        if let Some(refused) = call.within(GLANCE) {
            is_named(&refused);
            call = client(gateway).begin_call("work", json!({}));
        }
    }
    panic!("it was not started again: {}", gateway.log());
}

fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

/// Waits until a process is gone from the process table.
#[track_caller]
fn is_gone(pid: u32) {
    let process = format!("/proc/{pid}");
    eventually(|| format!("process {pid} still exists"), || !Path::new(&process).exists());
}

/// The number that a script wrote into a file.
#[track_caller]
fn number_in(file: &Path) -> u32 {
    eventually(
        || format!("{} was not written", file.display()),
        || fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()),
    )
}
