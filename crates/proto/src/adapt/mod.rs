//! The newest shape lowered to what an older revision can say; each step is keyed by a missing feature.

mod blocks;
mod content;
mod foreign;
mod form;
mod sampling;
mod schema;

pub use blocks::{is_text, knows_all_blocks, lower_raw_block, lower_raw_blocks};
pub use content::{lower_blocks, lower_structured};
pub use foreign::{lower_output, lower_schema, sound_schema};
pub use form::{Lowered, lower_form};
pub use sampling::{lower_sampled, lower_sampling, samples_with_tools};
pub use schema::lower_tool;
