//! Transports of a server: byte streams, memory and HTTP.

pub mod http;
pub(crate) mod lines;
