//! Upstreams for gateway tests: our own server in one era only, and scripted servers that a test controls.

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
