//! Streamable HTTP of every revision on one endpoint.
//!
//! A request that brings all that it needs is an [`Exchange`](exchange) of its own, and ends when its client
//! goes away. Clients that open a session get one ([`session`]): its calls outlive the connections that asked
//! for them, and its streams can be resumed. Both are [conversations](conversation) with a protocol machine,
//! whose rules of HTTP are in `creole_proto::http`; what is here moves bytes.

mod conversation;
mod endpoint;
mod exchange;
mod hub;
mod intake;
mod old_sse;
mod reply;
mod session;
mod sessions;
mod stream;

pub use endpoint::{Endpoint, Settings};
pub use reply::Body;
