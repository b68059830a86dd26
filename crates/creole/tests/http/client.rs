//! A client that calls an endpoint without a network.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Task, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole::internal::http::McpBody;
use creole::serve::http::{EndpointSettings, McpEndpoint};
use creole::state::State;
use creole::{Context, Server, Service, Tool};
use http::{Method, Request, Response};
use http_body::{Body as _, Frame};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The signals of the test server's tools.
#[derive(Clone, Default)]
pub(crate) struct ToolWatch {
    pub(crate) started: Arc<Notify>,
    pub(crate) dropped: Arc<Notify>,
    pub(crate) finished: Arc<AtomicUsize>,
    pub(crate) go_on: Arc<Notify>,
}

struct DropNotify(Arc<Notify>);

impl Drop for DropNotify {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// A server with a tool that returns immediately, one that waits for a signal, and one that reports progress.
pub(crate) fn service(watch: &ToolWatch) -> Service {
    let echo = Tool::new("echo", "Says it again", |arguments: Value| async move {
        arguments["message"].as_str().unwrap_or_default().to_owned()
    });
    let waiting = watch.clone();
    let wait = Tool::new("wait", "Waits until it is told to go on", move |_: Value| {
        let watch = waiting.clone();
        async move {
            let _dropped = DropNotify(watch.dropped);
            watch.started.notify_one();
            watch.go_on.notified().await;
            watch.finished.fetch_add(1, Ordering::SeqCst);
            "went on".to_owned()
        }
    });
    let telling = watch.clone();
    let tell = Tool::new("tell", "Tells, waits, answers", move |_: Value, context: Context| {
        let watch = telling.clone();
        async move {
            context.progress(1.0, None, None).await;
            watch.started.notify_one();
            watch.go_on.notified().await;
            context.progress(2.0, None, None).await;
            "told".to_owned()
        }
    });
    Server::new("test").tool(echo).tool(wait).tool(tell).start()
}

pub(crate) fn endpoint() -> (McpEndpoint, ToolWatch) {
    let watch = ToolWatch::default();
    (McpEndpoint::new(service(&watch), EndpointSettings::default()), watch)
}

pub(crate) fn endpoint_on(state: &State) -> McpEndpoint {
    let mut settings = EndpointSettings::default();
    settings.state = state.clone();
    McpEndpoint::new(service(&ToolWatch::default()), settings)
}

/// The body of a request, in one piece.
pub(crate) struct Whole(Option<Bytes>);

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A request with these headers.
pub(crate) fn request(method: Method, headers: &[(&str, &str)], body: &str) -> Request<Whole> {
    let mut request = Request::builder().method(method).uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = (!body.is_empty()).then(|| Bytes::copy_from_slice(body.as_bytes()));
    request.body(Whole(body)).unwrap()
}

const SENT: (&str, &str) = ("content-type", "application/json");
const TAKEN: (&str, &str) = ("accept", "application/json, text/event-stream");

/// A POST of this message, with these headers besides the default ones.
pub(crate) fn post(headers: &[(&str, &str)], message: &Value) -> Request<Whole> {
    let headers: Vec<_> = [SENT, TAKEN].iter().chain(headers).copied().collect();
    request(Method::POST, &headers, &message.to_string())
}

/// A stateless request.
pub(crate) fn modern(method: &str, mut params: Value) -> Request<Whole> {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let name = params["name"].as_str().unwrap_or("-").to_owned();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", &*name)];
    post(&headers, &message)
}

/// A stateless call.
pub(crate) fn modern_call(tool: &str) -> Request<Whole> {
    modern("tools/call", json!({"name": tool, "arguments": {}, "_meta": {"progressToken": 7}}))
}

/// A message of a session.
pub(crate) fn in_session(session: &str, message: &Value) -> Request<Whole> {
    post(&[("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")], message)
}

/// A call in a session.
pub(crate) fn call(session: &str, id: u64, tool: &str) -> Request<Whole> {
    let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": id}});
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    in_session(session, &message)
}

/// Opens a session and returns its id.
pub(crate) async fn open(endpoint: &McpEndpoint) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let response = endpoint.handle(post(&[], &hello)).await;
    assert_eq!(response.status(), 200);
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let confirmed = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(endpoint.handle(in_session(&session, &confirmed)).await.status(), 202);
    session
}

/// The next part of a body; `None` is the end.
pub(crate) async fn part(body: &mut McpBody) -> Option<String> {
    let next = std::future::poll_fn(|task| Pin::new(&mut *body).poll_frame(task));
    let frame = tokio::time::timeout(Duration::from_secs(60), next).await.expect("a part in time");
    let bytes = frame?.unwrap().into_data().unwrap();
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

/// The rest of a body.
pub(crate) async fn text(response: Response<McpBody>) -> String {
    let mut body = response.into_body();
    let mut text = String::new();
    while let Some(part) = part(&mut body).await {
        text.push_str(&part);
    }
    text
}

/// The JSON document of a response.
pub(crate) async fn document(response: Response<McpBody>) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json");
    serde_json::from_str(&text(response).await).unwrap()
}
