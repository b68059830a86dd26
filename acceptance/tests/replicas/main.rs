//! Tests of several replicas of one server, behind a load balancer that sends each request to another one.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod clocks;
mod event_stream;
mod failovers;
mod history;
mod idle;
mod inputs;
mod limits;
mod outages;
mod parked_call;
mod partitions;
mod pins;
mod poolers;
mod restarts;
mod returns;
mod rolling;
mod secrets;
mod sessions;
mod slow_store;
mod stops;
mod store_operations;
mod streams;
mod tasks;
mod throttle;

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use serde_json::{Value, json};

/// A server with tools of its own.
const SERVER: &str = "[server]\nname = \"replicated\"\npacks = [\"echo\"]\n";

/// The revisions with sessions over one endpoint.
const SESSION_REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// The text in the result of a call.
fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

/// Calls the tool `echo` in a session.
#[track_caller]
fn is_echoed(client: &HandshakeClient, nonce: &str) {
    let response = client.call("echo", json!({"message": nonce}));
    assert!(text(&response).contains(nonce), "{response}");
}

/// Calls the tool `echo` without a session.
#[track_caller]
fn is_echoed_without_session(client: &StatelessClient, nonce: &str) {
    let response = client.call("echo", json!({"message": nonce}));
    assert!(text(&response).contains(nonce), "{response}");
}
