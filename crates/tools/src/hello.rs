//! The pack `hello`: one tool that greets.

use creole::Server;
use serde::Deserialize;

use crate::define;

const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"Name to greet"}},"required":["name"],"additionalProperties":false}"#;

#[derive(Deserialize)]
struct Hello {
    name: String,
}

/// Adds the pack.
pub(crate) fn add(server: Server) -> Server {
    server.tool(define::tool("hello", "Returns a greeting message", SCHEMA, hello))
}

async fn hello(whom: Hello) -> String {
    format!("Hello, {}!", whom.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_world_is_greeted() {
        assert_eq!(hello(Hello { name: "World".into() }).await, "Hello, World!");
    }
}
