//! Responses of the endpoint: one JSON document, an event stream, or only a status.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::budget::Reservation;
use crate::serve::http::conn::http1::detach::Streaming;
use crate::serve::http::mcp::streams::HttpHost;
use crate::serve::http::web::handler::RefusedRequest;
use crate::serve::http::web::request::RequestHeaders;
use crate::server::Service;
use crate::telemetry::metrics::GaugeGuard;

/// How often a stream that is to close looks for running calls.
const IDLE_CHECK: Duration = Duration::from_secs(1);

/// The body of a response.
pub struct McpBody(McpBodyKind);

enum McpBodyKind {
    Whole(Option<Bytes>),
    /// One JSON document; its headers are [set](set_json_headers) when the response is complete.
    Json(Option<Bytes>),
    Events(Pin<Box<dyn EventSource>>),
}

/// An event stream as bytes.
pub(crate) trait EventSource: Send {
    /// The next bytes; `None` is the end.
    fn poll_bytes(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl http_body::Body for McpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            McpBodyKind::Whole(bytes) | McpBodyKind::Json(bytes) => Poll::Ready(bytes.take()),
            McpBodyKind::Events(events) => events.as_mut().poll_bytes(context),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, McpBodyKind::Whole(None) | McpBodyKind::Json(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            McpBodyKind::Whole(bytes) | McpBodyKind::Json(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            McpBodyKind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for McpBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            McpBodyKind::Whole(_) | McpBodyKind::Json(_) => "Body::Whole",
            McpBodyKind::Events(_) => "Body::Events",
        })
    }
}

impl From<Bytes> for McpBody {
    fn from(bytes: Bytes) -> Self {
        Self(McpBodyKind::Whole((!bytes.is_empty()).then_some(bytes)))
    }
}

/// A response with one JSON document.
pub(crate) fn json_response(status: u16, text: Bytes) -> Response<McpBody> {
    let mut response = empty_response(status);
    *response.body_mut() = McpBody(McpBodyKind::Json(Some(text)));
    response
}

/// Whether the response is one JSON document.
pub(crate) fn is_json(response: &Response<McpBody>) -> bool {
    matches!(response.body().0, McpBodyKind::Json(_))
}

/// Sets the headers of a JSON document. They reuse the map of the request's headers.
pub(crate) fn set_json_headers(
    mut response: Response<McpBody>,
    request: &mut RequestHeaders,
) -> Response<McpBody> {
    if !is_json(&response) {
        return response;
    }
    let headers = response.headers_mut();
    if headers.is_empty() {
        *headers = request.take_map();
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response with an event stream.
pub(crate) fn event_response(events: impl EventSource + 'static) -> Response<McpBody> {
    const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");
    let mut response = Response::new(McpBody(McpBodyKind::Events(Box::pin(events))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    response
}

/// A response with an event stream that continues until its client disconnects.
pub(crate) fn streaming_response(source: impl EventSource + 'static) -> Response<McpBody> {
    let mut response = event_response(source);
    response.extensions_mut().insert(Streaming);
    response
}

/// The same response, whose stream ends at the deadline, if there is one.
pub(crate) fn with_deadline(
    response: Response<McpBody>,
    deadline: Option<Instant>,
    host: &Arc<HttpHost>,
    at_deadline: AtDeadline,
) -> Response<McpBody> {
    let Some(deadline) = deadline else { return response };
    response.map(|body| match body.0 {
        McpBodyKind::Events(events) => McpBody(McpBodyKind::Events(Box::pin(ExpiringEvents {
            events,
            timer: Some(Box::pin(sleep_until(deadline))),
            host: Arc::clone(host),
            at_deadline,
        }))),
        whole => McpBody(whole),
    })
}

/// How a stream ends whose caller's token has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtDeadline {
    /// It closes.
    Close,
    /// It closes when no call runs: its responses have no other way.
    CloseWhenIdle,
    /// Subscriptions get their graceful result, which ends the stream.
    EndSubscriptions,
}

/// Events until the token of their caller has expired.
struct ExpiringEvents {
    events: Pin<Box<dyn EventSource>>,
    timer: Option<Pin<Box<Sleep>>>,
    host: Arc<HttpHost>,
    at_deadline: AtDeadline,
}

impl EventSource for ExpiringEvents {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        while let Some(timer) = &mut this.timer
            && timer.as_mut().poll(context).is_ready()
        {
            match this.at_deadline {
                AtDeadline::CloseWhenIdle if this.host.is_busy() => {
                    timer.as_mut().reset(Instant::now() + IDLE_CHECK);
                }
                AtDeadline::Close | AtDeadline::CloseWhenIdle => return Poll::Ready(None),
                AtDeadline::EndSubscriptions => {
                    this.timer = None;
                    this.host.end_subscriptions();
                }
            }
        }
        this.events.as_mut().poll_bytes(context)
    }
}

/// A response with only a status.
pub(crate) fn empty_response(status: u16) -> Response<McpBody> {
    let mut response = Response::new(McpBody(McpBodyKind::Whole(None)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response
}

/// The same response, which holds this reservation as long as it streams.
pub(crate) fn with_reservation(
    response: Response<McpBody>,
    reservation: Reservation,
) -> Response<McpBody> {
    response.map(|body| match body.0 {
        McpBodyKind::Events(events) => McpBody(McpBodyKind::Events(Box::pin(ReservedEvents {
            events,
            _reservation: reservation,
        }))),
        whole => McpBody(whole),
    })
}

/// Events that hold the memory reservation of their request.
struct ReservedEvents {
    events: Pin<Box<dyn EventSource>>,
    _reservation: Reservation,
}

impl EventSource for ReservedEvents {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.as_mut().poll_bytes(context)
    }
}

/// The same response, whose event stream is counted, if metrics are.
pub(crate) fn counted(response: Response<McpBody>, service: &Service) -> Response<McpBody> {
    if !matches!(response.body().0, McpBodyKind::Events(_)) {
        return response;
    }
    let Some(open) = service.server_metrics().map(|server| server.stream()) else {
        return response;
    };
    response.map(|body| match body.0 {
        McpBodyKind::Events(events) => {
            McpBody(McpBodyKind::Events(Box::pin(CountedEvents { events, _open: open })))
        }
        whole => McpBody(whole),
    })
}

/// Events that are counted as an open stream.
struct CountedEvents {
    events: Pin<Box<dyn EventSource>>,
    _open: GaugeGuard,
}

impl EventSource for CountedEvents {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.as_mut().poll_bytes(context)
    }
}

/// The error response for encoded bodies (RFC 9110, 15.5.16).
pub(crate) fn unsupported_encoding() -> Response<McpBody> {
    let reason = "the body must not be encoded; send it without Content-Encoding";
    let mut response = error_response(415, reason);
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response
}

/// A status and a readable sentence, as JSON.
pub(crate) fn error_response(status: u16, reason: &str) -> Response<McpBody> {
    let text = serde_json::json!({"error": reason}).to_string();
    let mut response = json_response(status, text.into());
    response.extensions_mut().insert(RefusedRequest::new(reason));
    if status == 503 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}

/// The error response while the state, or another replica, cannot be reached: that may be over in a moment.
pub(crate) fn state_unavailable(reason: &str) -> Response<McpBody> {
    let mut response = error_response(503, reason);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("2"));
    response
}
