//! The library `creole` with many tools, on the listener of `creole serve`. `cargo xtask bench http` fetches its list
//! and calls one of the tools.
//!
//! `--tools N` lists N tools on one page; without it the only tool is `echo`. Other arguments are ignored.

use std::io::{self, Write};
use std::net::Ipv4Addr;

use creole::serve::http::{
    Drain, EndpointSettings, HttpLimits, Listener, McpEndpoint, Method, OriginGuard, Route, Router,
};
use creole::{Server, Tool};
use tokio::runtime::Builder;

/// More than the benchmark opens.
const SESSIONS: usize = 100_000;

// The arguments of every tool. This is not a doc comment, because that would become a part of the list.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct EchoArguments {
    message: String,
}

async fn echo(arguments: EchoArguments) -> String {
    arguments.message
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args();
    let _ = arguments.find(|argument| argument == "--tools");
    let count = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    // One thread, like `creole serve`.
    Builder::new_current_thread().enable_all().build()?.block_on(serve(server(count)))
}

fn server(count: usize) -> Server {
    let tool = |name: &str| Tool::new(name, "Answers with the message it was given", echo);
    let server = Server::new("creole-many-tools").page_size(count.max(1));
    if count == 0 {
        return server.tool(tool("echo"));
    }
    (0..count).fold(server, |server, number| server.tool(tool(&format!("tool_{number:04}"))))
}

async fn serve(server: Server) -> io::Result<()> {
    let mut settings = EndpointSettings::default();
    settings.max_sessions = SESSIONS;
    let endpoint = McpEndpoint::new(server.start(), settings);
    let methods = [Method::GET, Method::POST, Method::DELETE];
    let router = Router::new(OriginGuard::loopback(), Drain::new());
    let router = router.route(Route::new("/mcp", &methods, endpoint));
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), HttpLimits::default()).await?;
    let address = listener.address()?;
    writeln!(io::stderr(), "creole: `creole-many-tools` listens on http://{address}/mcp")?;
    listener.serve(router).await;
    Ok(())
}
