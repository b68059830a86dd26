//! The newest shape lowered to what an older revision can say; each step is keyed by a missing feature.

mod content;
mod form;
mod schema;

pub use content::{lower_blocks, lower_structured};
pub use form::{Lowered, lower_form};
pub use schema::lower_tool;
