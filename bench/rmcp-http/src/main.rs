//! Tools served by rmcp over Streamable HTTP in axum: a peer in `cargo xtask bench http`.
//!
//! Without arguments it follows rmcp's documentation: sessions for clients of the legacy era, and event streams as
//! responses to all clients. With `json` it keeps no sessions and responds with JSON, the fastest set-up of rmcp.
//! `--tools N` adds N tools to `echo`.

use std::error::Error;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

use rmcp::{
    ServerHandler,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        wrapper::Parameters,
    },
    model::{ServerCapabilities, ServerConfig, SubscriptionFilter},
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut settings = StreamableHttpServerConfig::default();
    if arguments.iter().any(|argument| argument == "json") {
        settings.legacy_session_mode = false;
        settings.json_response = true;
    }
    let after = arguments.iter().skip_while(|argument| *argument != "--tools").nth(1);
    let server = Tools::new(after.and_then(|number| number.parse().ok()).unwrap_or(0));

    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        settings,
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stderr(), "rmcp-http: `rmcp` listens on http://{address}/mcp")?;
    // axum leaves Nagle's algorithm on, which delays the end of a stream.
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

// The arguments of every tool. This is not a doc comment, because that would become a part of the list.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    message: String,
}

/// A server whose router is built once, not once per call.
#[derive(Clone)]
struct Tools {
    tool_router: Arc<ToolRouter<Self>>,
}

#[tool_router]
impl Tools {
    fn new(count: usize) -> Self {
        let mut router = Self::tool_router();
        let mut pattern = Self::echo_tool_attr();
        for number in 0..count {
            pattern.name = format!("tool_{number:04}").into();
            router.add_route(ToolRoute::new(pattern.clone(), Self::echo));
        }
        if count > 0 {
            router.remove_route("echo");
        }
        Self { tool_router: Arc::new(router) }
    }

    #[tool(description = "Answers with the message it was given")]
    async fn echo(&self, Parameters(arguments): Parameters<EchoArguments>) -> String {
        arguments.message
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        ServerConfig::new(tools.build())
    }

    /// Without this function `subscriptions/listen` is an unknown method.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }
}
