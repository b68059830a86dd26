//! JSON text as it travels: one strict scan at the border, then slices of it that are never copied.
//!
//! Nothing here builds a tree of values. [`scan()`] decides once whether bytes are a message we are
//! willing to read; after that, [`Object`] looks into the same text, [`Id`] and [`Raw`] keep parts
//! of it, and what is forwarded is forwarded byte for byte.

pub mod canonical;
pub mod control_characters;
pub mod hex;
pub mod id;
pub mod object;
pub mod param_members;
pub mod raw;
pub mod result_members;
pub mod scan;
pub mod text;

mod cursor;
mod nesting;
mod number;

#[cfg(test)]
mod bad_input;

pub use canonical::canonical;
pub use control_characters::{escape_controls, escape_controls_in_json, is_control};
pub use hex::hex;
pub use id::{Id, IdError};
pub use object::{
    FieldError, FieldErrorKind, Members, Object, as_object, as_required_string, as_string, elements,
};
pub use param_members::ParamMembers;
pub use raw::{Raw, RawError};
pub use result_members::ResultMembers;
pub(crate) use scan::is_nested_deeper_than;
pub use scan::{Fields, Frame, ScanError, ScanErrorKind, ScanLimits, scan};
pub use text::{one_line, quote, unquote};
