//! How a server is connected to, and reading what it answers: whole documents and streams of events.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::framing::sse::{Event, SseDecoder, SseError};
use http_body::{Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::GaiResolver;

use super::answer::Body;
use super::proxy::Proxies;
use super::route::Route;
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
}

/// Room for what may be written before a large document when it is passed on.
const SPARE: usize = 512;

/// Reads a whole body.
pub(super) async fn document(mut body: Body, longest: usize) -> Result<Vec<u8>, Unread> {
    let told = body.length().unwrap_or(0);
    if told > longest as u64 {
        return Err(Unread::TooLong);
    }
    let spare = if told < LARGE as u64 { 0 } else { SPARE };
    let mut whole = Vec::with_capacity(told as usize + spare);
    while more(&mut body, &mut whole).await.map_err(|()| Unread::Broken)? {
        if whole.len() > longest {
            return Err(Unread::TooLong);
        }
    }
    Ok(whole)
}

/// Puts the next piece of a body down; tells whether there was one. Cancel-safe.
async fn more(body: &mut Body, into: &mut Vec<u8>) -> Result<bool, ()> {
    poll_fn(|context| body.poll_more(context, into)).await
}

/// A body that is a stream of events.
pub(super) struct Events {
    body: Body,
    decoder: SseDecoder,
    chunk: Vec<u8>,
    /// How much of the chunk was decoded.
    taken: usize,
}

impl Events {
    pub(super) fn new(body: Body, longest: usize) -> Self {
        Self { body, decoder: SseDecoder::new(longest), chunk: Vec::new(), taken: 0 }
    }

    /// The next event, or why one was dropped; nothing at the end, of whatever kind it is. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Event, SseError>> {
        loop {
            let mut rest = &self.chunk[self.taken..];
            let event = self.decoder.next(&mut rest);
            self.taken = self.chunk.len() - rest.len();
            if event.is_some() {
                return event;
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
