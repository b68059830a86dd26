//! Responses: one document, a stream of events, or nothing but a status.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
};
use http::{Response, StatusCode};
use http_body::{Frame, SizeHint};

use super::handover::Lasts;
use super::request::Headers;
use crate::budget::Reservation;

/// The body of a response.
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    /// One that is JSON, which its headers say once it is [complete](complete).
    Json(Option<Bytes>),
    Events(Pin<Box<dyn Events>>),
}

/// A stream of events, written as bytes.
pub(super) trait Events: Send {
    /// The next bytes; `None` is the end.
    fn poll_bytes(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            Kind::Whole(bytes) | Kind::Json(bytes) => Poll::Ready(bytes.take()),
            Kind::Events(events) => events.as_mut().poll_bytes(context),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None) | Kind::Json(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) | Kind::Json(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Kind::Whole(_) | Kind::Json(_) => "Body::Whole",
            Kind::Events(_) => "Body::Events",
        })
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
    }
}

/// One JSON document.
pub(super) fn json(status: u16, text: Bytes) -> Response<Body> {
    let mut response = empty(status);
    *response.body_mut() = Body(Kind::Json(Some(text)));
    response
}

/// Whether it is one JSON document.
pub(super) fn is_json(response: &Response<Body>) -> bool {
    matches!(response.body().0, Kind::Json(_))
}

/// Says in the headers of a JSON document what it is. They take the room of the request's.
pub(super) fn complete(mut response: Response<Body>, request: &mut Headers) -> Response<Body> {
    if !is_json(&response) {
        return response;
    }
    let headers = response.headers_mut();
    if headers.is_empty() {
        *headers = request.take_room();
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A stream of events.
pub(super) fn events(events: impl Events + 'static) -> Response<Body> {
    const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");
    let mut response = Response::new(Body(Kind::Events(Box::pin(events))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    response
}

/// A stream of events that goes on for as long as its client wants.
pub(super) fn lasting_events(source: impl Events + 'static) -> Response<Body> {
    let mut response = events(source);
    response.extensions_mut().insert(Lasts);
    response
}

/// Nothing but a status.
pub(super) fn empty(status: u16) -> Response<Body> {
    let mut response = Response::new(Body(Kind::Whole(None)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    response
}

/// The same response, which holds this for as long as it streams.
pub(super) fn holding(response: Response<Body>, held: Reservation) -> Response<Body> {
    response.map(|body| match body.0 {
        Kind::Events(events) => Body(Kind::Events(Box::pin(Holding { events, _held: held }))),
        whole => Body(whole),
    })
}

/// Events that hold memory of what they answer.
struct Holding {
    events: Pin<Box<dyn Events>>,
    _held: Reservation,
}

impl Events for Holding {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.as_mut().poll_bytes(context)
    }
}

/// Says that bodies must not be encoded (RFC 9110, 15.5.16).
pub(super) fn encoded() -> Response<Body> {
    let why = "the body must not be encoded; send it without Content-Encoding";
    let mut response = refusal(415, why);
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response
}

/// A status and a sentence for whoever looks at it, as JSON.
pub(super) fn refusal(status: u16, why: &str) -> Response<Body> {
    let text = serde_json::json!({"error": why}).to_string();
    let mut response = json(status, text.into());
    if status == 503 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
