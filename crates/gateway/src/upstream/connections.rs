//! Connections to one upstream: opening, dialect detection, pooling and affinity.

pub(crate) mod active_calls;
pub(crate) mod affinity;
pub(crate) mod capabilities;
pub(crate) mod connector;
pub(crate) mod pool;
pub(crate) mod session_client;
