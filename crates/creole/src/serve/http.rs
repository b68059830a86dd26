//! Streamable HTTP of every revision on one endpoint, and the listener around it.
//!
//! A [`Listener`] accepts connections and hands every request to a [`Router`], which checks host, origin,
//! path, method and caller before an [`HttpHandler`] sees it. The [`McpEndpoint`] is the answer of MCP: a request that
//! brings all that it needs is an exchange of its own and ends when its client goes away; clients that open a
//! session get one, whose calls outlive the connections that asked for them and whose streams can be resumed.
//! Both are conversations with a protocol machine. The rules are in `creole_proto::http`; what is here moves
//! bytes.

pub use crate::serve::http::conn::incoming::IncomingBody;
pub use crate::serve::http::conn::outgoing::OutgoingBody;
pub use crate::serve::http::mcp::endpoint::{EndpointSettings, McpEndpoint};
pub use crate::serve::http::mcp::response::McpBody;
pub use crate::serve::http::web::body::BodyLimits;
pub use crate::serve::http::web::drain::{Drain, DrainStage};
pub use crate::serve::http::web::handler::{
    Admission, Authenticate, ErrorResponse, HttpHandler, PeerAddress,
};
pub use crate::serve::http::web::limits::HttpLimits;
pub use crate::serve::http::web::listener::Listener;
pub use crate::serve::http::web::request::{HeaderValues, RequestHead, RequestHeaders};
pub use crate::serve::http::web::router::{Route, Router};
pub use crate::serve::http::web::tls;

pub use creole_proto::http::forwarded::{Network, TrustedProxies};
pub use creole_proto::http::origin_guard::OriginGuard;
// Whoever writes an answer or a gate names these, and should not have to name their crates and versions.
pub use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

pub(crate) mod conn;
pub(crate) mod mcp;
pub(crate) mod web;

#[cfg(test)]
mod tests;
