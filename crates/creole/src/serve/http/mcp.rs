//! The MCP endpoint: sessions, event streams, stateless exchanges and the HTTP+SSE transport of 2024-11-05.

mod background;
pub(crate) mod change_fanout;
pub(crate) mod endpoint;
pub(crate) mod http_caller;
pub(crate) mod response;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod stateless_exchange;
pub(crate) mod stream;
pub(crate) mod streams;
