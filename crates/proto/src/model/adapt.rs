//! Conversions from the newest revision's shapes to those of older revisions. Each conversion is selected by a feature
//! that the older revision lacks.

mod content;
mod form;
mod raw_blocks;
mod sampling;
mod schema;
mod upstream_schema;

pub use content::{lower_blocks, lower_structured_content};
pub use form::{LoweredForm, lower_form};
pub use raw_blocks::{is_text, lower_raw_block, lower_raw_blocks, supports_all_blocks};
pub use sampling::{lower_sampling_params, lower_sampling_result, sampling_uses_tools};
pub use schema::lower_tool;
pub use upstream_schema::{lower_input_schema, lower_output_schema, repair_required};
