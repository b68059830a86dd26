//! Serves Streamable HTTP of every revision on one endpoint, with the listener and router around it.
//!
//! A [`Listener`] accepts connections and hands every request to a [`Router`]. The router checks host, origin, path,
//! method and caller before the [`McpEndpoint`] sees the request. A
//! stateless request is an exchange of its own and ends when its client disconnects. A client that opens a session gets
//! one: its calls outlive the connections that requested them, and its streams can be resumed. Both kinds run a
//! protocol machine. The protocol rules are in `creole_proto::http`; this module moves bytes.

pub use crate::serve::http::listener::Listener;
#[cfg(unix)]
#[doc(hidden)]
pub use crate::serve::http::listener::unix::UnixSocketListener;
pub use crate::serve::http::mcp::endpoint::{EndpointSettings, McpEndpoint};
pub use crate::serve::http::web::authenticate::ResourceGate;
pub use crate::serve::http::web::body::BodyLimits;
pub use crate::serve::http::web::drain::{Drain, DrainStage};
pub use crate::serve::http::web::handler::PeerAddress;
pub use crate::serve::http::web::limits::HttpLimits;
pub use crate::serve::http::web::router::{Route, Router};
pub use crate::serve::http::web::tls::{CertificateError, Certificates};

pub use ::http::Method;
pub use creole_proto::http::forwarded::{Network, TrustedProxies};
pub use creole_proto::http::origin_guard::OriginGuard;

pub(crate) mod conn;
pub(crate) mod listener;
pub(crate) mod mcp;
pub(crate) mod web;

#[cfg(test)]
mod tests;
