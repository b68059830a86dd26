//! A server of both eras that records what it executes: `recording-server ADDRESS FILE` adds a line to the file for each
//! execution of a call, before it responds. The address may be `stdio`.
//!
//! Each tool takes a `nonce`, and the milliseconds that it works. It returns the nonce, and what the client answered.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use creole::schemars::{self, JsonSchema};
use creole::serve::http::{
    Drain, HttpLimits, Listener, McpEndpoint, Method, OriginGuard, Route, Router,
};
use creole::{Context, Server, TaskSupport, Tool, ToolError};
use creole_test_wait::delay;
use serde::Deserialize;

/// One call.
#[derive(Deserialize, JsonSchema)]
struct Work {
    nonce: String,
    #[serde(default)]
    milliseconds: u64,
}

/// The answer of the client.
#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
}

type Records = Arc<Mutex<File>>;

/// Works, and records that it did.
async fn run(records: Records, work: Work) -> io::Result<String> {
    delay(Duration::from_millis(work.milliseconds)).await;
    record(&records, &work.nonce)?;
    Ok(work.nonce)
}

/// Asks the client for a name before it works.
async fn ask(records: Records, work: Work, context: Context) -> Result<String, ToolError> {
    let person: Person = context.elicit(&format!("Who answers {}?", work.nonce))?;
    delay(Duration::from_millis(work.milliseconds)).await;
    record(&records, &work.nonce)?;
    Ok(format!("{} by {}", work.nonce, person.name))
}

fn record(records: &Records, nonce: &str) -> io::Result<()> {
    // One write, so that a line is whole when it is read.
    records
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .write_all(format!("{nonce}\n").as_bytes())
}

fn server(records: &Records) -> Server {
    let repeatable = |tool: Tool| tool.hints(|hints| hints.idempotent_hint = Some(true));
    let run = |name: &str| Tool::with_state(name, "Works", records, run);
    let ask = |name: &str| Tool::with_state(name, "Asks, and works", records, ask);
    Server::new("recorder")
        .tool(run("run"))
        .tool(repeatable(run("run_again")))
        .tool(ask("ask"))
        .tool(repeatable(ask("ask_again")))
        .tool(run("job").task(TaskSupport::Optional))
}

#[expect(clippy::print_stderr, reason = "the test reads the address there")]
#[tokio::main]
async fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (address, file) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let file = OpenOptions::new().create(true).append(true).open(file)?;
    let server = server(&Arc::new(Mutex::new(file)));
    if address == "stdio" {
        return server.serve_stdio().await;
    }
    let address: SocketAddr = address.parse().map_err(io::Error::other)?;
    let listener = Listener::bind(address, HttpLimits::default()).await?;
    let mut guard = OriginGuard::loopback();
    guard.allow_address(address.ip());
    let methods = [Method::GET, Method::POST, Method::DELETE];
    let route = Route::new("/mcp", &methods, McpEndpoint::from(server.start()));
    eprintln!("recorder listens on http://{}/mcp", listener.address()?);
    McpEndpoint::serve(listener, Router::new(guard, Drain::new()).route(route)).await;
    Ok(())
}
