//! A tool that asks before it acts: the same function for clients of every revision.

use creole::input::{ElicitAction, form};
use creole::{Context, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// What to order.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The name of the dish.
    dish: String,
}

async fn order(order: Order, context: Context) -> Result<String, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {"table": {"type": "integer", "minimum": 1, "title": "Your table"}},
        "required": ["table"],
    });
    // Without an answer the function ends here, and is run again when there is one.
    let question = form(&format!("Where shall the {} go?", order.dish), &schema);
    let answer = context.elicit("table", question)?;
    match answer.action {
        ElicitAction::Accept => Ok(format!("{}: {:?}", order.dish, answer.content)),
        ElicitAction::Decline | ElicitAction::Cancel => {
            Err(ToolError::failed("nothing was ordered"))
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let order = Tool::new("order", "Orders a dish, after asking for the table", order);
    Server::new("kitchen").tool(order).serve_stdio().await
}
