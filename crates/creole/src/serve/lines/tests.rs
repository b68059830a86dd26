//! A connection whose input is read on a thread: both workers together, and each without the other.

mod computing;

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use creole_test_wait::eventually;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::stream::{MemoryConnection, memory_pair};
use crate::{Context, Server, Tool};

const LONG: Duration = Duration::from_secs(10);

/// No arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Input that a test provides in pieces. Reading it blocks.
struct PieceSource(Receiver<&'static str>);

impl ByteSource for PieceSource {
    async fn read(&mut self, buffer: &mut Vec<u8>, _: usize) -> io::Result<usize> {
        let piece = self.0.recv().unwrap_or_default();
        assert_ne!(piece, "break down");
        buffer.extend_from_slice(piece.as_bytes());
        Ok(piece.len())
    }
}

/// Serves a tool that waits until it is cancelled, and signals that.
fn connect() -> (
    Sender<&'static str>,
    MemoryConnection,
    oneshot::Receiver<()>,
    JoinHandle<io::Result<EndReason>>,
) {
    let (sender, cancelled) = oneshot::channel();
    let told = Mutex::new(Some(sender));
    let wait = move |_: Nothing, context: Context| {
        let guard = DropSignal(told.lock().unwrap().take());
        async move {
            context.cancelled().await;
            drop(guard);
            "never"
        }
    };
    let service = Server::new("t").tool(Tool::new("wait", "Waits", wait)).start();
    let (line, far) = memory_pair();
    let (pieces, input) = channel();
    let served = serve(service, PieceSource(input), far.split().1, ReaderStarter::Threads);
    (pieces, line, cancelled, tokio::spawn(served))
}

/// Signals when it is dropped.
struct DropSignal(Option<oneshot::Sender<()>>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        // The receiver may have been dropped.
        let _ = self.0.take().map(|sender| sender.send(()));
    }
}

/// Waits for the tool to end. The runtime must run meanwhile: the reader may be the last owner of the connection, and
/// the runtime then drops the call.
async fn ends(cancelled: oneshot::Receiver<()>) {
    timeout(LONG, cancelled).await.unwrap().unwrap();
}

async fn receive(line: &mut MemoryConnection) -> Value {
    let bytes = timeout(LONG, line.receive()).await.unwrap().unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);
const WAIT: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}"#,
    "\n"
);
const PING: &str = concat!(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#, "\n");

#[tokio::test]
async fn a_waiting_call_delays_neither_a_ping_nor_the_end() {
    let (pieces, mut line, cancelled, served) = connect();
    pieces.send(HELLO).unwrap();
    assert_eq!(receive(&mut line).await["id"], 0);
    pieces.send(WAIT).unwrap();
    pieces.send(PING).unwrap();
    assert_eq!(receive(&mut line).await, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    drop(line);
    assert_eq!(timeout(LONG, served).await.unwrap().unwrap().unwrap(), EndReason::OutputBroken);
    ends(cancelled).await;
}

#[tokio::test]
async fn the_end_of_input_ends_the_connection() {
    let (pieces, mut line, _, served) = connect();
    pieces.send(PING.trim_end()).unwrap();
    drop(pieces);
    assert_eq!(receive(&mut line).await["id"], 2);
    assert_eq!(timeout(LONG, served).await.unwrap().unwrap().unwrap(), EndReason::InputClosed);
}

#[tokio::test]
async fn a_connection_that_is_dropped_ends_its_calls_and_its_reader() {
    let (pieces, mut line, cancelled, served) = connect();
    pieces.send(HELLO).unwrap();
    pieces.send(WAIT).unwrap();
    pieces.send(PING).unwrap();
    assert_eq!(receive(&mut line).await["id"], 0);
    assert_eq!(receive(&mut line).await["id"], 2);
    served.abort();
    assert!(served.await.unwrap_err().is_cancelled());
    ends(cancelled).await;
    // The reader notices at its next read, and drops the input.
    eventually("the reader drops the input", || pieces.send(PING).is_err()).await;
}

#[tokio::test]
async fn a_reader_that_breaks_down_ends_the_connection() {
    let (pieces, _line, _, served) = connect();
    pieces.send("break down").unwrap();
    let error = timeout(LONG, served).await.unwrap().unwrap().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
}
