//! An authorization server with the MCP server that it protects, which misbehave as a test wants.
//!
//! Without a misbehaviour a login succeeds. All secrets that it gives contain [`CANARY`](crate::canaries::MARK), so that a test finds them
//! wherever they leak to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use creole_test_wait::blocking::delay;
use serde_json::{Value, json};

use crate::canaries::MARK as CANARY;
use crate::gateway::ScriptedReplies;

/// The time between two bytes of a slow response.
const SLOW: Duration = Duration::from_secs(1);

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct RogueRequest {
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// Its query, without the question mark.
    pub query: String,
    /// Its `Authorization` header.
    pub authorization: Option<String>,
    /// Its `Mcp-Session-Id` header.
    pub session: Option<String>,
    /// Its body.
    pub body: String,
}

impl RogueRequest {
    /// A parameter of the query or of the form in the body, still encoded.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').chain(self.body.split('&'));
        pairs.filter_map(|pair| pair.split_once('=')).find(|pair| pair.0 == name).map(|it| it.1)
    }

    /// The MCP method in the body.
    #[must_use]
    pub fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// A response of the server.
#[derive(Clone, Debug)]
pub enum RogueResponse {
    /// A JSON document with a status.
    Json(u16, Value),
    /// A status, further header lines with their line ends, and a body.
    Text(u16, String, String),
    /// A redirect to this address.
    Redirect(String),
    /// A document of which one byte arrives each second.
    Slow,
    /// A document without an end.
    Endless,
    /// Nothing: the connection stays open.
    Nothing,
}

type Misbehaviour = dyn Fn(&RogueRequest, &str) -> Option<RogueResponse> + Send + Sync;

/// The server. It listens until the test ends.
pub struct RogueServer {
    origin: String,
    requests: Arc<Mutex<Vec<RogueRequest>>>,
}

/// What the threads of the server share.
struct Shared {
    origin: String,
    requests: Arc<Mutex<Vec<RogueRequest>>>,
    misbehaviour: Box<Misbehaviour>,
    tokens: AtomicUsize,
}

impl RogueServer {
    /// Starts a server. The function gets each request and the origin of the server. Where it returns nothing, the
    /// server behaves well.
    pub fn start(
        misbehaviour: impl Fn(&RogueRequest, &str) -> Option<RogueResponse> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its port").port();
        let origin = format!("http://127.0.0.1:{port}");
        let requests = Arc::<Mutex<Vec<RogueRequest>>>::default();
        let shared = Arc::new(Shared {
            origin: origin.clone(),
            requests: Arc::clone(&requests),
            misbehaviour: Box::new(misbehaviour),
            tokens: AtomicUsize::new(0),
        });
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(stream));
            }
        });
        Self { origin, requests }
    }

    /// Its origin, which is also the issuer.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The address of the MCP server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<RogueRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests to this path there were.
    #[must_use]
    pub fn visits(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request.path == path).count()
    }
}

/// The metadata of a well-behaved authorization server with this issuer.
fn server_metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "revocation_endpoint": format!("{issuer}/revoke"),
        "code_challenge_methods_supported": ["S256"],
        "response_types_supported": ["code"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        "authorization_response_iss_parameter_supported": true,
        "scopes_supported": ["mcp"],
    })
}

impl RogueServer {
    /// The metadata of the authorization server, with some members replaced.
    #[must_use]
    pub fn metadata(origin: &str, members: &Value) -> RogueResponse {
        let mut document = server_metadata(origin);
        for (name, value) in members.as_object().into_iter().flatten() {
            document[name] = value.clone();
        }
        RogueResponse::Json(200, document)
    }

    /// The metadata of the protected resource, with some members replaced.
    #[must_use]
    pub fn resource_metadata(origin: &str, members: &Value) -> RogueResponse {
        let mut document =
            json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]});
        for (name, value) in members.as_object().into_iter().flatten() {
            document[name] = value.clone();
        }
        RogueResponse::Json(200, document)
    }

    /// A refusal of the MCP server with this challenge.
    #[must_use]
    pub fn challenge(status: u16, challenge: &str) -> RogueResponse {
        let head = format!("WWW-Authenticate: {challenge}\r\n");
        RogueResponse::Text(status, head, String::new())
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) {
        let Some(request) = read(&stream) else { return };
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let response = (self.misbehaviour)(&request, &self.origin);
        let response = response.unwrap_or_else(|| self.behave(&request));
        // The client may have left.
        let _ = write(&mut stream, response);
    }

    /// The response of a well-behaved server.
    fn behave(&self, request: &RogueRequest) -> RogueResponse {
        let origin = &self.origin;
        match request.path.as_str() {
            "/mcp" => self.mcp(request),
            "/.well-known/oauth-protected-resource/mcp" => {
                RogueServer::resource_metadata(origin, &Value::Null)
            }
            "/.well-known/oauth-authorization-server" => {
                RogueServer::metadata(origin, &Value::Null)
            }
            "/register" => RogueResponse::Json(201, json!({"client_id": "rogue-client"})),
            "/authorize" => self.authorize(request),
            "/token" => {
                let number = self.tokens.fetch_add(1, Ordering::Relaxed) + 1;
                RogueResponse::Json(
                    200,
                    json!({
                        "access_token": format!("{CANARY}access-{number}"),
                        "refresh_token": format!("{CANARY}refresh-{number}"),
                        "token_type": "Bearer",
                        "expires_in": 3600,
                    }),
                )
            }
            "/revoke" => RogueResponse::Text(200, String::new(), String::new()),
            _ => RogueResponse::Text(404, String::new(), String::new()),
        }
    }

    fn authorize(&self, request: &RogueRequest) -> RogueResponse {
        let value = |name| request.parameter(name).unwrap_or_default();
        let redirect = value("redirect_uri").replace("%3A", ":").replace("%2F", "/");
        let issuer = self.origin.replace(':', "%3A").replace('/', "%2F");
        let state = value("state");
        RogueResponse::Redirect(format!("{redirect}?code={CANARY}code&state={state}&iss={issuer}"))
    }

    fn mcp(&self, request: &RogueRequest) -> RogueResponse {
        let is_authorized = request
            .authorization
            .as_ref()
            .is_some_and(|it| it.starts_with(&format!("Bearer {CANARY}access-")));
        if !is_authorized {
            let named = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
            let challenge = format!("Bearer resource_metadata=\"{named}\", scope=\"mcp\"");
            return RogueServer::challenge(401, &challenge);
        }
        if request.method != "POST" {
            return RogueResponse::Text(405, String::new(), String::new());
        }
        let called = json!({"content": [{"type": "text", "text": "called"}]});
        let replies = ScriptedReplies::new("2025-11-25", json!({"tools": {}}), &["echo"])
            .answering("tools/call", called);
        match replies.answer(&request.message()) {
            Some(answer) if answer.get("error").is_some() => RogueResponse::Json(400, answer),
            Some(answer) if !answer.is_null() => RogueResponse::Json(200, answer),
            _ => RogueResponse::Text(202, String::new(), String::new()),
        }
    }
}

fn write(stream: &mut TcpStream, response: RogueResponse) -> std::io::Result<()> {
    const HEAD: &str = "Content-Type: application/json\r\n";
    let (status, head, body) = match response {
        RogueResponse::Json(status, document) => (status, HEAD.to_owned(), document.to_string()),
        RogueResponse::Text(status, head, body) => (status, head, body),
        RogueResponse::Redirect(to) => (302, format!("Location: {to}\r\n"), String::new()),
        RogueResponse::Slow => return drip(stream, Some(SLOW)),
        RogueResponse::Endless => return drip(stream, None),
        // The client ends the connection.
        RogueResponse::Nothing => return stream.read_to_end(&mut Vec::new()).map(drop),
    };
    let length = body.len();
    let end = format!("Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(format!("HTTP/1.1 {status} Status\r\n{head}{end}").as_bytes())
}

/// Sends a document that does not end, until the client leaves.
fn drip(stream: &mut TcpStream, pause: Option<Duration>) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"a\":\"")?;
    let piece: &[u8] = if pause.is_some() { b"x" } else { &[b'x'; 4096] };
    loop {
        stream.write_all(piece)?;
        if let Some(pause) = pause {
            delay(pause);
        }
    }
}

fn read(stream: &TcpStream) -> Option<RogueRequest> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (mut authorization, mut session, mut length) = (None, None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "mcp-session-id" => session = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(RogueRequest {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        authorization,
        session,
        body,
    })
}
