//! An authorization server that rotates refresh tokens and revokes a login whose refresh token is used twice. It counts
//! its requests, and fails where a test says so.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use creole_test_wait::delay;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// What the server remembers.
#[derive(Default)]
pub(super) struct Records {
    /// The number of requests of each kind: a path, or a grant.
    counts: HashMap<String, usize>,
    /// The refresh tokens that are valid, and those that were used.
    valid: HashSet<String>,
    used: HashSet<String>,
    /// The responses of the next token requests, instead of tokens.
    failures: Vec<(u16, &'static str)>,
    /// The life of tokens, in seconds.
    lifetime: u64,
    issued: usize,
    /// The forms of token requests.
    pub(super) forms: Vec<String>,
    /// The messages to the MCP server.
    messages: Vec<Value>,
    /// The number of the first token with which tools may be called.
    first_tool_token: usize,
}

/// A running server. It is the MCP server's origin too.
pub(super) struct AuthorizationServer {
    pub(super) origin: String,
    pub(super) records: Arc<Mutex<Records>>,
    serving: AbortHandle,
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl AuthorizationServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let records = Arc::new(Mutex::new(Records { lifetime: 3_600, ..Records::default() }));
        let state = (origin.clone(), Arc::clone(&records));
        let application = Router::new().fallback(respond).with_state(state);
        let serving =
            tokio::spawn(async { axum::serve(listener, application).await }).abort_handle();
        Self { origin, records, serving }
    }

    pub(super) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    /// How many requests of a kind there were.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.records.lock().unwrap().counts.get(kind).copied().unwrap_or_default()
    }

    /// Answers the next token requests with these statuses and error codes.
    pub(super) fn fail(&self, failures: &[(u16, &'static str)]) {
        self.records.lock().unwrap().failures = failures.to_vec();
    }

    /// The messages that the MCP server got.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.records.lock().unwrap().messages.clone()
    }

    /// Tools may be called with this token and those after it. Earlier tokens lack a scope.
    pub(super) fn demand_for_tools(&self, first: usize) {
        self.records.lock().unwrap().first_tool_token = first;
    }

    /// The life of the next tokens, in seconds.
    pub(super) fn set_lifetime(&self, seconds: u64) {
        self.records.lock().unwrap().lifetime = seconds;
    }
}

async fn respond(
    State((origin, records)): State<(String, Arc<Mutex<Records>>)>,
    request: Request,
) -> Response {
    let path = request.uri().path().to_owned();
    let token = request.headers().get("authorization").cloned();
    *records.lock().unwrap().counts.entry(path.clone()).or_default() += 1;
    let body = axum::body::to_bytes(request.into_body(), 65_536).await.unwrap();
    match path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => {
            format!(r#"{{"resource":"{origin}/mcp","authorization_servers":["{origin}"]}}"#)
                .into_response()
        }
        "/.well-known/oauth-authorization-server" => metadata(&origin).into_response(),
        "/.well-known/oauth-protected-resource" => {
            format!(r#"{{"resource":"{origin}","authorization_servers":["{origin}"]}}"#)
                .into_response()
        }
        "/mcp" => {
            let token = token.as_ref().and_then(|it| it.to_str().ok());
            let number = token.and_then(|it| it.strip_prefix("Bearer access-canary-"));
            let message = serde_json::from_slice(&body).unwrap_or_default();
            records.lock().unwrap().message(number.and_then(|it| it.parse().ok()), message)
        }
        "/register" => {
            (StatusCode::CREATED, r#"{"client_id":"registered"}"#.to_owned()).into_response()
        }
        "/revoke" => "".into_response(),
        "/token" => {
            // The response takes a moment, so that requests can meet.
            delay(Duration::from_millis(20)).await;
            records.lock().unwrap().token(&String::from_utf8_lossy(&body))
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn metadata(origin: &str) -> String {
    format!(
        r#"{{"issuer":"{origin}","authorization_endpoint":"{origin}/authorize","token_endpoint":"{origin}/token",
        "registration_endpoint":"{origin}/register","revocation_endpoint":"{origin}/revoke",
        "code_challenge_methods_supported":["S256"]}}"#
    )
}

impl Records {
    /// The response of the MCP server to a request with the token of this number.
    fn message(&mut self, token: Option<usize>, message: Value) -> Response {
        self.messages.push(message.clone());
        let Some(number) = token else {
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")]).into_response();
        };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "site", "version": "1"},
            }),
            Some("tools/call") if number < self.first_tool_token => {
                let challenge = r#"Bearer error="insufficient_scope", scope="write""#;
                return (StatusCode::FORBIDDEN, [("www-authenticate", challenge)]).into_response();
            }
            Some("tools/call") => json!({"content": [{"type": "text", "text": "called"}]}),
            Some(_) if message["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
            _ => return StatusCode::METHOD_NOT_ALLOWED.into_response(),
        };
        let text = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        ([("content-type", "application/json")], text).into_response()
    }

    fn token(&mut self, form: &str) -> Response {
        let value = |name: &str| {
            let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        let grant = value("grant_type").unwrap_or_default();
        *self.counts.entry(grant.clone()).or_default() += 1;
        self.forms.push(form.to_owned());
        if !self.failures.is_empty() {
            let (status, error) = self.failures.remove(0);
            let status = StatusCode::from_u16(status).unwrap();
            return (status, format!(r#"{{"error":"{error}"}}"#)).into_response();
        }
        if grant == "refresh_token" {
            let token = value("refresh_token").unwrap_or_default();
            if !self.valid.remove(&token) {
                // A token that is used twice revokes all of them.
                if self.used.contains(&token) {
                    self.valid.clear();
                }
                let body = r#"{"error":"invalid_grant"}"#.to_owned();
                return (StatusCode::BAD_REQUEST, body).into_response();
            }
            self.used.insert(token);
        }
        self.issued += 1;
        let (number, lifetime) = (self.issued, self.lifetime);
        let refresh = format!("refresh-canary-{number}");
        self.valid.insert(refresh.clone());
        format!(
            r#"{{"access_token":"access-canary-{number}","token_type":"Bearer","expires_in":{lifetime},"refresh_token":"{refresh}"}}"#
        )
        .into_response()
    }
}
