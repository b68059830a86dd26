//! Writes the members of an object.

use alloc::vec::Vec;

use super::text::quote;

/// Appends `,` unless the object or array was just opened.
pub(crate) fn write_comma(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[')) {
        out.push(b',');
    }
}

/// Appends a member's name and colon. The name comes from a peer and is escaped.
pub(crate) fn write_foreign_key(out: &mut Vec<u8>, name: &str) {
    write_comma(out);
    quote(out, name);
    out.push(b':');
}

/// Appends a member whose name comes from a peer and whose value is JSON text.
pub(crate) fn write_foreign_member(out: &mut Vec<u8>, name: &str, value: &str) {
    write_foreign_key(out, name);
    out.extend_from_slice(value.as_bytes());
}
