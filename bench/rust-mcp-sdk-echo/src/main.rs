//! One `echo` tool served by rust-mcp-sdk over stdio: a peer in `cargo xtask bench stdio`.
//!
//! It follows the SDK's documentation: a tool box on tokio's multi-threaded runtime, with the transport's default
//! options. Version 2 supports only the modern era: it responds to `initialize` with an error.

use std::sync::Arc;

use async_trait::async_trait;
use rust_mcp_sdk::{
    McpServer, RequestContext, ServerDetails, StdioTransport, ToMcpServerHandler, TransportOptions,
    error::SdkResult,
    macros,
    mcp_server::{McpServerOptions, ServerHandler, server_runtime},
    schema::{
        CallToolRequestParams, CallToolResult, Implementation, ListToolsResult,
        ListToolsResultCacheScope, PaginatedRequestParams, RpcError, ServerCapabilities,
        ServerCapabilitiesTools, ServerResult, schema_utils::CallToolError,
    },
    tool_box,
};

#[tokio::main]
async fn main() -> SdkResult<()> {
    let server = server_runtime::create_server(McpServerOptions {
        server_details: details(),
        transport: StdioTransport::new(TransportOptions::default())?,
        handler: Echo.to_mcp_server_handler(),
        message_observer: None,
    });
    server.start().await
}

fn details() -> ServerDetails {
    ServerDetails {
        server_info: Implementation {
            name: "rust-mcp-sdk-echo".into(),
            version: "0.1.0".into(),
            title: None,
            description: None,
            icons: Vec::new(),
            website_url: None,
        },
        capabilities: ServerCapabilities {
            tools: Some(ServerCapabilitiesTools { list_changed: None }),
            ..Default::default()
        },
        instructions: None,
        meta: None,
    }
}

/// The `echo` tool and its arguments.
#[macros::mcp_tool(name = "echo", description = "Answers with the message it was given")]
#[derive(Debug, serde::Deserialize, serde::Serialize, macros::JsonSchema)]
pub struct EchoTool {
    /// The text to send back.
    message: String,
}

tool_box!(Tools, [EchoTool]);

struct Echo;

#[async_trait]
impl ServerHandler for Echo {
    async fn handle_list_tools_request(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: &RequestContext,
        _runtime: Arc<dyn McpServer>,
    ) -> Result<ListToolsResult, RpcError> {
        Ok(ListToolsResult {
            tools: Tools::tools(),
            cache_scope: ListToolsResultCacheScope::Private,
            result_type: "complete".to_owned(),
            ttl_ms: 0,
            meta: None,
            next_cursor: None,
        })
    }

    async fn handle_call_tool_request(
        &self,
        params: CallToolRequestParams,
        _context: &RequestContext,
        _runtime: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        let Tools::EchoTool(echo) = Tools::try_from(params)?;
        Ok(CallToolResult::text_content(vec![echo.message.into()]).into())
    }
}
