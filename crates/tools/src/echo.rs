//! The pack `echo`: one tool that says what it hears.

use creole::{Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Echo {
    /// The text to return
    message: String,
}

/// Adds the pack.
pub(crate) fn add(server: Server) -> Server {
    server.tool(Tool::new("echo", "Returns the message it is given", echo).read_only())
}

async fn echo(heard: Echo) -> String {
    heard.message
}
