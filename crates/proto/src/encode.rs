//! The encoder: writes frames, results and input requests into a buffer according to the peer's rules.

mod client;
mod frame;
mod input_request;
mod relayed_result;
mod result;
mod result_target;
mod server_info;
mod task;

pub(crate) use client::{RequestStyle, write_call, write_initialize, write_level};
pub use frame::error_code;
pub(crate) use frame::{
    write_client_request, write_error, write_input_request_error, write_notification,
    write_response, write_server_request,
};
pub(crate) use input_request::{input_request_params as question_params, write_input_required};
pub(crate) use relayed_result::{is_verbatim, relayed_failure, write_relayed};
pub(crate) use result::{write_filter, write_meta, write_result};
pub(crate) use result_target::ResultTarget;
pub(crate) use task::write_task;

use alloc::vec::Vec;
use serde::Serialize;

use crate::wire::quote;
pub(crate) use crate::wire::write_foreign_member;
use crate::wire::{write_comma, write_foreign_key};

/// Appends a member's name and colon. The name is a constant that needs no escapes.
pub(crate) fn write_key(out: &mut Vec<u8>, name: &'static str) {
    write_comma(out);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a member with a string value.
fn write_text_member(out: &mut Vec<u8>, name: &'static str, value: &str) {
    write_key(out, name);
    quote(out, value);
}

/// Appends a member whose value is JSON text.
fn write_raw_member(out: &mut Vec<u8>, name: &'static str, value: &str) {
    write_key(out, name);
    out.extend_from_slice(value.as_bytes());
}

/// Appends a serialisable value.
fn write_data<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Serialising plain data cannot fail. `null` keeps the frame valid JSON nevertheless.
    let text = serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
    out.extend_from_slice(&text);
}
