//! Layers that store, record or redact what calls carry.

pub(crate) mod audit;
pub(crate) mod cache;
pub(crate) mod redact;
pub(crate) mod result_size;
