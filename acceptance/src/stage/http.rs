//! The stage `http`: the real binary over loopback, with a client of Streamable HTTP.
//!
//! Each line of the client is one POST with the header fields that its body requires. The messages in documents, in
//! streams and on the session's own stream become lines in the order of their arrival.

mod exchange;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole_test_wait::blocking::delay;
use serde_json::Value;

use self::exchange::{ClientLineKind, Exchange};
use super::Stage;
use crate::http::{ListeningServer, Request, required_headers};

/// The name in a `Skip` header.
pub const NAME: &str = "http";

/// How long a message may take to be accepted, or to be answered if no user code runs for it.
const ACCEPTANCE: Duration = Duration::from_secs(10);

/// How long the next line waits for the response of an earlier call, which may be slow: a pipe keeps the order of
/// lines, and requests of one client that overtake each other would prove nothing.
const PRECEDENCE: Duration = Duration::from_millis(30);

/// The maximum real wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The first revision whose clients repeat the revision in a header.
const REPEATED_SINCE: &str = "2025-06-18";

/// A server with a port, and a client with its session.
pub struct HttpStage {
    server: ListeningServer,
    /// The incomplete line.
    line: Vec<u8>,
    client: Arc<Client>,
    output: Receiver<String>,
    open: Vec<Exchange>,
}

/// The state that all connections of the client share.
struct Client {
    heard: Mutex<Sender<String>>,
    session: Mutex<Session>,
    notes: Mutex<String>,
}

/// The result of a handshake.
#[derive(Clone, Default)]
struct Session {
    id: Option<String>,
    version: Option<String>,
}

impl HttpStage {
    /// Starts `creole serve` with these arguments and a port that the system chooses.
    pub fn serve(words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> =
            words.iter().map(String::as_str).filter(|word| *word != "--stdio").collect();
        let (sender, output) = channel();
        let client = Client {
            heard: Mutex::new(sender),
            session: Mutex::default(),
            notes: Mutex::default(),
        };
        Ok(Self {
            server: ListeningServer::start(&words)?,
            line: Vec::new(),
            client: Arc::new(client),
            output,
            open: Vec::new(),
        })
    }

    /// Sends one line, which is one message or an attempt at one.
    fn message(&mut self, line: Vec<u8>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            // An empty line exists only on a pipe: there is nothing to post.
            return;
        }
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        if message["method"] == "notifications/cancelled" && self.cancel(&message) {
            return;
        }
        let kind = ClientLineKind::of(&message);
        let request = self.request(line, &message, kind);
        let wait = if may_take_its_time(&message) { PRECEDENCE } else { ACCEPTANCE };
        self.begin(&request, kind, &message["id"], wait);
        if kind == ClientLineKind::Initialized {
            self.open_stream();
        }
    }

    /// The POST for a line.
    fn request(&self, line: Vec<u8>, message: &Value, kind: ClientLineKind) -> Request {
        let request = Request::post(line);
        let session = locked(&self.client.session).clone();
        match kind {
            ClientLineKind::Alone | ClientLineKind::Listen => {
                return request.with_all(required_headers::fields(message));
            }
            ClientLineKind::Initialize => return request,
            _ => {}
        }
        let Some(id) = session.id else { return request };
        let request = request.with("Mcp-Session-Id", &id);
        match session.version.filter(|version| version.as_str() >= REPEATED_SINCE) {
            Some(version) => request.with("MCP-Protocol-Version", &version),
            None => request,
        }
    }

    /// Cancels in the way of HTTP. Returns true when there is nothing to post. A stateless request is cancelled by
    /// closing its response, and without a session no other request could be meant.
    fn cancel(&mut self, message: &Value) -> bool {
        let id = &message["params"]["requestId"];
        let alone = self.open.iter().position(|open| open.is(id) && open.kind.is_alone());
        if let Some(offset) = alone {
            self.open.remove(offset).end();
            return true;
        }
        locked(&self.client.session).id.is_none()
    }

    /// Opens the stream for messages that belong to no request, if there is a session that can have one.
    fn open_stream(&mut self) {
        let id = locked(&self.client.session).id.clone();
        if let Some(id) = id {
            self.begin(&Request::get(&id), ClientLineKind::Stream, &Value::Null, ACCEPTANCE);
        }
    }

    fn begin(&mut self, request: &Request, kind: ClientLineKind, id: &Value, wait: Duration) {
        self.open.retain(Exchange::is_open);
        match Exchange::begin(&self.client, self.server.address(), request, kind, id) {
            Ok(exchange) => {
                exchange.wait(wait);
                self.open.push(exchange);
            }
            Err(error) => self.client.hear(format!("({error})")),
        }
    }

    /// Deletes the session, if there is one.
    fn delete(&self) -> Result<(), String> {
        let Some(id) = locked(&self.client.session).id.take() else { return Ok(()) };
        let deleted = Request::delete(&id).send(self.server.address())?;
        match deleted.head.status {
            200 | 204 => Ok(()),
            status => Err(format!("DELETE is answered with {status}: {}", deleted.text())),
        }
    }
}

impl Stage for HttpStage {
    fn send(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    self.message(line);
                }
                byte => self.line.push(*byte),
            }
        }
    }

    fn receive(&mut self, wait: Duration) -> Option<String> {
        self.output.recv_timeout(wait).ok()
    }

    fn advance(&mut self, by: Duration) -> bool {
        let short = by < LONGEST_WAIT;
        if short {
            delay(by);
        }
        short
    }

    fn close(&mut self) -> Result<(), String> {
        let line = std::mem::take(&mut self.line);
        self.message(line);
        let (listening, others) =
            self.open.drain(..).partition(|open| open.kind == ClientLineKind::Listen);
        let (listening, others): (Vec<Exchange>, Vec<Exchange>) = (listening, others);
        others.iter().for_each(Exchange::end);
        self.delete()?;
        // The server ends open streams when it stops.
        let stopped = self.server.stop();
        listening.iter().for_each(Exchange::wait_for_end);
        stopped
    }

    fn notes(&mut self) -> String {
        format!("{}{}", locked(&self.client.notes), self.server.log())
    }
}

/// Whether user code runs before the message, or one of a batch, is answered.
fn may_take_its_time(message: &Value) -> bool {
    let runs = |message: &Value| {
        let method = message["method"].as_str().unwrap_or_default();
        ["completion/complete", "prompts/get", "resources/read", "tools/call"].contains(&method)
    };
    runs(message) || message.as_array().is_some_and(|batch| batch.iter().any(runs))
}

impl Client {
    /// Forwards a message of the server, or the error in its place.
    fn hear(&self, line: String) {
        // The stage may be gone.
        let _ = locked(&self.heard).send(line);
    }

    fn note(&self, note: &str) {
        *locked(&self.notes) += &format!("{note}\n");
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
