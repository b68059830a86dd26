//! An MCP endpoint beside the other routes of an axum application.
//!
//! Host, origin and credentials are the application's to check here; `creole::serve::http::Router` does it
//! for servers of their own.

use axum::Router;
use axum::routing::get;
use creole::serve::http::McpEndpoint;
use creole::{Server, Tool};
use serde_json::Value;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, application()).await
}

fn application() -> Router {
    let echo =
        Tool::new("echo", "Says it again", |message: Value| async move { message.to_string() });
    let service = Server::new("mounted").tool(echo).start();
    let endpoint = McpEndpoint::from(service);
    Router::new().route("/", get(async || "hello")).route_service("/mcp", endpoint)
}
