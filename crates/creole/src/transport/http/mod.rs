//! Streamable HTTP of every revision on one endpoint, and the listener around it.
//!
//! A [`Listener`] accepts connections and hands every request to a [`Router`], which checks host, origin,
//! path, method and caller before an [`Answer`] sees it. The [`Endpoint`] is the answer of MCP: a request that
//! brings all that it needs is an exchange of its own and ends when its client goes away; clients that open a
//! session get one, whose calls outlive the connections that asked for them and whose streams can be resumed.
//! Both are conversations with a protocol machine. The rules are in `creole_proto::http`; what is here moves
//! bytes.

mod answer;
pub mod body;
mod connection;
mod conversation;
mod cors;
mod date;
mod drain;
mod endpoint;
mod exchange;
mod gate;
mod handover;
mod head;
mod hub;
mod incoming;
mod lasting;
mod limits;
mod listener;
mod old_sse;
mod opening;
mod outgoing;
mod pace;
mod places;
mod plain;
mod prober;
mod reply;
mod request;
mod router;
mod sending;
mod session;
mod sessions;
mod socket;
mod speaker;
mod stream;
mod streams;
pub mod tls;
mod together;
mod versions;
mod wire;

pub use answer::{Admission, Answer, Gate, Peer, Refusal};
pub use drain::{Drain, Stage};
pub use endpoint::{Endpoint, Settings};
pub use incoming::Incoming;
pub use limits::Limits;
pub use listener::Listener;
pub use outgoing::Outgoing;
pub use reply::Body;
pub use request::{Head, Headers, Values};
pub use router::{Route, Router};

pub use creole_proto::http::forwarded::{Network, TrustedProxies};
pub use creole_proto::http::origin_guard::OriginGuard;
// Whoever writes an answer or a gate names these, and should not have to name their crates and versions.
pub use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

#[cfg(test)]
mod tests;
