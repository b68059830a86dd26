//! The listener from outside: bytes over loopback sockets go in, answers are read back.

mod alike;
mod bodies;
mod draining;
mod encrypted;
mod framing;
mod guards;
mod half_closed;
mod lasting;
mod multiplexed;
pub(super) mod support;
mod waiting;
