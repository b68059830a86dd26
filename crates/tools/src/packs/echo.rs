//! The pack `echo`: one tool that returns its input.

use creole::Server;
use serde::Deserialize;

use crate::packs::schema_tool;

const SCHEMA: &str = r#"{"type":"object","properties":{"message":{"type":"string","description":"The text to return"}},"required":["message"],"additionalProperties":false}"#;

#[derive(Deserialize)]
struct EchoInput {
    message: String,
}

/// Adds the pack.
pub(crate) fn add(server: Server) -> Server {
    let echo = schema_tool::tool("echo", "Returns the given message", SCHEMA, echo);
    server.tool(echo.read_only())
}

async fn echo(heard: EchoInput) -> String {
    heard.message
}
