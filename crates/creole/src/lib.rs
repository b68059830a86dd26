//! MCP servers and clients on tokio, for every revision of the protocol.
//!
//! A server is made of values and async functions: tools, resources and prompts, with middleware around them. The same
//! function serves clients of every revision. [`proto`] has the rules by which the revisions differ.
//!
//! # Tools
//!
//! A tool is a name, a description and an async function. The type of its argument gives the input schema. A return type
//! that implements `Serialize` and `JsonSchema` becomes structured content and gives the output schema. A `String`
//! becomes text. An error ends the call with a result that the model can read. See [`Tool::new`].
//!
//! ```
//! use creole::{Prompt, Resource, Server, Tool, ToolError};
//! use creole::schemars::{self, JsonSchema};
//! use creole::serde::{Deserialize, Serialize};
//!
//! /// The numbers to divide.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(crate = "creole::serde")]
//! struct Division {
//!     /// The number to divide.
//!     dividend: i64,
//!     /// The number to divide by.
//!     divisor: i64,
//! }
//!
//! #[derive(Serialize, JsonSchema)]
//! #[serde(crate = "creole::serde")]
//! struct Quotient {
//!     quotient: i64,
//!     remainder: i64,
//! }
//!
//! async fn divide(of: Division) -> Result<Quotient, ToolError> {
//!     let failed = || ToolError::failed("this division has no result");
//!     let quotient = of.dividend.checked_div(of.divisor).ok_or_else(failed)?;
//!     let remainder = of.dividend.checked_rem(of.divisor).ok_or_else(failed)?;
//!     Ok(Quotient { quotient, remainder })
//! }
//!
//! let server = Server::new("calculator")
//!     .version(env!("CARGO_PKG_VERSION"))
//!     .tool(Tool::new("divide", "Divides two integers", divide).read_only())
//!     .resource(Resource::text("help://divide", "help", "text/plain", "The remainder has the sign of the dividend."))
//!     .prompt(Prompt::new("explain", "Explains division", |_, _| async {
//!         "Please explain division with remainder.".to_owned()
//!     }));
//! # drop(server);
//! // server.serve_stdio().await
//! ```
//!
//! `serde` and [`schemars`] are exported from here, so a server needs no other dependency than `tokio`. The derive macros
//! of both name their crate in the code that they write. So `schemars` has to be in scope, and
//! `#[serde(crate = "creole::serde")]` has to be on each type. Neither is needed in a crate that depends on `serde` and
//! `schemars` itself.
//!
//! # State
//!
//! [`Tool::with_state`] passes a clone of a state to each call, as the first parameter.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use creole::schemars::{self, JsonSchema};
//! use creole::serde::Deserialize;
//! use creole::{Server, Tool};
//!
//! type Notes = Arc<Mutex<Vec<String>>>;
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(crate = "creole::serde")]
//! struct Note {
//!     /// The text to remember.
//!     text: String,
//! }
//!
//! async fn add(notes: Notes, note: Note) -> &'static str {
//!     notes.lock().unwrap().push(note.text);
//!     "remembered"
//! }
//!
//! async fn list(notes: Notes) -> Vec<String> {
//!     notes.lock().unwrap().clone()
//! }
//!
//! let notes = Notes::default();
//! let server = Server::new("notes")
//!     .tool(Tool::with_state("add", "Remembers a note", &notes, add))
//!     .tool(Tool::with_state("list", "Lists the notes", &notes, list).read_only());
//! # drop(server);
//! ```
//!
//! # Input requests
//!
//! A handler that takes a [`Context`] can request input from the user and from the client's model, and the client's
//! roots. It requests with `?`: without a response the handler ends, and it is run again when the client has responded.
//! So one handler serves clients that respond during a call and clients that retry the call. Everything before an input
//! request must be safe to run twice. See [`input`] and [`Context::elicit`].
//!
//! ```
//! use creole::schemars::{self, JsonSchema};
//! use creole::serde::Deserialize;
//! use creole::{Context, Server, Tool, ToolError};
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(crate = "creole::serde")]
//! struct Consent {
//!     /// Delete all notes?
//!     delete: bool,
//! }
//!
//! async fn clear(context: Context) -> Result<&'static str, ToolError> {
//!     let consent: Consent = context.elicit("The notes cannot be restored.")?;
//!     Ok(if consent.delete { "deleted" } else { "kept" })
//! }
//!
//! let server = Server::new("notes").tool(Tool::new("clear", "Deletes all notes", clear));
//! # drop(server);
//! ```
//!
//! # HTTP
//!
//! [`Server::start`] makes a [`Service`], which any number of connections share. An
//! [`McpEndpoint`](serve::http::McpEndpoint) serves it over Streamable HTTP. The endpoint is a tower service: it mounts in
//! an axum application, or is served by the [`Listener`](serve::http::Listener) of this crate, which checks hosts,
//! origins and limits.
//!
//! ```no_run
//! use creole::Server;
//! use creole::serve::http::{
//!     Drain, HttpLimits, Listener, McpEndpoint, Method, OriginGuard, Route, Router,
//! };
//!
//! # async fn serve() -> std::io::Result<()> {
//! let service = Server::new("hello").start();
//! let endpoint = McpEndpoint::from(service);
//! let methods = [Method::POST, Method::GET, Method::DELETE];
//! let router = Router::new(OriginGuard::loopback(), Drain::new());
//! let listener = Listener::bind(([127, 0, 0, 1], 8080).into(), HttpLimits::default()).await?;
//! listener.serve(router.route(Route::new("/mcp", &methods, endpoint))).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Middleware
//!
//! A [`Middleware`] wraps every call. It may refuse, delay or change a call, or change its outcome. It is a function, or a
//! type that implements the trait.
//!
//! ```
//! use creole::proto::fault::{Fault, FaultKind};
//! use creole::{BoxFuture, Call, Next, Outcome, Server};
//!
//! fn close(call: Call, next: Next<'_>) -> BoxFuture<'_, Outcome> {
//!     Box::pin(async move {
//!         match call.operation.method() {
//!             "tools/call" => Fault::new(FaultKind::Busy, "the server is closed today").into(),
//!             _ => next.call(call).await,
//!         }
//!     })
//! }
//!
//! let server = Server::new("shop").with(close);
//! # drop(server);
//! ```
//!
//! # Clients
//!
//! A [`Client`](client::Client) connects to a program, to a URL or over any pair of byte streams. It detects which
//! revision the server supports. Errors are [`Fault`](proto::fault::Fault)s.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use creole::client::{ClientBuilder, LineServer};
//! use creole::proto::fault::Fault;
//! use creole::stream::memory_pair;
//! use creole::{Server, Tool};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Fault> {
//! // A server in the same process. `ClientBuilder::connect` takes the address of another one.
//! let (near, far) = memory_pair();
//! let service = Server::new("dice").tool(Tool::new("roll", "Rolls a die", async || 4)).start();
//! tokio::spawn(async move {
//!     let (input, output) = far.split();
//!     service.serve(input, output).await
//! });
//!
//! let (input, output) = near.split();
//! let transport = Box::new(LineServer::new("dice", input, output));
//! let client = ClientBuilder::new("example", "1.0").connect_over(transport).await?;
//! assert_eq!(client.list_tools().await?[0].name, "roll");
//! let no_arguments = BTreeMap::<String, String>::new();
//! let rolled: i32 = client.call_tool("roll", &no_arguments).await?.structured()?;
//! assert_eq!(rolled, 4);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! `http` and `sqlite` are on by default.
//!
//! - `http`: servers and clients over HTTP: [`serve::http`], [`auth`], [`client::credentials`] and [`client::oauth`]. A
//!   server or client over stdio does without it, and then compiles no HTTP, no TLS and no password hashing:
//!   `creole = { version = "0.1", default-features = false }`.
//! - `postgres`: state in a PostgreSQL database, which several machines share: `State::postgres`. It includes `http`,
//!   whose TLS it uses.
//! - `sqlite`: state in an SQLite file: [`State::sqlite`](state::State::sqlite).
//! - `valkey`: state in a Valkey or Redis server, which several machines share: `State::valkey`.

#![cfg_attr(
    not(feature = "http"),
    allow(dead_code, reason = "methods that only the transports over HTTP call")
)]

#[cfg(feature = "http")]
pub mod auth;
mod budget;
mod call;
mod chain;
pub mod client;
mod host;
pub mod input;
#[doc(hidden)]
pub mod internal;
mod item;
mod name_patterns;
mod principal;
mod process;
mod random;
mod registry;
mod replicas;
mod schema;
mod scopes;
mod seal;
mod secrets;
pub mod serve;
mod server;
pub mod state;
pub mod stream;
mod sync;
mod task;
mod telemetry;
#[cfg(feature = "http")]
mod tls;

pub use crate::serve::lines::EndReason;
pub use call::{Call, Context};
pub use chain::{BoxFuture, Middleware, Next};
pub use item::prompt::{IntoPromptResult, Prompt};
pub use item::resource::{IntoContents, Resource, Template, Variables};
pub use item::skill::{Skill, SkillError};
pub use item::tool::{Handler, IntoToolResult, Json, Tool, ToolError};
pub use principal::{Principal, TokenIdentity, TokenMethod};
pub use registry::{Registry, WeakRegistry};
pub use schema::Schema;
pub use seal::Sealer;
pub use secrets::Secrets;
pub use server::{Server, Service};
pub use task::{TaskLimits, TaskSupport};

pub use creole_proto as proto;
pub use creole_proto::model::{
    Content, Contents, Level, PromptMessage, PromptResult, Role, ToolResult,
};
pub use creole_proto::operation::Outcome;
pub use {schemars, serde};
