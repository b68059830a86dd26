//! The endpoint of the library `creole` with many tools: `cargo xtask bench http` asks it for its
//! list, and calls one of them.
//!
//! `--tools N` lists N tools on one page; without it there is one, `echo`. Other arguments are
//! ignored.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::Ipv4Addr;

use creole::transport::http::{Endpoint, Settings};
use creole::{Server, Tool};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// More than the benchmark opens.
const SESSIONS: usize = 100_000;

// The arguments of every tool; a documentation comment would be a part of the list.
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
    // One thread, as `creole serve` has.
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
    let settings = Settings { max_sessions: SESSIONS, ..Settings::default() };
    let endpoint = Endpoint::new(server.start(), settings);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    writeln!(io::stderr(), "creole: `creole-many-tools` listens on http://{address}/mcp")?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let endpoint = endpoint.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let endpoint = endpoint.clone();
                async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            // A client that goes away is no matter here.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
