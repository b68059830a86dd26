//! HTTP as a test wants it: the real binary with a port, and a client that can also be rude.

pub mod asked;
pub mod client;
pub mod demanded;
pub mod events;
pub mod server;

pub use self::asked::Asked;
pub use self::client::{Connection, Head, Request, Response};
pub use self::events::{Event, Events};
pub use self::server::Listening;
