//! Tests of the listener from outside: bytes over loopback sockets go in, responses are read back.

mod bodies;
mod client_certificates;
mod draining;
mod encrypted;
mod fast_path_equivalence;
mod framing;
mod guards;
mod half_closed;
mod multiplexed;
mod streaming;
pub(crate) mod support;
mod waiting;
