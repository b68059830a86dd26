//! A tool that elicits forms before it acts: the same function for clients of every revision.

use creole::{Context, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

/// What to order.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The name of the dish.
    dish: String,
}

/// Where the dish goes.
#[derive(Deserialize, JsonSchema)]
struct Seat {
    /// Your table
    #[schemars(range(min = 1))]
    table: u8,
}

async fn order(order: Order, context: Context) -> Result<String, ToolError> {
    // Without a response the function ends here. It is run again when there is one.
    let seat: Seat = context.elicit(&format!("Where shall the {} go?", order.dish))?;
    Ok(format!("{}: table {}", order.dish, seat.table))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let order = Tool::new("order", "Orders a dish, after asking for the table", order);
    Server::new("kitchen").tool(order).serve_stdio().await
}
