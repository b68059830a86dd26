//! JSON text in transit: one strict scan on arrival, then slices of the same text without copies.
//!
//! No tree of values is built. [`scan()`] decides once whether bytes are an acceptable message (RFC 8259). After that,
//! [`Object`] reads the same text, [`Id`] and [`Raw`] keep parts of it, and forwarded parts stay identical byte for
//! byte.

pub mod canonical;
pub mod control_characters;
pub mod id;
pub mod meta;
pub mod object;
pub mod param_members;
pub mod raw;
pub mod result_members;
pub mod scan;
pub mod scan_error;
pub mod text;

mod cursor;
mod member;
mod nesting;
mod number;

#[cfg(test)]
mod bad_input;

pub use canonical::canonical;
pub use control_characters::{escape_controls, escape_controls_in_json, is_control};
pub use id::{Id, IdError};
pub(crate) use member::{write_comma, write_foreign_key, write_foreign_member};
pub use object::{
    FieldError, FieldErrorKind, Members, Object, as_object, as_required_string, as_string, elements,
};
pub use param_members::ParamMembers;
pub use raw::{Raw, RawError};
pub use result_members::ResultMembers;
pub(crate) use scan::is_nested_deeper_than;
pub use scan::{Fields, Frame, ScanLimits, scan};
pub use scan_error::{ScanError, ScanErrorKind};
pub use text::{hex, one_line, quote, unquote};
