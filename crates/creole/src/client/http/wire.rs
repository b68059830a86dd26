//! How a server is connected to, and reading what it answers: whole documents and streams of events.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::framing::sse::{SseDecoder, SseEvent};
use http_body::{Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;

use super::answer::Body;
use super::proxy::Proxies;
use super::route::Route;
use crate::budget::{BudgetExhausted, BufferReservation, Reservation};
pub(super) use crate::client::encrypt::{Trust, tls};
use crate::client::link::LARGE;

/// How long it may take to connect.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// A connection on which nothing comes is asked whether it is alive after this long.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How often it is asked again, and how many times before it counts as dead.
const KEEP_ALIVE_AGAIN: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TRIES: u32 = 4;

/// How long nothing of what was sent may be acknowledged, also of those questions, before a connection is dead.
pub(super) const DEAD: Duration = Duration::from_secs(30);

/// How long a connection that nobody uses is kept.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// What makes connections to a server, directly or through a proxy.
pub(super) type Connector = HttpsConnector<Route<HttpConnector>>;

/// What makes connections.
pub(super) fn connector(trust: Trust<'_>, proxies: Proxies) -> Result<Connector, String> {
    let mut connector = plain(GaiResolver::new());
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE_AGAIN));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_TRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(DEAD));
    let connector = Route::new(connector.clone(), connector, proxies);
    let tls = tls(trust)?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
    let builder = match trust {
        Trust::Plain => builder.https_or_http(),
        _ => builder.https_only(),
    };
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

/// Connections that are not encrypted, to addresses that this finds.
pub(super) fn plain<R>(resolver: R) -> HttpConnector<R> {
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector
}

/// The body of a request: all of it at once, or nothing.
pub(super) struct Payload(Option<Bytes>);

impl Payload {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for Payload {
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

/// Why a body could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    TooLong,
    Broken,
    /// Other bodies take the memory that there is for them.
    NoRoom,
}

impl From<BudgetExhausted> for Unread {
    fn from(_: BudgetExhausted) -> Self {
        Self::NoRoom
    }
}

/// A whole body, which holds its part of the memory for bodies for as long as it is there.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) bytes: Vec<u8>,
    held: Option<Reservation>,
}

impl Document {
    /// Its bytes, for somebody who keeps them.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        drop(self.held);
        self.bytes
    }
}

/// Room for what may be written before a large document when it is passed on.
const SPARE: usize = 512;

/// Reads a whole body. What it holds of the memory for bodies, once it is not small, is of `hold`.
pub(super) async fn document(
    mut body: Body,
    longest: usize,
    hold: impl FnOnce() -> Reservation,
) -> Result<Document, Unread> {
    let told = body.length().unwrap_or(0);
    if told > longest as u64 {
        return Err(Unread::TooLong);
    }
    let spare = if told < LARGE as u64 { 0 } else { SPARE };
    let mut room = BufferReservation::new(hold);
    room.grow_to(told as usize + spare)?;
    let mut whole = Vec::with_capacity(told as usize + spare);
    while more(&mut body, &mut whole).await.map_err(|()| Unread::Broken)? {
        if whole.len() > longest {
            return Err(Unread::TooLong);
        }
        room.grow_to(whole.capacity())?;
    }
    Ok(Document { bytes: whole, held: room.into_reservation() })
}

/// Puts the next piece of a body down; tells whether there was one. Cancel-safe.
async fn more(body: &mut Body, into: &mut Vec<u8>) -> Result<bool, ()> {
    poll_fn(|context| body.poll_more(context, into)).await
}

/// Why an event is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    /// It is too long, or no text.
    Garbled,
    /// Other bodies take the memory that there is for them. Nothing more comes.
    NoRoom,
}

/// What holds memory for the events of a server.
type Hold = Box<dyn FnOnce() -> Reservation + Send>;

/// A body that is a stream of events.
pub(super) struct Events {
    body: Body,
    room: BufferReservation<Hold>,
    decoder: SseDecoder,
    chunk: Vec<u8>,
    /// How much of the chunk was decoded.
    taken: usize,
    /// Whether nothing more is read.
    is_over: bool,
}

impl Events {
    /// The events in a body. What they hold of the memory for bodies, once they are not small, is of `hold`.
    pub(super) fn new(
        body: Body,
        longest: usize,
        hold: impl FnOnce() -> Reservation + Send + 'static,
    ) -> Self {
        let hold: Hold = Box::new(hold);
        let (decoder, chunk) = (SseDecoder::new(longest), Vec::new());
        Self { body, room: BufferReservation::new(hold), decoder, chunk, taken: 0, is_over: false }
    }

    /// The next event, or why one was dropped; nothing at the end, of whatever kind it is. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<SseEvent, Missed>> {
        loop {
            let mut rest = &self.chunk[self.taken..];
            let event = self.decoder.next(&mut rest);
            self.taken = self.chunk.len() - rest.len();
            if event.is_some() {
                return event.map(|event| event.map_err(|_| Missed::Garbled));
            }
            if self.is_over {
                return None;
            }
            if let Err(BudgetExhausted) =
                self.room.resize_to(self.chunk.capacity() + self.decoder.buffered_bytes())
            {
                self.is_over = true;
                return Some(Err(Missed::NoRoom));
            }
            self.chunk.clear();
            self.taken = 0;
            if !more(&mut self.body, &mut self.chunk).await.ok()? {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_connection_is_noticed_at_the_same_time_with_and_without_something_on_its_way() {
        assert_eq!(KEEP_ALIVE + KEEP_ALIVE_AGAIN * KEEP_ALIVE_TRIES, DEAD);
        // One of HTTP/2 is asked, and has as long to answer.
        assert!(KEEP_ALIVE * 2 <= DEAD);
    }
}
