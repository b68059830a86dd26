//! A server with a port that speaks HTTP+SSE, the transport of 2024-11-05, and does what a test says.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::ScriptedReplies;

/// How long a test waits for anything: only a gateway that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The streams that are open, by number.
type Streams = Arc<Mutex<HashMap<usize, TcpStream>>>;

/// A server whose answers all come on the stream that a client opened first. What a [`ScriptedReplies`] answers it answers by
/// itself, all else is a [`SseServerMessage`].
pub struct ScriptedSseServer {
    port: u16,
    messages: Receiver<SseServerMessage>,
}

/// A message that the test has to answer.
pub struct SseServerMessage {
    /// The stream on which its answer belongs.
    pub stream: usize,
    /// The message.
    pub message: Value,
    streams: Streams,
}

impl ScriptedSseServer {
    /// Waits for clients; each stream that one opens is a session.
    #[must_use]
    pub fn new(show: ScriptedReplies) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let (tells, messages) = channel();
        let streams = Streams::default();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let (show, tells, streams) = (show.clone(), tells.clone(), Arc::clone(&streams));
                thread::spawn(move || receive(number, stream, &show, &tells, &streams));
            }
        });
        Self { port, messages }
    }

    /// Where its streams are.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/sse", self.port)
    }

    /// The next message that the test has to answer.
    #[track_caller]
    pub fn next(&self) -> SseServerMessage {
        self.messages.recv_timeout(PATIENCE).expect("nobody sent anything")
    }

    /// The next message that the test has to answer, which must have this method.
    #[track_caller]
    pub fn hears(&self, method: &str) -> SseServerMessage {
        let message = self.next();
        assert_eq!(message.message["method"], method, "{}", message.message);
        message
    }
}

impl SseServerMessage {
    /// Asks on its stream.
    pub fn asks(&self, id: Value, method: &str, params: Value) {
        let id = &id;
        self.says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Answers with a text, as a tool does.
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
    // Who left shows itself by what it does not ask.
    _ = stream.write_all(format!("event: message\ndata: {message}\n\n").as_bytes());
}

/// Opens a stream, or takes a message; to whoever knows only the newer transport, it is a stranger.
fn receive(
    number: usize,
    mut stream: TcpStream,
    show: &ScriptedReplies,
    tells: &Sender<SseServerMessage>,
    streams: &Streams,
) {
    let Some((place, message)) = read(&stream) else { return };
    if place == "GET /sse" {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        let endpoint = format!("{head}event: endpoint\ndata: /message/{number}\n\n");
        // Nobody is told of a stream on which nothing can be said yet.
        let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
        _ = stream.write_all(endpoint.as_bytes());
        streams.insert(number, stream);
        return;
    }
    let session = place.strip_prefix("POST /message/").and_then(|number| number.parse().ok());
    let status = if session.is_some() { "202 Accepted" } else { "404 Not Found" };
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    _ = stream.write_all(text.as_bytes());
    let Some(session) = session else { return };
    match show.answer(&message) {
        Some(Value::Null) => {}
        Some(answer) => say(streams, session, &answer),
        // Nobody who tests any more has nothing to answer.
        None => {
            _ = tells.send(SseServerMessage {
                stream: session,
                message,
                streams: Arc::clone(streams),
            });
        }
    }
}

/// What a request is for, and the message in it.
fn read(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let place = line.rsplit_once(' ')?.0.to_owned();
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
    Some((place, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
