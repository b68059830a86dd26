//! The connector for HTTP servers, and readers for responses: whole documents and event streams.

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

/// Timeout for connecting.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may be silent before it is probed.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The interval of further probes, and how many may fail before the connection counts as dead.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_TRIES: u32 = 4;

/// How long sent data, probes included, may stay unacknowledged before the connection counts as dead.
pub(crate) const DEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an unused connection is kept.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to a server, directly or through a proxy.
pub(crate) type ServerConnector = HttpsConnector<ProxyConnector<HttpConnector>>;

/// Creates the connector.
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

/// A connector without TLS, to the addresses that the resolver returns.
pub(crate) fn tcp_connector<R>(resolver: R) -> HttpConnector<R> {
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector
}

/// The body of a request, as one piece; it may be empty.
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
    /// Other bodies use all the memory of the budget.
    BudgetExhausted,
}

impl From<BudgetExhausted> for BodyReadError {
    fn from(_: BudgetExhausted) -> Self {
        Self::BudgetExhausted
    }
}

/// A whole body, which holds its memory reservation as long as it exists.
#[derive(Debug, Default)]
pub(crate) struct ResponseDocument {
    pub(crate) bytes: Vec<u8>,
    reservation: Option<Reservation>,
}

impl ResponseDocument {
    /// Its bytes, for a caller that keeps them.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        drop(self.reservation);
        self.bytes
    }
}

/// Space for a prefix that is written before a large document when it is forwarded.
const SPARE: usize = 512;

/// Reads a whole body. `hold` reserves memory for it once it is not small.
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

/// Appends the next piece of a body; returns whether there was one. Cancel-safe.
async fn read_more(body: &mut ResponseBody, into: &mut Vec<u8>) -> Result<bool, ()> {
    poll_fn(|context| body.poll_append(context, into)).await
}

/// Why an event is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventError {
    /// It is too long, or not UTF-8.
    Unreadable,
    /// Other bodies use all the memory of the budget. The stream is over.
    BudgetExhausted,
}

/// Reserves memory for the events of a server.
type ReserveMemory = Box<dyn FnOnce() -> Reservation + Send>;

/// A body that is an event stream.
pub(crate) struct EventStream {
    body: ResponseBody,
    reservation: BufferReservation<ReserveMemory>,
    decoder: SseDecoder,
    chunk: Vec<u8>,
    /// How much of the chunk is decoded.
    taken: usize,
    /// Whether reading is over.
    is_over: bool,
}

impl EventStream {
    /// The events in a body. `hold` reserves memory for them once they are not small.
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

    /// The next event, or why one was dropped; `None` at the end, whatever its cause. Cancel-safe.
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
        // HTTP/2 connections are pinged, and have as long to respond.
        assert!(KEEP_ALIVE * 2 <= DEAD_TIMEOUT);
    }
}
