//! Serves one HTTP connection: version detection, HTTP/1, HTTP/2, timeouts and supervision.

pub(crate) mod connection;
pub(crate) mod handle_request;
pub(crate) mod http1;
pub(crate) mod http2_requests;
pub(crate) mod hyper_connections;
pub(crate) mod outgoing;
pub(crate) mod prober;
pub(crate) mod screened_stream;
pub(crate) mod socket;
pub(crate) mod supervise;
pub(crate) mod timeouts;
pub(crate) mod version_sniff;
