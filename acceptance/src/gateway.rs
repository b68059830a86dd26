//! Servers behind a gateway: our own in one era only, and puppets that do what a test says.

mod clients;
mod gateway_setup;
mod scripted_child;
mod scripted_http_server;
mod scripted_sse_server;

pub use clients::{HandshakeClient, PendingResponse, StatelessClient};
pub use gateway_setup::{GatewaySetup, ServerEra};
pub use scripted_child::{ReceivedMessage, ScriptedChild, ScriptedChildren, ScriptedReplies};
pub use scripted_http_server::{PendingRequest, ScriptedHttpServer};
pub use scripted_sse_server::{ScriptedSseServer, SseServerMessage};
