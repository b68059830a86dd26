//! Encodes JSON-RPC frames.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{write_key, write_raw_member, write_text_member};
use crate::dialect::Dialect;
use crate::fault::{ErrorChannel, ErrorRow, Fault, FaultKind};
use crate::revision::{Rules, UnreadableId};
use crate::wire::Id;

const ENVELOPE_START: &[u8] = br#"{"jsonrpc":"2.0""#;

/// Writes a response whose result `body` writes (2025-11-25 schema, `JSONRPCResultResponse`).
pub(crate) fn write_response(out: &mut Vec<u8>, id: &Id, body: impl FnOnce(&mut Vec<u8>)) {
    // The most common frame, written with few operations.
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.raw().as_bytes());
    out.extend_from_slice(br#","result":"#);
    body(out);
    out.push(b'}');
}

/// Writes an error response (2025-11-25 schema, `JSONRPCErrorResponse`).
pub(crate) fn write_error(
    out: &mut Vec<u8>,
    id: Option<&Id>,
    fault: &Fault,
    dialect: &Dialect,
    rules: &'static Rules,
) {
    out.extend_from_slice(ENVELOPE_START);
    match (id, dialect.unreadable_id(rules)) {
        (Some(id), _) => write_raw_member(out, "id", id.raw()),
        (None, UnreadableId::Null) => write_raw_member(out, "id", "null"),
        (None, UnreadableId::Omit) => {}
    }
    write_key(out, "error");
    write_fault(out, fault, dialect, rules);
    out.push(b'}');
}

/// Writes the error object of a fault.
pub(super) fn write_fault(
    out: &mut Vec<u8>,
    fault: &Fault,
    dialect: &Dialect,
    rules: &'static Rules,
) {
    let row = dialect.error_row(fault.kind, rules);
    let (ErrorChannel::ProtocolError(code) | ErrorChannel::ToolResult { fallback_code: code }) =
        row.channel;
    out.push(b'{');
    match foreign_code(fault, i64::from(code), dialect, rules) {
        Some(code) => {
            write_raw_member(out, "code", &format!("{code}"));
            write_text_member(out, "message", &fault.detail);
            if let Some(data) = &fault.data {
                write_raw_member(out, "data", data.as_str());
            }
        }
        None => {
            write_raw_member(out, "code", &format!("{code}"));
            write_text_member(out, "message", &row.format_message(fault));
            if let Some(data) = error_data(row, fault) {
                write_raw_member(out, "data", &data);
            }
        }
    }
    out.push(b'}');
}

/// The code that a fault has in an error for this peer.
pub fn error_code(fault: &Fault, dialect: &Dialect, rules: &'static Rules) -> i64 {
    let row = dialect.error_row(fault.kind, rules);
    let (ErrorChannel::ProtocolError(code) | ErrorChannel::ToolResult { fallback_code: code }) =
        row.channel;
    let code = i64::from(code);
    foreign_code(fault, code, dialect, rules).unwrap_or(code)
}

/// The upstream's code of a fault, if it is sent to the peer: where the peer's encoding has the same code, or where the
/// code has no meaning for the peer.
fn foreign_code(fault: &Fault, row: i64, dialect: &Dialect, rules: &Rules) -> Option<i64> {
    let code = fault.foreign_code?;
    let has_own = dialect.errors.iter().any(|row| row.kind == fault.kind);
    let is_reserved = (-32099..=-32000).contains(&code);
    let means_nothing = !is_reserved || !rules.reserved_error_codes && dialect.errors.is_empty();
    let is_foreign = fault.kind == FaultKind::Foreign && means_nothing;
    (is_foreign || !has_own && code == row).then_some(code)
}

/// The error's data. It contains an upstream's code that the peer would misunderstand.
fn error_data(row: &ErrorRow, fault: &Fault) -> Option<String> {
    match (fault.kind, fault.foreign_code) {
        (FaultKind::Foreign, Some(code)) => {
            let given =
                fault.data.as_ref().map(|data| format!(r#","upstreamData":{}"#, data.as_str()));
            Some(format!(r#"{{"upstreamCode":{code}{}}}"#, given.unwrap_or_default()))
        }
        _ => row.format_data(fault),
    }
}

/// Writes a notification. `body` writes the members of its params, each starting with [`write_key`].
pub(crate) fn write_notification(out: &mut Vec<u8>, method: &str, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(ENVELOPE_START);
    write_text_member(out, "method", method);
    write_params(out, body);
    out.push(b'}');
}

/// Writes a request. `body` writes the members of its params, each starting with [`write_key`].
pub(crate) fn write_client_request(
    out: &mut Vec<u8>,
    id: u64,
    method: &str,
    body: impl FnOnce(&mut Vec<u8>),
) {
    out.extend_from_slice(ENVELOPE_START);
    write_raw_member(out, "id", &format!("{id}"));
    write_text_member(out, "method", method);
    write_params(out, body);
    out.push(b'}');
}

/// Writes an error response to a request of the server.
pub(crate) fn write_input_request_error(out: &mut Vec<u8>, id: &Id, code: i64, message: &str) {
    out.extend_from_slice(ENVELOPE_START);
    write_raw_member(out, "id", id.raw());
    write_key(out, "error");
    out.push(b'{');
    write_raw_member(out, "code", &format!("{code}"));
    write_text_member(out, "message", message);
    out.extend_from_slice(b"}}");
}

fn write_params(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write_key(out, "params");
    out.push(b'{');
    let opened = out.len();
    body(out);
    match out.len() == opened {
        true => out.truncate(start),
        false => out.push(b'}'),
    }
}

/// Writes a request of the server.
pub(crate) fn write_server_request(out: &mut Vec<u8>, id: &Id, method: &str, params: Option<&str>) {
    out.extend_from_slice(ENVELOPE_START);
    write_raw_member(out, "id", id.raw());
    write_text_member(out, "method", method);
    if let Some(params) = params {
        write_raw_member(out, "params", params);
    }
    out.push(b'}');
}
