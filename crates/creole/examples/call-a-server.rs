//! Lists the tools of a server of any revision, given its URL or the command that starts it, and calls one of them:
//! `call-a-server https://example.com/mcp` or `call-a-server some-server --its-option`.

#![allow(clippy::print_stdout, reason = "this is the output of the example")]

use creole::client::{Address, ClientBuilder, HttpAddress, Program};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let command = words.next().ok_or("which server?")?;
    let address = match command.to_str().filter(|text| text.starts_with("http")) {
        Some(url) => Address::Http(HttpAddress::new("server", url)?),
        None => Address::Child(Program::new("server", command).args(words)),
    };
    let builder = ClientBuilder::new("example", "1").on_form(|input_request| async move {
        println!("declined: {input_request:?}");
        None
    });
    let client = builder.connect(address).await?;
    let greeting = client.greeting();
    println!("{} speaks {}", greeting.server_info.identity.name, greeting.version);
    for tool in client.list_tools().await? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let result = client.call_tool("add", &json!({"a": 1, "b": 2})).await;
    match result {
        Ok(result) => println!("1 + 2: {}", result.text()),
        Err(fault) => println!("it does not add: {fault}"),
    }
    client.close().await;
    Ok(())
}
