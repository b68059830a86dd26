//! Parts that all configuration tables share: values with positions, names, variables and errors.

pub(crate) mod disabled;
pub(crate) mod environment;
pub mod error;
pub(crate) mod suggestions;
pub(crate) mod toml_errors;
pub mod value;
