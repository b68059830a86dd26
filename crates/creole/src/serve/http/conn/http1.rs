//! HTTP/1 without hyper: the fast path and streaming responses.

pub(crate) mod date;
pub(crate) mod detach;
pub(crate) mod fast_path;
pub(crate) mod response_head;
pub(crate) mod response_writer;
pub(crate) mod streaming;
pub(crate) mod wake_batching;
