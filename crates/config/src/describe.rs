//! Descriptions of the configuration that are made from its types: the reference and the JSON Schema.

pub mod reference;
pub mod schema;
