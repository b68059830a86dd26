//! How a server is connected to, and reading what it answers: whole documents and streams of events.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::framing::sse::{Event, SseDecoder, SseError};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body::{Body, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;

use super::pool::Answer;
pub(super) use crate::client::encrypt::{Trust, tls};
use crate::client::link::LARGE;

/// How long it may take to connect.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// A connection on which nothing comes is asked whether it is alive after this long, and every so often.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often it is asked before it counts as dead.
const KEEP_ALIVE_TRIES: u32 = 2;

/// How long a connection that nobody uses is kept.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// What makes connections.
pub(super) fn connector(trust: Trust<'_>) -> Result<HttpsConnector<HttpConnector>, String> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_TRIES));
    let tls = tls(trust)?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
    let builder = match trust {
        Trust::Plain => builder.https_or_http(),
        _ => builder.https_only(),
    };
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

/// The body of a request: all of it at once, or nothing.
pub(super) struct Payload(Option<Bytes>);

impl Payload {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// What the body of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Document,
    Events,
    Other,
}

/// What the headers of an answer say that its body is.
pub(super) fn kind(headers: &HeaderMap) -> Kind {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = text.split(';').next().unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        Kind::Document
    } else if media.eq_ignore_ascii_case("text/event-stream") {
        Kind::Events
    } else {
        Kind::Other
    }
}

/// Why a body could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    TooLong,
    Broken,
}

/// A whole body.
pub(super) enum Document {
    Small(Bytes),
    /// One that is not to be copied again.
    Large(Vec<u8>),
}

/// Room for what may be written before a large document when it is passed on.
const SPARE: usize = 512;

/// Reads a whole body.
pub(super) async fn document(mut body: Answer, longest: usize) -> Result<Document, Unread> {
    let broken = |()| Unread::Broken;
    let told = body.length().unwrap_or(0);
    if told > longest as u64 {
        return Err(Unread::TooLong);
    }
    // Mostly it comes in one piece, which needs no copy.
    let first = piece(&mut body).await.map_err(broken)?.unwrap_or_default();
    if first.len() > longest {
        return Err(Unread::TooLong);
    }
    let Some(second) = piece(&mut body).await.map_err(broken)? else {
        return Ok(Document::Small(first));
    };
    let mut whole = Vec::with_capacity(told as usize + SPARE);
    whole.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(more) = next {
        if more.len() > longest.saturating_sub(whole.len()) {
            return Err(Unread::TooLong);
        }
        whole.extend_from_slice(&more);
        next = piece(&mut body).await.map_err(broken)?;
    }
    Ok(match whole.len() < LARGE {
        true => Document::Small(whole.into()),
        false => Document::Large(whole),
    })
}

/// The next piece of a body; nothing at its end.
async fn piece(body: &mut Answer) -> Result<Option<Bytes>, ()> {
    loop {
        match poll_fn(|context| body.poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(()),
            Some(Ok(frame)) => {
                // Trailers mean nothing here.
                if let Ok(piece) = frame.into_data() {
                    return Ok(Some(piece));
                }
            }
        }
    }
}

/// A body that is a stream of events.
pub(super) struct Events {
    body: Answer,
    decoder: SseDecoder,
    chunk: Bytes,
}

impl Events {
    pub(super) fn new(body: Answer, longest: usize) -> Self {
        Self { body, decoder: SseDecoder::new(longest), chunk: Bytes::new() }
    }

    /// The next event, or why one was dropped; nothing at the end, of whatever kind it is. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Event, SseError>> {
        loop {
            let mut rest = &self.chunk[..];
            let event = self.decoder.next(&mut rest);
            let taken = self.chunk.len() - rest.len();
            let _ = self.chunk.split_to(taken);
            if event.is_some() {
                return event;
            }
            self.chunk = piece(&mut self.body).await.ok().flatten()?;
        }
    }
}
