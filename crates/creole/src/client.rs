//! Client connections to MCP servers, of either era and over any transport.
//!
//! Calls are futures: dropping one cancels it. Messages that violate the protocol are counted and never reach a caller.
//!
//! ```no_run
//! use creole::client::{Address, Client, HttpAddress};
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

mod call_slot;
pub(crate) mod connection;
mod connection_setup;
pub(crate) mod connector;
#[cfg(feature = "http")]
pub mod credentials;
mod dispatcher;
pub(crate) mod era;
mod mcp_client;
mod negotiation;
#[cfg(feature = "http")]
pub mod oauth;
pub(crate) mod pending_call;
pub(crate) mod transport;

#[cfg(feature = "http")]
pub use crate::client::transport::http::HttpAddress;
pub use crate::client::transport::lines::{ChildServer, LineServer};
pub use crate::process::{GracePeriods, Program};
pub use connector::Address;
pub use era::DetectedEra;
pub use mcp_client::typed::{CallToolResult, ListedTool};
pub use mcp_client::{Client, ClientBuilder};
pub use transport::Transport;
