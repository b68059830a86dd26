//! What leaves: frames, results and questions, written straight into a buffer for the peer's rules.

mod card;
mod client;
mod frame;
mod question;
mod relay;
mod result;
mod task;

pub(crate) use client::{Manner, write_call, write_initialize, write_level};
pub(crate) use frame::{
    call, keep_on_one_line, notification, refusal, request, response, write_error,
};
pub(crate) use question::{input_required, params as question_params};
pub(crate) use relay::{is_whole, relayed_failure, write_relayed};
pub(crate) use result::{Target, write_filter, write_meta, write_result};
pub(crate) use task::write_task;

use alloc::vec::Vec;
use serde::Serialize;

use crate::wire::quote;

/// Appends `,` unless the object or array was just opened.
fn comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
}

/// Appends a member's name and colon; names of ours need no escapes.
pub(crate) fn key(out: &mut Vec<u8>, name: &'static str) {
    comma(out);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a member's name and colon; the name is somebody else's.
fn foreign_key(out: &mut Vec<u8>, name: &str) {
    comma(out);
    quote(out, name);
    out.push(b':');
}

/// Appends a member of somebody else's name with a value that is JSON already.
pub(crate) fn foreign_member(out: &mut Vec<u8>, name: &str, value: &str) {
    foreign_key(out, name);
    out.extend_from_slice(value.as_bytes());
}

/// Appends a member with a string value.
fn text_member(out: &mut Vec<u8>, name: &'static str, value: &str) {
    key(out, name);
    quote(out, value);
}

/// Appends a member with a value that is JSON already.
fn raw_member(out: &mut Vec<u8>, name: &'static str, value: &str) {
    key(out, name);
    out.extend_from_slice(value.as_bytes());
}

/// Appends plain data.
fn data<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Plain data cannot fail to serialise; an empty text would still leave the frame readable to us only,
    // so null stands in.
    let text = serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
    out.extend_from_slice(&text);
}
