//! Tests of the binary as a process: its pipes, sockets and files, under pressure and at its end. The transcripts test
//! its messages.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stdout, reason = "measurements are printed")]

mod beginning;
mod draining;
mod endings;
mod lines;
mod listening;
mod pressure;
mod reload;
mod skills;
mod streams;
mod tasks;
mod telemetry;

use serde_json::Value;

const MEBIBYTE: u64 = 1 << 20;

/// Parses a line as JSON.
#[track_caller]
fn json_of(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON: {error}: {line}"))
}

/// The code of a response's error.
#[track_caller]
fn error_code(response: &Value) -> i64 {
    response["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {response}"))
}
