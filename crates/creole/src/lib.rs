//! MCP servers on tokio that speak every revision and dialect.
//!
//! A server is values and functions: tools, resources and prompts, with middleware around them. The same
//! handler serves clients of every revision; what differs between them is the business of
//! [`creole_proto`].
//!
//! ```
//! use creole::{Server, Tool};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! /// What to add.
//! #[derive(Deserialize, JsonSchema)]
//! struct Add {
//!     /// The first number.
//!     a: i64,
//!     /// The second number.
//!     b: i64,
//! }
//!
//! async fn add(sum: Add) -> String {
//!     (sum.a + sum.b).to_string()
//! }
//!
//! let server = Server::new("acme").tool(Tool::new("add", "Adds two numbers", add));
//! # drop(server);
//! // server.serve_stdio().await
//! ```

pub mod auth;
pub mod budget;
pub mod call;
pub mod catch_panic;
pub mod chain;
pub mod client;
mod cursor;
pub mod front_matter;
pub mod input;
pub mod media;
pub mod process;
pub mod prompt;
mod random;
mod registry;
pub mod replacement;
pub mod replicas;
pub mod resource;
pub mod schema;
pub mod seal;
pub mod serve;
pub mod server;
pub mod skill;
pub mod state;
pub mod stream;
pub mod task;
mod telemetry;
pub mod tool;
mod uri_template;

pub use crate::serve::lines::EndReason;
pub use call::{Call, Canceller, ClientChannel, Context, Origin};
pub use chain::{BoxFuture, Endpoint, Middleware, Next};
pub use prompt::Prompt;
pub use registry::{
    Announcement, ItemSource, NameCollision, Recipients, Registry, RemoteItem, RemoteServer,
    SessionList, SessionLists, UnlistedItem, WeakRegistry,
};
pub use resource::{Resource, Template};
pub use server::{Server, Service};
pub use skill::{Skill, SkillError};
pub use task::{TaskLimits, TaskSupport};
pub use tool::{Json, Tool, ToolError};

pub use creole_proto as proto;
pub use creole_proto::model::{
    Content, Contents, Level, PromptMessage, PromptResult, Role, ToolResult,
};
pub use creole_proto::operation::Outcome;
