//! Calls that are begun in one turn of a thread go out together, and each is carried by whoever waits for it.

use std::sync::{Arc, Mutex};

use creole::BoxFuture;
use creole::client::{Connection, Exchange, Inbox, LineServer, Transport, TransportHandle};
use creole::proto::client::{FrameKind, OutgoingFrame};
use creole::proto::http::request_headers::HeaderField;
use creole::proto::revision::Era;
use creole::stream::{MemoryConnection, memory_pair};
use serde_json::{Value, json};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::support::{LONG, open, text, tool};

/// What a server says to a message: it shakes hands, and repeats the argument of every call.
fn answer(message: &[u8]) -> Option<String> {
    let message: Value = serde_json::from_slice(message).unwrap();
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"},
        }),
        "tools/call" => {
            let said = &message["params"]["arguments"]["say"];
            json!({"content": [{"type": "text", "text": said}]})
        }
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

type EventLog = Arc<Mutex<Vec<&'static str>>>;

/// A way that leaves requests to those who wait for their answers.
struct DeferredTransport {
    log: EventLog,
    inbox: Option<Inbox>,
}

impl Transport for DeferredTransport {
    fn name(&self) -> &str {
        "x"
    }

    fn connect(self: Box<Self>, inbox: Inbox) -> Arc<dyn TransportHandle> {
        Arc::new(Self { inbox: Some(inbox), ..*self })
    }
}

impl TransportHandle for DeferredTransport {
    fn send(&self, frame: OutgoingFrame<'_>, _: Vec<HeaderField>) -> Option<Exchange> {
        let FrameKind::Request(call) = frame.kind else { return None };
        let (log, inbox) = (Arc::clone(&self.log), self.inbox.clone()?);
        let answer = answer(frame.text)?;
        Some(Box::pin(async move {
            log.lock().unwrap().push("sent");
            yield_now().await;
            inbox.on_message(answer.as_bytes(), Some(call));
        }))
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

async fn leaving() -> (Connection, EventLog) {
    let log = EventLog::default();
    let way = DeferredTransport { log: Arc::clone(&log), inbox: None };
    let connection = open(way, Era::Handshake).await.unwrap();
    log.lock().unwrap().clear();
    (connection, log)
}

/// Makes calls, each in a task of its own, which notes that it was begun.
async fn call_all(connection: &Connection, log: &EventLog, count: usize) {
    let calls = (0..count).map(|number| {
        let (connection, log) = (connection.clone(), Arc::clone(log));
        tokio::spawn(async move {
            let said = number.to_string();
            let mut calling = connection.start_call(tool("t", json!({"say": said})));
            log.lock().unwrap().push("begun");
            assert_eq!(text(calling.outcome(drop).await), said);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        timeout(LONG, call).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn calls_of_one_turn_are_all_begun_before_any_is_sent() {
    let (connection, log) = leaving().await;
    call_all(&connection, &log, 3).await;
    assert_eq!(*log.lock().unwrap(), ["begun", "begun", "begun", "sent", "sent", "sent"]);
    assert_eq!(connection.in_flight(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_carried_by_those_who_wait_on_any_thread() {
    let (connection, log) = leaving().await;
    call_all(&connection, &log, 100).await;
    assert_eq!(log.lock().unwrap().len(), 200);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_never_sent() {
    let (connection, log) = leaving().await;
    drop(connection.start_call(tool("t", json!({"say": "no"}))));
    call_all(&connection, &log, 1).await;
    assert_eq!(*log.lock().unwrap(), ["begun", "sent"]);
}

/// A connection by lines, and the server's end of it.
async fn lines() -> (Connection, MemoryConnection) {
    let (ours, mut theirs) = memory_pair();
    let (input, output) = ours.split();
    let opening = tokio::spawn(open(LineServer::new("x", input, output), Era::Handshake));
    serve(&mut theirs, 1).await;
    let connection = opening.await.unwrap().unwrap();
    assert_eq!(serve(&mut theirs, 1).await, 1, "that it is initialized");
    (connection, theirs)
}

/// Answers what comes until there were that many messages; tells by how many writes they came.
async fn serve(end: &mut MemoryConnection, mut messages: usize) -> usize {
    let mut writes = 0;
    while messages > 0 {
        let chunk = timeout(LONG, end.receive()).await.unwrap().unwrap();
        writes += 1;
        for line in chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            messages -= 1;
            if let Some(answer) = answer(line) {
                end.send(format!("{answer}\n").as_bytes()).await.unwrap();
            }
        }
    }
    writes
}

#[tokio::test]
async fn lines_of_one_turn_are_written_at_once() {
    let (connection, mut server) = lines().await;
    let log = EventLog::default();
    let ((), writes) = tokio::join!(call_all(&connection, &log, 20), serve(&mut server, 20));
    assert_eq!(writes, 1);
}

#[tokio::test]
async fn what_was_said_last_is_written_before_the_end() {
    let (connection, mut server) = lines().await;
    drop(connection.start_call(tool("t", json!({"say": "never mind"}))));
    connection.close().await;
    let last = timeout(LONG, server.receive()).await.unwrap().unwrap();
    let last = String::from_utf8(last).unwrap();
    assert!(last.contains("never mind") && last.contains("notifications/cancelled"), "{last}");
    assert_eq!(timeout(LONG, server.receive()).await.unwrap(), None);
}
