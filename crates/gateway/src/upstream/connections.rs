//! Connections to one upstream: opened, detected, shared among callers and counted.

pub(crate) mod affinity;
pub(crate) mod connector;
pub(crate) mod detect_dialect;
pub(crate) mod pool;
