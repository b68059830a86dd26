//! Tests of bad input over HTTP, as tables: the request, and the exact status and code of the response.
//!
//! After each row another client calls a tool and must get its response. The names of the rows (A01, D20…) are those of
//! the catalogue of bad input, which the transcripts use too.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod bench;
mod callers;
mod framing;
mod guards;
mod headers;
mod messages;
mod sessions;
mod values;

use creole_acceptance::http::Request;

/// The era of the client that sends a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    /// A stateless request (2026-07-28).
    Alone,
    /// A request in a session (2025-11-25).
    Session,
}

const BOTH: [Era; 2] = [Era::Alone, Era::Session];

/// The expected response of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// A result, with status 200.
    Result,
    /// A JSON-RPC error with this status and code.
    Error(u16, i64),
    /// This status, whatever the body contains.
    Status(u16),
}

/// One row of a table.
struct Row {
    name: &'static str,
    request: Request,
    expected: Expected,
}

/// A row.
fn row(name: &'static str, request: Request, expected: Expected) -> Row {
    Row { name, request, expected }
}

/// The JSON-RPC code for invalid JSON.
const NOT_JSON: i64 = -32_700;
/// The JSON-RPC code for an invalid message.
const NO_MESSAGE: i64 = -32_600;
/// The JSON-RPC code for an unknown method.
const NO_METHOD: i64 = -32_601;
/// The JSON-RPC code for invalid parameters.
const WRONG_PARAMS: i64 = -32_602;
/// The MCP code for a header that contradicts the body.
const MISMATCH: i64 = -32_020;
/// The MCP code for an unsupported revision.
const UNSUPPORTED: i64 = -32_022;
