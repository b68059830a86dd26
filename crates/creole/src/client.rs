//! Client connections to MCP servers, of either era and over any transport.
//!
//! A [`Transport`] opens a [`TransportHandle`], and a [`Connection`] drives the protocol machine over it. Calls are
//! futures: dropping one cancels it. Messages that violate the protocol are counted and never reach a caller.
//!
//! ```no_run
//! use creole::client::transport::http::HttpAddress;
//! use creole::client::{Address, Client};
//! use creole::proto::fault::Fault;
//! use serde_json::json;
//!
//! # async fn add() -> Result<(), Fault> {
//! // Or Address::Child(Program::new("calculator", "calculator-mcp")), of whatever revision.
//! let address = Address::Http(HttpAddress::new("calculator", "https://example.com/mcp")?);
//! let client = Client::connect(address).await?;
//! let sum = client.call_tool("add", &json!({"a": 1, "b": 2})).await?;
//! # drop(sum);
//! # Ok(())
//! # }
//! ```

mod callbacks;
mod connection;
mod connector;
#[cfg(feature = "http")]
pub mod credentials;
mod dispatcher;
mod era;
mod mcp_client;
mod negotiation;
mod pending_call;
#[cfg(feature = "http")]
mod probe;
mod protocol_violations;
mod reconnecting;
mod tasks;
#[cfg(feature = "http")]
pub mod tls;
pub mod transport;
mod typed;

pub use crate::client::transport::lines::{ChildServer, LineServer};
pub use connection::{
    CloseReason, Connection, ConnectionSetup, OnInputRequest, OnLog, PriorMessages,
    ServerNotification,
};
#[cfg(feature = "http")]
pub use connector::may_be_wrong_era;
pub use connector::{Address, ClientOffer, Connector};
pub use era::{DetectedEra, EraSupport};
pub use mcp_client::{Client, ClientBuilder};
pub use pending_call::{CallEvent, CallStep, InputResponder, PendingCall, ServerInputRequest};
pub use transport::{Exchange, Inbox, ResumePoint, Transport, TransportHandle};
pub use typed::{CallToolResult, ListedTool};
