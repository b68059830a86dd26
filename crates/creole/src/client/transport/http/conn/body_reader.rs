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

use crate::budget::{BudgetExhausted, BufferReservation, Reservation};
pub(crate) use crate::client::tls::{TrustedRoots, client_config};
use crate::client::transport::LARGE_MESSAGE;
use crate::client::transport::http::conn::proxy::Proxies;
use crate::client::transport::http::conn::proxy_connector::ProxyConnector;
use crate::client::transport::http::conn::response::ResponseBody;

/// How long it may take to connect.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection on which nothing comes is asked whether it is alive after this long.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How often it is asked again, and how many times before it counts as dead.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TRIES: u32 = 4;

/// How long nothing of what was sent may be acknowledged, also of those questions, before a connection is dead.
pub(crate) const DEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a connection that nobody uses is kept.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// What makes connections to a server, directly or through a proxy.
pub(crate) type ServerConnector = HttpsConnector<ProxyConnector<HttpConnector>>;

/// What makes connections.
pub(crate) fn connector(
    trust: TrustedRoots<'_>,
    proxies: Proxies,
) -> Result<ServerConnector, String> {
    let mut connector = tcp_connector(GaiResolver::new());
    connector.set_keepalive(Some(KEEP_ALIVE));
    connector.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEP_ALIVE_TRIES));
    #[cfg(target_os = "linux")]
    connector.set_tcp_user_timeout(Some(DEAD_TIMEOUT));
    let connector = ProxyConnector::new(connector.clone(), connector, proxies);
    let tls = client_config(trust)?;
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
    let builder = match trust {
        TrustedRoots::Plain => builder.https_or_http(),
        _ => builder.https_only(),
    };
    Ok(builder.enable_all_versions().wrap_connector(connector))
}

/// Connections that are not encrypted, to addresses that this finds.
pub(crate) fn tcp_connector<R>(resolver: R) -> HttpConnector<R> {
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector
}

/// The body of a request: all of it at once, or nothing.
pub(crate) struct RequestPayload(Option<Bytes>);

impl RequestPayload {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for RequestPayload {
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
pub(crate) enum BodyReadError {
    TooLong,
    Broken,
    /// Other bodies take the memory that there is for them.
    BudgetExhausted,
}

impl From<BudgetExhausted> for BodyReadError {
    fn from(_: BudgetExhausted) -> Self {
        Self::BudgetExhausted
    }
}

/// A whole body, which holds its part of the memory for bodies for as long as it is there.
#[derive(Debug, Default)]
pub(crate) struct ResponseDocument {
    pub(crate) bytes: Vec<u8>,
    reservation: Option<Reservation>,
}

impl ResponseDocument {
    /// Its bytes, for somebody who keeps them.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        drop(self.reservation);
        self.bytes
    }
}

/// Room for what may be written before a large document when it is passed on.
const SPARE: usize = 512;

/// Reads a whole body. What it holds of the memory for bodies, once it is not small, is of `hold`.
pub(crate) async fn read_document(
    mut body: ResponseBody,
    longest: usize,
    hold: impl FnOnce() -> Reservation,
) -> Result<ResponseDocument, BodyReadError> {
    let told = body.length().unwrap_or(0);
    if told > longest as u64 {
        return Err(BodyReadError::TooLong);
    }
    let spare = if told < LARGE_MESSAGE as u64 { 0 } else { SPARE };
    let mut room = BufferReservation::new(hold);
    room.grow_to(told as usize + spare)?;
    let mut whole = Vec::with_capacity(told as usize + spare);
    while read_more(&mut body, &mut whole).await.map_err(|()| BodyReadError::Broken)? {
        if whole.len() > longest {
            return Err(BodyReadError::TooLong);
        }
        room.grow_to(whole.capacity())?;
    }
    Ok(ResponseDocument { bytes: whole, reservation: room.into_reservation() })
}

/// Puts the next piece of a body down; tells whether there was one. Cancel-safe.
async fn read_more(body: &mut ResponseBody, into: &mut Vec<u8>) -> Result<bool, ()> {
    poll_fn(|context| body.poll_append(context, into)).await
}

/// Why an event is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventError {
    /// It is too long, or no text.
    Unreadable,
    /// Other bodies take the memory that there is for them. Nothing more comes.
    BudgetExhausted,
}

/// What holds memory for the events of a server.
type ReserveMemory = Box<dyn FnOnce() -> Reservation + Send>;

/// A body that is a stream of events.
pub(crate) struct EventStream {
    body: ResponseBody,
    reservation: BufferReservation<ReserveMemory>,
    decoder: SseDecoder,
    chunk: Vec<u8>,
    /// How much of the chunk was decoded.
    taken: usize,
    /// Whether nothing more is read.
    is_over: bool,
}

impl EventStream {
    /// The events in a body. What they hold of the memory for bodies, once they are not small, is of `hold`.
    pub(crate) fn new(
        body: ResponseBody,
        longest: usize,
        hold: impl FnOnce() -> Reservation + Send + 'static,
    ) -> Self {
        let hold: ReserveMemory = Box::new(hold);
        let (decoder, chunk) = (SseDecoder::new(longest), Vec::new());
        Self {
            body,
            reservation: BufferReservation::new(hold),
            decoder,
            chunk,
            taken: 0,
            is_over: false,
        }
    }

    /// The next event, or why one was dropped; nothing at the end, of whatever kind it is. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Result<SseEvent, EventError>> {
        loop {
            let mut rest = &self.chunk[self.taken..];
            let event = self.decoder.next(&mut rest);
            self.taken = self.chunk.len() - rest.len();
            if event.is_some() {
                return event.map(|event| event.map_err(|_| EventError::Unreadable));
            }
            if self.is_over {
                return None;
            }
            if let Err(BudgetExhausted) =
                self.reservation.resize_to(self.chunk.capacity() + self.decoder.buffered_bytes())
            {
                self.is_over = true;
                return Some(Err(EventError::BudgetExhausted));
            }
            self.chunk.clear();
            self.taken = 0;
            if !read_more(&mut self.body, &mut self.chunk).await.ok()? {
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
        assert_eq!(KEEP_ALIVE + KEEP_ALIVE_INTERVAL * KEEP_ALIVE_TRIES, DEAD_TIMEOUT);
        // One of HTTP/2 is asked, and has as long to answer.
        assert!(KEEP_ALIVE * 2 <= DEAD_TIMEOUT);
    }
}
