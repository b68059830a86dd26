//! One request of the stage's client and its response, read by a thread.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use creole_test_wait::blocking::within;
use serde_json::Value;

use super::{Client, locked};
use crate::http::client::ConnectionCloser;
use crate::http::{Connection, Events, Head, Request, required_headers};

/// How long the last messages of an ended server may be in transit.
const FAREWELL: Duration = Duration::from_secs(2);

/// The kind of a client line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientLineKind {
    /// A stateless request.
    Alone,
    /// A stateless request with a long-lived response.
    Listen,
    /// The request that opens a session.
    Initialize,
    /// Any other message that gets a response, including one that can only be rejected.
    Request,
    /// The notification that ends the handshake.
    Initialized,
    /// Any other notification.
    Notice,
    /// The response to a request of the server.
    Answer,
    /// The session's own stream.
    Stream,
}

impl ClientLineKind {
    /// The kind of a message. Null stands for a line that is not one.
    pub(super) fn of(message: &Value) -> Self {
        let method = message["method"].as_str();
        let is_answer = message.get("result").is_some() != message.get("error").is_some();
        let claims = required_headers::claimed_version(message).is_some();
        match (method, message.get("id")) {
            (Some("subscriptions/listen"), _) if claims => Self::Listen,
            (Some(_), _) if claims => Self::Alone,
            (Some("initialize"), Some(_)) => Self::Initialize,
            (Some("notifications/initialized" | "initialized"), None) => Self::Initialized,
            (Some(_), None) => Self::Notice,
            (None, Some(_)) if is_answer => Self::Answer,
            _ => Self::Request,
        }
    }

    /// Whether such a request is cancelled by closing its response.
    pub(super) fn is_alone(self) -> bool {
        matches!(self, Self::Alone | Self::Listen)
    }
}

/// A request that was sent.
pub(super) struct Exchange {
    pub(super) kind: ClientLineKind,
    id: Value,
    ender: ConnectionCloser,
    begun: Receiver<()>,
    reading: JoinHandle<()>,
    /// Whether the client or the server has ended it.
    over: Arc<AtomicBool>,
}

impl Exchange {
    /// Sends a request and starts a thread for its response.
    pub(super) fn begin(
        client: &Arc<Client>,
        address: SocketAddr,
        request: &Request,
        kind: ClientLineKind,
        id: &Value,
    ) -> Result<Self, String> {
        let mut connection = Connection::open(address)?;
        let closer = connection.ender()?;
        connection.write(&request.bytes(address))?;
        let (sender, begun) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let (client, is_over) = (Arc::clone(client), Arc::clone(&over));
        let reading = thread::spawn(move || {
            let read = read(&client, &mut connection, kind, &sender);
            if let Err(error) = read
                && !is_over.load(Ordering::Acquire)
            {
                client.hear(format!("({error})"));
            }
            is_over.store(true, Ordering::Release);
        });
        Ok(Self { kind, id: id.clone(), ender: closer, begun, reading, over })
    }

    /// Waits for the beginning of the response, or its end if it has no content.
    pub(super) fn wait(&self, max: Duration) {
        // A response that has not begun by then is not awaited.
        let _ = self.begun.recv_timeout(max);
    }

    /// Whether it is a request of this id.
    pub(super) fn is(&self, id: &Value) -> bool {
        self.is_open() && self.id == *id
    }

    pub(super) fn is_open(&self) -> bool {
        !self.over.load(Ordering::Acquire)
    }

    /// Waits until the server has ended it.
    pub(super) fn wait_for_end(&self) {
        let _ = within(FAREWELL, || self.reading.is_finished());
    }

    /// Closes the connection.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.ender.end();
    }
}

/// Reads the response and forwards every message in it.
fn read(
    client: &Client,
    connection: &mut Connection,
    kind: ClientLineKind,
    begun: &Sender<()>,
) -> Result<(), String> {
    let head = connection.head()?;
    if kind == ClientLineKind::Initialize {
        locked(&client.session).id = head.field("mcp-session-id").map(str::to_owned);
    }
    if head.is_events() {
        // The waiting side may be gone.
        let _ = begun.send(());
        let events = Events::new(connection.body(&head)).filter(|event| !event.data.is_empty());
        events.for_each(|event| on_line(client, kind, event.data));
        return Ok(());
    }
    let mut body = String::new();
    let read = connection.body(&head).read_to_string(&mut body);
    read.map_err(|error| format!("the response breaks off: {error}"))?;
    document(client, kind, &head, body);
    let _ = begun.send(());
    Ok(())
}

/// A whole document, or nothing.
fn document(client: &Client, kind: ClientLineKind, head: &Head, body: String) {
    let status = head.status;
    match (status, kind) {
        (202, _) if body.is_empty() => {}
        (400..500, ClientLineKind::Answer) => {
            // On a pipe a response without a request is silently ignored. Here it is rejected.
            client.note(&format!("an input response was rejected with {status}: {body}"));
        }
        _ if body.starts_with(['{', '[']) => on_line(client, kind, body),
        _ => client.hear(format!("(status {status}: {body})")),
    }
}

fn on_line(client: &Client, kind: ClientLineKind, line: String) {
    if kind == ClientLineKind::Initialize {
        let initialize_result: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(version) = initialize_result["result"]["protocolVersion"].as_str() {
            locked(&client.session).version = Some(version.to_owned());
        }
    }
    client.hear(line);
}
