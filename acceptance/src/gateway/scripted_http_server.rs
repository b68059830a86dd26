//! An HTTP server that a test controls, as an upstream of a gateway.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::ScriptedReplies;

/// How long a test waits: only a gateway that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server with a port. It sends the replies of a [`ScriptedReplies`] without the test. All other requests become a
/// [`PendingRequest`].
pub struct ScriptedHttpServer {
    port: u16,
    #[cfg(target_os = "linux")]
    listener: TcpListener,
    visits: Receiver<PendingRequest>,
    door: Arc<Mutex<AccessControl>>,
}

/// The required credentials, and the requests so far.
#[derive(Default)]
struct AccessControl {
    wanted: Option<String>,
    shown: Vec<(String, Option<String>)>,
}

impl AccessControl {
    /// Whether a request is authorised.
    fn lets_in(&mut self, method: &str, fields: &Fields) -> bool {
        let shown = fields.iter().find(|(name, _)| name == "authorization");
        let shown = shown.map(|(_, value)| value.clone());
        self.shown.push((method.to_owned(), shown.clone()));
        self.wanted.is_none() || shown == self.wanted
    }
}

/// Header fields, names in lower case.
type Fields = Vec<(String, String)>;

/// A request that the test must answer.
pub struct PendingRequest {
    /// Its method, such as `POST`.
    pub method: String,
    /// The message in it.
    pub message: Value,
    /// Its header fields, names in lower case.
    pub fields: Fields,
    stream: TcpStream,
}

impl ScriptedHttpServer {
    /// Accepts requests. It offers no streams besides responses.
    #[must_use]
    pub fn new(show: ScriptedReplies) -> Self {
        Self::start(show, &["POST"])
    }

    /// Accepts requests, including those for a stream.
    #[must_use]
    pub fn with_streams(show: ScriptedReplies) -> Self {
        Self::start(show, &["POST", "GET"])
    }

    /// Accepts requests, including those that open a stream or end a session.
    #[must_use]
    pub fn with_sessions(show: ScriptedReplies) -> Self {
        Self::start(show, &["POST", "GET", "DELETE"])
    }

    fn start(show: ScriptedReplies, methods: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its port").port();
        #[cfg(target_os = "linux")]
        let kept = listener.try_clone().expect("a second handle");
        let (sender, requests) = channel();
        let sessions = Arc::new(AtomicU64::new(0));
        let access = Arc::<Mutex<AccessControl>>::default();
        let guarded = Arc::clone(&access);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (show, sender, sessions) =
                    (show.clone(), sender.clone(), Arc::clone(&sessions));
                let access = Arc::clone(&guarded);
                thread::spawn(move || receive(stream, methods, &show, &sender, &sessions, &access));
            }
        });
        Self {
            port,
            #[cfg(target_os = "linux")]
            listener: kept,
            visits: requests,
            door: access,
        }
    }

    /// From now on, responds with 401 to requests without this `Authorization` header.
    pub fn wants(&self, authorization: &str) {
        self.door().wanted = Some(authorization.to_owned());
    }

    /// The method of each request so far, and its `Authorization` header.
    #[must_use]
    pub fn shown(&self) -> Vec<(String, Option<String>)> {
        self.door().shown.clone()
    }

    fn door(&self) -> MutexGuard<'_, AccessControl> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the listener: no client can connect any more. Pending requests are [cut](PendingRequest::cut) one by one.
    #[cfg(target_os = "linux")]
    pub fn cut(&self) {
        crate::drop_packets::cut(&self.listener);
    }

    /// Drops all requests on connections that are opened from now on.
    #[cfg(target_os = "linux")]
    pub fn starve(&self) {
        crate::drop_packets::starve(&self.listener);
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next request for the test.
    #[track_caller]
    pub fn next(&self) -> PendingRequest {
        match self.visits.recv_timeout(PATIENCE) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => panic!("no request arrived"),
            Err(RecvTimeoutError::Disconnected) => panic!("the server has ended"),
        }
    }

    /// The next request for the test, which must have this method.
    #[track_caller]
    pub fn hears(&self, method: &str) -> PendingRequest {
        let request = self.next();
        assert_eq!(request.message["method"], method, "{}", request.message);
        request
    }

    /// The next request, if one arrives in time.
    pub fn within(&self, wait: Duration) -> Option<PendingRequest> {
        self.visits.recv_timeout(wait).ok()
    }
}

impl PendingRequest {
    /// Cuts its connection: the other side receives nothing any more, not even the end.
    #[cfg(target_os = "linux")]
    pub fn cut(&self) {
        crate::drop_packets::cut(&self.stream);
    }

    /// Whether the other side closes the connection within this time.
    pub fn is_left(&mut self, wait: Duration) -> bool {
        self.stream.set_read_timeout(Some(wait)).is_ok_and(|()| {
            let read = self.stream.read(&mut [0]);
            read.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |read| read == 0)
        })
    }

    /// A header field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(listed, _)| listed == name).map(|(_, value)| value.as_str())
    }

    /// Responds with a status, further header lines, each with its line end, and a body.
    pub fn respond(&mut self, status: &str, head: &str, body: &str) {
        respond(&mut self.stream, status, head, body);
    }

    /// Responds with a text, as a tool does.
    pub fn text(&mut self, text: &str) {
        self.result(json!({"content": [{"type": "text", "text": text}]}));
    }

    /// Responds with a result.
    pub fn result(&mut self, result: Value) {
        let response = json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result});
        self.respond("200 OK", "Content-Type: application/json\r\n", &response.to_string());
    }

    /// Responds with an error.
    pub fn error(&mut self, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        let response = json!({"jsonrpc": "2.0", "id": self.message["id"], "error": error});
        let head = "Content-Type: application/json\r\n";
        self.respond("400 Bad Request", head, &response.to_string());
    }

    /// Begins a stream of events.
    pub fn stream(&mut self) {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        // If the client has left, the test notices missing requests.
        _ = self.stream.write_all(head.as_bytes());
    }

    /// Sends a message on the stream.
    pub fn event(&mut self, message: &Value) {
        _ = self.stream.write_all(format!("data: {message}\n\n").as_bytes());
    }

    /// Sends a message on the stream as an event with this id, from which the stream can be resumed.
    pub fn event_with_id(&mut self, id: &str, message: &Value) {
        _ = self.stream.write_all(format!("id: {id}\ndata: {message}\n\n").as_bytes());
    }
}

fn respond(stream: &mut TcpStream, status: &str, head: &str, body: &str) {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    _ = stream.write_all(text.as_bytes());
}

/// Reads one request and answers it, or passes it to the test.
fn receive(
    mut stream: TcpStream,
    methods: &[&str],
    show: &ScriptedReplies,
    sender: &Sender<PendingRequest>,
    sessions: &AtomicU64,
    access: &Mutex<AccessControl>,
) {
    let Some((method, fields, message)) = read(&stream) else { return };
    if !access.lock().unwrap_or_else(PoisonError::into_inner).lets_in(&method, &fields) {
        return respond(&mut stream, "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "");
    }
    if !methods.contains(&&*method) {
        return respond(&mut stream, "405 Method Not Allowed", "", "");
    }
    match show.answer(&message) {
        Some(Value::Null) => respond(&mut stream, "202 Accepted", "", ""),
        Some(response) if response.get("error").is_some() => {
            let head = "Content-Type: application/json\r\n";
            respond(&mut stream, "400 Bad Request", head, &response.to_string());
        }
        Some(response) => {
            let session = sessions.fetch_add(1, Ordering::Relaxed);
            let head = match message["method"] == "initialize" {
                true => {
                    format!(
                        "Content-Type: application/json\r\nMcp-Session-Id: session-{session}\r\n"
                    )
                }
                false => "Content-Type: application/json\r\n".to_owned(),
            };
            respond(&mut stream, "200 OK", &head, &response.to_string());
        }
        // The test may be over.
        None => _ = sender.send(PendingRequest { method, message, fields, stream }),
    }
}

fn read(stream: &TcpStream) -> Option<(String, Fields, Value)> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let method = line.split(' ').next()?.to_owned();
    let mut fields = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = fields.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((method, fields, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
