//! The packs `hello` and `echo`: one tool that greets, and one that returns its input.

use creole::Server;
use serde::Deserialize;

use super::tool;

const HELLO_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"Name to greet"}},"required":["name"],"additionalProperties":false}"#;
const ECHO_SCHEMA: &str = r#"{"type":"object","properties":{"message":{"type":"string","description":"The text to return"}},"required":["message"],"additionalProperties":false}"#;

#[derive(Deserialize)]
struct HelloInput {
    name: String,
}

#[derive(Deserialize)]
struct EchoInput {
    message: String,
}

/// Adds the pack `hello`.
pub(crate) fn add_hello(server: Server) -> Server {
    server.tool(tool("hello", "Returns a greeting message", HELLO_SCHEMA, hello))
}

async fn hello(input: HelloInput) -> String {
    format!("Hello, {}!", input.name)
}

/// Adds the pack `echo`.
pub(crate) fn add_echo(server: Server) -> Server {
    server.tool(tool("echo", "Returns the given message", ECHO_SCHEMA, echo).read_only())
}

async fn echo(input: EchoInput) -> String {
    input.message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_world_is_greeted() {
        assert_eq!(hello(HelloInput { name: "World".into() }).await, "Hello, World!");
    }
}
