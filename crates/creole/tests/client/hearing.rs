//! Tests of whether notifications outside of calls can be received from a server over HTTP.

use creole::client::HttpAddress;
use creole::internal::client::{Connection, HttpServer};
use creole::proto::revision::Era;
use tokio::time::timeout;

use crate::scripted::{ResponseScript, opening, serve, status, stream};
use crate::support::{LONG, open};

async fn connect(script: ResponseScript, era: Era) -> Connection {
    let (address, _) = serve(script).await;
    let target = HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap();
    open(HttpServer::new(target), era).await.unwrap()
}

#[tokio::test]
async fn a_session_without_a_stream_is_not_heard_and_who_stands_alone_asks_for_news() {
    let script: ResponseScript =
        |request| opening(request).unwrap_or_else(|| status("400 Bad", ""));
    let connection = connect(script, Era::Handshake).await;
    assert!(!*connection.notifications_available().borrow(), "its GET is refused");
    let connection = connect(script, Era::Stateless).await;
    assert!(*connection.notifications_available().borrow());
}

#[tokio::test]
async fn a_stream_is_heard_while_it_is_open_and_each_opening_is_told() {
    let script: ResponseScript = |request| match request.header("last-event-id") {
        // Ends immediately, and is resumed.
        None if request.is_get() => stream("retry: 10\nid: a1\ndata:\n\n"),
        Some(_) => stream(": here\n\n: stay\n\n"),
        _ => opening(request).unwrap_or_else(|| status("400 Bad", "")),
    };
    let connection = connect(script, Era::Handshake).await;
    let mut hearing = connection.notifications_available();
    let mut told = Vec::new();
    while told.last() != Some(&true) || told.len() < 2 {
        told.push(*hearing.borrow_and_update());
        // Nothing changes after the stream that stays open.
        if timeout(LONG / 10, hearing.changed()).await.is_err() {
            break;
        }
    }
    assert_eq!(told.last(), Some(&true), "{told:?}");
    assert!(told.contains(&false), "{told:?}");
}
