//! The pack `hello`: one tool that greets.

use creole::{Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Hello {
    /// Name to greet
    name: String,
}

/// Adds the pack.
pub(crate) fn add(server: Server) -> Server {
    server.tool(Tool::new("hello", "Returns a greeting message", hello))
}

async fn hello(whom: Hello) -> String {
    format!("Hello, {}!", whom.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_schema_is_the_plain_one() {
        let schema: Value = creole::tool::schema_of::<Hello>().decode().unwrap();
        let expected = json!({
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Name to greet"}},
            "required": ["name"],
            "additionalProperties": false,
        });
        assert_eq!(schema, expected);
    }

    #[tokio::test]
    async fn the_world_is_greeted() {
        assert_eq!(hello(Hello { name: "World".into() }).await, "Hello, World!");
    }
}
