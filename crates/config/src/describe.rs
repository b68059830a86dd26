//! Generates the reference and the JSON Schema of the configuration from its types.

pub mod reference;
pub mod schema;
