//! The HTTP server around the endpoint: router, authentication, limits and TLS.

pub(crate) mod authenticate;
pub(crate) mod body;
pub(crate) mod connection_slots;
pub(crate) mod cors;
pub(crate) mod drain;
pub(crate) mod handler;
pub(crate) mod incoming;
pub(crate) mod limits;
pub(crate) mod listener_metrics;
pub(crate) mod public_documents;
pub(crate) mod request;
pub(crate) mod router;
pub(crate) mod tls;
pub(crate) mod wake_batching;
