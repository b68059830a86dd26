//! Connections to one upstream: opening, dialect detection, pooling and affinity.

pub(crate) mod affinity;
pub(crate) mod connector;
pub(crate) mod pool;
