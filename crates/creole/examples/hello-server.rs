//! The smallest server: one tool, on stdio, for clients of every revision.

use creole::{Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// What to say.
#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Echo {
    /// The message to repeat.
    message: String,
}

async fn echo(echo: Echo) -> String {
    echo.message
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let echo = Tool::new("echo", "Repeats a message", echo).read_only();
    Server::new("hello").tool(echo).serve_stdio().await
}
