//! JSON-RPC frames.

use alloc::vec::Vec;

use super::{key, raw_member, text_member};
use crate::dialect::Dialect;
use crate::fault::{Channel, Fault};
use crate::revision::{Rules, UnreadableId};
use crate::wire::Id;

const OPEN: &[u8] = br#"{"jsonrpc":"2.0""#;

/// Writes a response whose result `body` writes.
pub(crate) fn response(out: &mut Vec<u8>, id: &Id, body: impl FnOnce(&mut Vec<u8>)) {
    // The most common frame: written in as few steps as there are parts.
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.raw().as_bytes());
    out.extend_from_slice(br#","result":"#);
    body(out);
    out.push(b'}');
}

/// Writes an error response.
pub(crate) fn write_error(
    out: &mut Vec<u8>,
    id: Option<&Id>,
    fault: &Fault,
    dialect: &Dialect,
    rules: &'static Rules,
) {
    out.extend_from_slice(OPEN);
    match (id, dialect.unreadable_id(rules)) {
        (Some(id), _) => raw_member(out, "id", id.raw()),
        (None, UnreadableId::Null) => raw_member(out, "id", "null"),
        (None, UnreadableId::Omit) => {}
    }
    key(out, "error");
    write_fault(out, fault, dialect, rules);
    out.push(b'}');
}

/// Writes the object that says what went wrong.
pub(super) fn write_fault(
    out: &mut Vec<u8>,
    fault: &Fault,
    dialect: &Dialect,
    rules: &'static Rules,
) {
    let row = dialect.error(fault.kind, rules);
    let (Channel::Protocol(code) | Channel::ToolResult { otherwise: code }) = row.channel;
    out.push(b'{');
    raw_member(out, "code", itoa(code).as_str());
    text_member(out, "message", &row.message(fault));
    if let Some(data) = row.data(fault) {
        raw_member(out, "data", &data);
    }
    out.push(b'}');
}

/// Writes a notification whose params' members `body` writes, each beginning with [`key`].
pub(crate) fn notification(out: &mut Vec<u8>, method: &str, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(OPEN);
    text_member(out, "method", method);
    params(out, body);
    out.push(b'}');
}

/// Writes a request whose params' members `body` writes, each beginning with [`key`].
pub(crate) fn call(out: &mut Vec<u8>, id: u64, method: &str, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(OPEN);
    raw_member(out, "id", &alloc::format!("{id}"));
    text_member(out, "method", method);
    params(out, body);
    out.push(b'}');
}

/// Writes an error response to a request of the server.
pub(crate) fn refusal(out: &mut Vec<u8>, id: &Id, code: i64, message: &str) {
    out.extend_from_slice(OPEN);
    raw_member(out, "id", id.raw());
    key(out, "error");
    out.push(b'{');
    raw_member(out, "code", &alloc::format!("{code}"));
    text_member(out, "message", message);
    out.extend_from_slice(b"}}");
}

fn params(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    key(out, "params");
    out.push(b'{');
    let opened = out.len();
    body(out);
    match out.len() == opened {
        true => out.truncate(start),
        false => out.push(b'}'),
    }
}

/// Writes a request of the server.
pub(crate) fn request(out: &mut Vec<u8>, id: &Id, method: &str, params: Option<&str>) {
    out.extend_from_slice(OPEN);
    raw_member(out, "id", id.raw());
    text_member(out, "method", method);
    if let Some(params) = params {
        raw_member(out, "params", params);
    }
    out.push(b'}');
}

fn itoa(code: i32) -> alloc::string::String {
    alloc::format!("{code}")
}

/// Line ends inside a frame can only be white space of somebody's JSON: strings hold none.
pub(crate) fn keep_on_one_line(frame: &mut [u8]) {
    let mut start = 0;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &frame[start..]) {
        frame[start + found] = b' ';
        start += found + 1;
    }
}
