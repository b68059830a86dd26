//! Connections to one HTTP server: connecting, pooling, requests and responses.

pub(crate) mod address_filter;
pub(crate) mod body_reader;
pub(crate) mod http1;
pub(crate) mod pool;
pub(crate) mod proxy;
pub(crate) mod proxy_connector;
pub(crate) mod request;
pub(crate) mod response;
