//! Tests of traces, and of the export over OTLP to a receiver made of the official Python classes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod crossing;
mod export;
mod input_requests;
mod logs;
mod propagation;
#[cfg(target_os = "linux")]
mod replicas;
mod spans;
mod starts;

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::otlp::Receiver;
use creole_acceptance::process_under_test::serve;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A context of a client, sampled.
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID: &str = "b7ad6b7169203331";

/// The kinds of spans.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// The key of a caller.
const KEY: &str = "the-key-of-the-caller-of-the-test";

/// A configuration that exports every call at once to this endpoint.
fn exporting(receiver: &Receiver, more: &str) -> String {
    let endpoint = receiver.endpoint();
    format!("[telemetry]\nendpoint = \"{endpoint}\"\n{more}\n")
}

/// A table `[auth]` that admits the caller with [`KEY`].
fn auth() -> String {
    let digest = Sha256::digest(KEY).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    format!("[auth]\nkeys = [{{ name = \"ada\", sha256 = \"{digest}\" }}]\n")
}

/// The command of a server with this configuration in a new folder. Items wait for 20 ms for others.
fn command(config: &str, words: &[&str]) -> (Command, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    fs::write(&file, config).unwrap();
    let words = [words, &[file.to_str().unwrap()]].concat();
    let mut command = serve(folder.path(), &words);
    command.env("OTEL_BSP_SCHEDULE_DELAY", "20").env("OTEL_BLRP_SCHEDULE_DELAY", "20");
    (command, folder)
}

/// A server over HTTP with this configuration.
fn listen(config: &str) -> (ListeningServer, TempDir) {
    let (command, folder) = command(config, &["--http", "127.0.0.1:0"]);
    (ListeningServer::other(command).unwrap(), folder)
}

/// Whether a span is a part of another one: directly, or of a layer within it.
fn is_part_of(receiver: &Receiver, span: &Value, whole: &Value) -> bool {
    let spans = receiver.items("span");
    let parent = |span: &Value| spans.iter().find(|it| it["span_id"] == span["parent"]).cloned();
    let chain = std::iter::successors(Some(span.clone()), parent);
    chain.skip(1).any(|span| span["span_id"] == whole["span_id"])
}

/// An attribute of a span.
fn attribute<'a>(span: &'a Value, name: &str) -> &'a Value {
    &span["attributes"][name]
}
