//! Server transports: byte streams (stdio, memory) and HTTP.

#[cfg(feature = "http")]
pub mod http;
pub(crate) mod lines;
