//! JSON text as it travels: one strict scan at the border, then slices of it that are never copied.
//!
//! Nothing here builds a tree of values. [`scan()`] decides once whether bytes are a message we are
//! willing to read; after that, [`Object`] looks into the same text, [`Id`] and [`Raw`] keep parts
//! of it, and what is forwarded is forwarded byte for byte.

pub mod canonical;
pub mod hex;
pub mod id;
pub mod inside;
pub mod object;
pub mod raw;
pub mod scan;
pub mod text;
pub mod told;
pub mod visible;

mod cursor;
mod nesting;
mod number;

#[cfg(test)]
mod bad_input;

pub use canonical::canonical;
pub use hex::hex;
pub use id::{Id, IdError};
pub use inside::Inside;
pub use object::{
    FieldError, Members, Object, Problem, as_object, as_required_string, as_string, elements,
};
pub use raw::{Raw, RawError};
pub(crate) use scan::nests_deeper;
pub use scan::{Fields, Frame, Limits, Reason, ScanError, scan};
pub use text::{one_line, quote, unquote};
pub use told::Told;
pub use visible::{escape_controls, is_control, json_escaped};
