//! Connections to one HTTP server: connecting, pooling, requests and responses.

pub(crate) mod address_filter;
pub(crate) mod body_reader;
pub(crate) mod connect_failure;
mod http1;
mod idle_connections;
pub(crate) mod pool;
pub(crate) mod proxy;
pub(crate) mod proxy_connector;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod response_body;
pub(crate) mod server_connector;
