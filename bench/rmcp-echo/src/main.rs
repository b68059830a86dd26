//! One `echo` tool served by rmcp over stdio: a peer in `cargo xtask bench stdio`.
//!
//! Without arguments it follows rmcp's documentation: tokio's multi-threaded runtime and `rmcp::transport::stdio`. With
//! the argument `tuned` it uses the fastest set-up of rmcp for pipes: `stdio_pipes` on a single-threaded runtime.

use std::error::Error;

use rmcp::{
    ServerHandler, ServiceExt,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    tool, tool_handler, tool_router,
    transport::{stdio, stdio_pipes},
};
use tokio::runtime::Builder;

fn main() -> Result<(), Box<dyn Error>> {
    let tuned = std::env::args().nth(1).is_some_and(|argument| argument == "tuned");
    if tuned {
        Builder::new_current_thread().enable_all().build()?.block_on(async {
            Echo::new().serve(stdio_pipes()).await?.waiting().await?;
            Ok(())
        })
    } else {
        Builder::new_multi_thread().enable_all().build()?.block_on(async {
            Echo::new().serve(stdio()).await?.waiting().await?;
            Ok(())
        })
    }
}

/// The arguments of the `echo` tool.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    /// The text to send back.
    message: String,
}

/// A server whose router is built once, not once per call.
#[derive(Clone)]
struct Echo {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Echo {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Answers with the message it was given")]
    async fn echo(&self, Parameters(arguments): Parameters<EchoArguments>) -> String {
        arguments.message
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Echo {}
