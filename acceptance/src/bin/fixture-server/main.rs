//! A server of ours with the tools of the servers in `acceptance/peers/`, which answers every handshake with one
//! revision: `fixture-server REVISION [--http]`. It stands for servers of revisions that no SDK stops at.

mod tools;

use std::io;

use creole::Server;
use creole::proto::dialect::{VersionAnswer, builtin};
use creole::proto::http::guard::Guard;
use creole::transport::http::{Drain, Endpoint, Limits, Listener, Method, Route, Router, Settings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let revision = words.next().ok_or_else(|| io::Error::other("which revision?"))?;
    let mut dialect = builtin("spec").ok_or_else(|| io::Error::other("no dialect"))?;
    (dialect.stateless, dialect.version) = (false, VersionAnswer::Fixed(revision.into()));
    let server = tools::add(Server::new("fixture").dialect(dialect));
    match words.next().as_deref() {
        Some("--http") => serve_http(server).await,
        _ => server.serve_stdio().await,
    }
}

#[expect(clippy::print_stderr, reason = "this is how the tests learn where it listens")]
async fn serve_http(server: Server) -> io::Result<()> {
    let endpoint = Endpoint::new(server.start(), Settings::default());
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), Limits::default()).await?;
    let address = listener.address()?;
    eprintln!("it listens on http://{address}/mcp");
    let methods = [Method::GET, Method::POST, Method::DELETE];
    let router = Router::new(Guard::loopback(), Drain::new());
    listener.serve(router.route(Route::new("/mcp", &methods, endpoint))).await;
    Ok(())
}
