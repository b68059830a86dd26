//! A server for HTTP+SSE, the transport of 2024-11-05, that a test controls.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::ScriptedReplies;

/// How long a test waits: only a gateway that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The open streams by number.
type Streams = Arc<Mutex<HashMap<usize, TcpStream>>>;

/// A server whose responses all come on the stream that a client opened first. It sends the replies of a
/// [`ScriptedReplies`] without the test. All other messages become a [`SseServerMessage`].
pub struct ScriptedSseServer {
    port: u16,
    messages: Receiver<SseServerMessage>,
}

/// A message that the test must answer.
pub struct SseServerMessage {
    /// The stream of its response.
    pub stream: usize,
    /// The message.
    pub message: Value,
    streams: Streams,
}

impl ScriptedSseServer {
    /// Accepts clients. Each stream is a session.
    #[must_use]
    pub fn new(show: ScriptedReplies) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its port").port();
        let (sender, messages) = channel();
        let streams = Streams::default();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let (show, sender, streams) = (show.clone(), sender.clone(), Arc::clone(&streams));
                thread::spawn(move || receive(number, stream, &show, &sender, &streams));
            }
        });
        Self { port, messages }
    }

    /// The URL of its streams.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/sse", self.port)
    }

    /// The next message for the test.
    #[track_caller]
    pub fn next(&self) -> SseServerMessage {
        self.messages.recv_timeout(PATIENCE).expect("no message arrived")
    }

    /// The next message for the test, which must have this method.
    #[track_caller]
    pub fn hears(&self, method: &str) -> SseServerMessage {
        let message = self.next();
        assert_eq!(message.message["method"], method, "{}", message.message);
        message
    }
}

impl SseServerMessage {
    /// Sends a request on its stream.
    pub fn asks(&self, id: Value, method: &str, params: Value) {
        let id = &id;
        self.says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Responds with a text, as a tool does.
    pub fn text(&self, text: &str) {
        let result = json!({"content": [{"type": "text", "text": text}]});
        self.says(&json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}));
    }

    fn says(&self, message: &Value) {
        say(&self.streams, self.stream, message);
    }
}

fn say(streams: &Streams, number: usize, message: &Value) {
    let streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut stream) = streams.get(&number) else { return };
    // If the client has left, the test notices missing requests.
    _ = stream.write_all(format!("event: message\ndata: {message}\n\n").as_bytes());
}

/// Opens a stream, or receives a message. Requests of the newer transport get an error.
fn receive(
    number: usize,
    mut stream: TcpStream,
    show: &ScriptedReplies,
    sender: &Sender<SseServerMessage>,
    streams: &Streams,
) {
    let Some((location, message)) = read(&stream) else { return };
    if location == "GET /sse" {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let endpoint = format!("{head}event: endpoint\ndata: /message/{number}\n\n");
        // A stream is registered only when it is writable.
        let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
        _ = stream.write_all(endpoint.as_bytes());
        streams.insert(number, stream);
        return;
    }
    let session = location.strip_prefix("POST /message/").and_then(|number| number.parse().ok());
    let status = if session.is_some() { "202 Accepted" } else { "404 Not Found" };
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    _ = stream.write_all(text.as_bytes());
    let Some(session) = session else { return };
    match show.answer(&message) {
        Some(Value::Null) => {}
        Some(response) => say(streams, session, &response),
        // The test may be over.
        None => {
            _ = sender.send(SseServerMessage {
                stream: session,
                message,
                streams: Arc::clone(streams),
            });
        }
    }
}

/// The purpose of a request, and the message in it.
fn read(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let location = line.rsplit_once(' ')?.0.to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((location, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
