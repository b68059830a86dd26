//! Connections to other servers, of either era and over any transport.
//!
//! A [`Transport`] begins a [`Link`], a [`Connection`] drives the protocol machine over it. Calls are futures:
//! dropping one cancels it. What a server should not have said is counted and never reaches a caller.
//!
//! ```no_run
//! use creole::client::http::Target;
//! use creole::client::{Client, Way};
//! use creole::proto::fault::Fault;
//! use serde_json::json;
//!
//! # async fn add() -> Result<(), Fault> {
//! // Or Way::Child(Program::new("calculator", "calculator-mcp")), of whatever revision.
//! let way = Way::Http(Target::new("calculator", "https://example.com/mcp")?);
//! let client = Client::connect(way).await?;
//! let sum = client.call_tool("add", &json!({"a": 1, "b": 2})).await?;
//! # drop(sum);
//! # Ok(())
//! # }
//! ```

mod callbacks;
mod calling;
mod connection;
pub mod credentials;
mod dialer;
pub mod encrypt;
mod era;
pub mod http;
mod hub;
mod line;
mod lines;
mod link;
mod negotiation;
mod noise;
mod probe;
mod simple;
mod tasks;

pub use calling::{Asked, Calling, News, Reply, Step};
pub use connection::{Before, Closed, Connection, Notice, OnLog, OnQuestion, Setup};
pub use dialer::{Dialer, Offer, Way, is_misunderstood};
pub use era::{Found, Memory, Support};
pub use lines::{ChildServer, LineServer};
pub use link::{Carrier, Inbox, Link, Transport, Whereabouts};
pub use simple::{Client, ClientBuilder};
