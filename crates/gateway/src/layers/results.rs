//! Layers that cache, record or redact results and arguments.

pub(crate) mod cache;
pub(crate) mod redact;
pub(crate) mod result_size;
