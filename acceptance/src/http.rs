//! HTTP for tests: the real binary with a port, and a client that can send invalid requests.

pub mod client;
pub mod events;
pub mod required_headers;
pub mod server;
pub mod service_request;

pub use self::client::{Connection, Head, Request, Response};
pub use self::events::{Event, Events};
pub use self::server::ListeningServer;
pub use self::service_request::ServiceRequest;
