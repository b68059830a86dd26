//! Tools served by tower-mcp over Streamable HTTP in axum: a peer in `cargo xtask bench http`.
//!
//! It follows tower-mcp's documentation: sessions for clients of the legacy era, none for clients of the modern era.
//! Only its limits on sessions and subscriptions are raised, because the benchmark opens ten thousand. `--tools N`
//! lists N tools instead of `echo`.

use std::io::Write;
use std::net::Ipv4Addr;

use tokio::net::TcpListener;
use tower_mcp::transport::http::SubscriptionLimits;
use tower_mcp::{BoxError, CallToolResult, HttpTransport, McpRouter, Tool, ToolBuilder};

/// More than the benchmark opens.
const MANY: usize = 100_000;

// The arguments of every tool. This is not a doc comment, because that would become a part of the list.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    message: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args();
    let _ = arguments.find(|argument| argument == "--tools");
    let count: usize = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let mut router = McpRouter::new().server_info("tower-mcp-http", "0.1.0");
    if count == 0 {
        router = router.tool(tool("echo"));
    }
    for number in 0..count {
        router = router.tool(tool(&format!("tool_{number:04}")));
    }
    let limits = SubscriptionLimits::default().max_active(MANY).max_active_per_principal(MANY);
    let app = HttpTransport::new(router)
        .max_sessions(MANY)
        .subscription_limits(limits)
        .into_router_at("/mcp");

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stderr(), "tower-mcp-http: `tower-mcp` listens on http://{address}/mcp")?;
    // axum leaves Nagle's algorithm on, which delays the end of a stream.
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, app).await?;
    Ok(())
}

fn tool(name: &str) -> Tool {
    ToolBuilder::new(name)
        .description("Answers with the message it was given")
        .handler(
            |arguments: EchoArguments| async move { Ok(CallToolResult::text(arguments.message)) },
        )
        .build()
}
