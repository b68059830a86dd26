//! The pack `hello`: one tool that greets.

use creole::Server;
use serde::Deserialize;

use crate::packs::schema_tool;

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"Name to greet"}},"required":["name"],"additionalProperties":false}"#;

#[derive(Deserialize)]
struct HelloInput {
    name: String,
}

/// Adds the pack.
pub(crate) fn add(server: Server) -> Server {
    server.tool(schema_tool::tool("hello", "Returns a greeting message", SCHEMA, hello))
}

async fn hello(whom: HelloInput) -> String {
    format!("Hello, {}!", whom.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_world_is_greeted() {
        assert_eq!(hello(HelloInput { name: "World".into() }).await, "Hello, World!");
    }
}
