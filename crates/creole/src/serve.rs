//! Server transports: byte streams (stdio, memory) and HTTP.

pub mod http;
pub(crate) mod lines;
