//! Layers that bound the number, size and duration of calls.

pub(crate) mod breaker;
pub(crate) mod concurrency;
pub(crate) mod rate_limit;
pub(crate) mod retry;
mod shared_rate;
pub(crate) mod size_limit;
pub(crate) mod timeout;
