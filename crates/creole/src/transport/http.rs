//! Streamable HTTP of every revision on one endpoint, and the listener around it.
//!
//! A [`Listener`] accepts connections and hands every request to a [`Router`], which checks host, origin,
//! path, method and caller before an [`HttpHandler`] sees it. The [`McpEndpoint`] is the answer of MCP: a request that
//! brings all that it needs is an exchange of its own and ends when its client goes away; clients that open a
//! session get one, whose calls outlive the connections that asked for them and whose streams can be resumed.
//! Both are conversations with a protocol machine. The rules are in `creole_proto::http`; what is here moves
//! bytes.

mod authenticate;
pub mod body;
mod change_fanout;
mod connection;
mod connection_slots;
mod cors;
mod date;
mod detach;
mod drain;
mod endpoint;
mod fast_path;
mod handler;
mod http2_requests;
mod hyper_connections;
mod incoming;
mod legacy_sse;
mod limits;
mod listener;
mod machine_host;
mod outgoing;
mod prober;
mod request;
mod response;
mod response_head;
mod response_writer;
mod router;
mod screened_stream;
mod session;
mod sessions;
mod socket;
mod stateless_exchange;
mod stream;
mod streaming;
mod supervise;
mod timeouts;
pub mod tls;
mod version_sniff;
mod wake_batching;

pub use drain::{Drain, DrainStage};
pub use endpoint::{EndpointSettings, McpEndpoint};
pub use handler::{Admission, Authenticate, ErrorResponse, HttpHandler, PeerAddress};
pub use incoming::IncomingBody;
pub use limits::HttpLimits;
pub use listener::Listener;
pub use outgoing::OutgoingBody;
pub use request::{HeaderValues, RequestHead, RequestHeaders};
pub use response::McpBody;
pub use router::{Route, Router};

pub use creole_proto::http::forwarded::{Network, TrustedProxies};
pub use creole_proto::http::origin_guard::OriginGuard;
// Whoever writes an answer or a gate names these, and should not have to name their crates and versions.
pub use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

#[cfg(test)]
mod tests;
