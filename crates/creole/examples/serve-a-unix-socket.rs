//! Many clients at once over a Unix socket: a transport is only a pair of byte streams.
//!
//! `cargo run --example serve-a-unix-socket -- creole.sock`, then `nc -U creole.sock`.

use std::os::fd::OwnedFd;

use creole::stream::stdio::{Input, Output};
use creole::{Server, Tool};
use tokio::net::UnixListener;

/// Words.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Words {
    /// The words to count.
    words: Vec<String>,
}

async fn count(words: Words) -> String {
    words.words.len().to_string()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "creole.sock".to_owned());
    let service = Server::new("counter").tool(Tool::new("count", "Counts words", count)).start();
    let listener = UnixListener::bind(path)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let near = OwnedFd::from(stream.into_std()?);
        let (input, output) = (Input::from_fd(near.try_clone()?)?, Output::from_fd(near)?);
        let service = service.clone();
        tokio::spawn(async move { service.serve(input, output).await });
    }
}
