//! Serves one connection from its first byte to its last.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;

use http::Request;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use crate::chain::BoxFuture;
use crate::serve::http::conn::handle_request::handle_request;
use crate::serve::http::conn::http1::detach::{DetachSlot, is_event_stream, should_detach};
use crate::serve::http::conn::http1::fast_path::{FastPathEnd, fast_path};
use crate::serve::http::conn::hyper_connections::{HyperBuilders, HyperHttp1, HyperHttp2};
use crate::serve::http::conn::screened_stream::ScreenedStream;
use crate::serve::http::conn::supervise::Supervisor;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::conn::version_sniff::{HttpVersion, VersionSniffer};
use crate::serve::http::web::connection_slots::ConnectionSlot;
use crate::serve::http::web::drain::{DrainStage, DrainWatch};
use crate::serve::http::web::handler::{ConnectionPeer, HttpHandler};
use crate::serve::http::web::request::RequestHead;
use crate::serve::http::web::router::Router;

/// The inputs for serving a connection.
pub(crate) struct ConnectionParts<A> {
    pub(crate) router: Arc<Router<A>>,
    pub(crate) protocol: Arc<HyperBuilders>,
    pub(crate) peer: ConnectionPeer,
    pub(crate) timeouts: Arc<ConnectionTimeouts>,
    pub(crate) drain: DrainWatch,
    /// Its slot among the allowed connections.
    pub(crate) slot: ConnectionSlot,
}

/// Serves one connection until it ends, times out, or the server shuts down.
pub(crate) fn serve<A: HttpHandler, T>(
    stream: T,
    served: ConnectionParts<A>,
) -> impl Future<Output = ()> + Send
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // On the heap, so that a streaming response does not keep the memory of the phases before it.
    let spoken = Box::pin(serve_connection(stream, served));
    async move {
        if let Some(lasting) = spoken.await {
            lasting.await;
        }
    }
}

/// Serves requests until the connection ends, or until only one streaming response is left to be written.
async fn serve_connection<A: HttpHandler, T>(
    stream: T,
    served: ConnectionParts<A>,
) -> Option<BoxFuture<'static, ()>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let ConnectionParts { router, protocol, peer, timeouts, drain: mut watch, mut slot } = served;
    slot.set_gauge(router.metrics().map(|metrics| metrics.connection()));
    let mut supervisor = Supervisor {
        timeouts: Arc::clone(&timeouts),
        drain: &mut watch,
        timer: pin!(sleep_until(Instant::now())),
        stage: DrainStage::Serving,
        is_shutting_down: false,
    };
    let mut sniffer = VersionSniffer::new(ScreenedStream::new(stream, Arc::clone(&timeouts)));
    let opened = supervisor.supervise(&mut sniffer).await?;
    let (version, wire) = ok_or_log(opened)??;
    let is_http2 = version == HttpVersion::Http2;
    slot.set_gauge(router.metrics().map(|metrics| metrics.connection_of(is_http2)));
    let wire = match version {
        HttpVersion::Http2 => wire,
        HttpVersion::Http1 => {
            let mut plain =
                fast_path(wire, Arc::clone(&router), Arc::clone(&timeouts), peer.clone());
            match ok_or_log(supervisor.supervise(&mut plain).await?)? {
                FastPathEnd::Closed => return None,
                FastPathEnd::Streaming(result) => {
                    return Some(Box::pin(result.run(watch, slot)));
                }
                FastPathEnd::Fallback(wire) => *wire,
            }
        }
    };
    let wire = TokioIo::new(wire);
    let detach_slot = DetachSlot::new();
    let (requests, left) = (Arc::clone(&timeouts), Arc::clone(&detach_slot));
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (router, left, peer) = (Arc::clone(&router), Arc::clone(&left), peer.clone());
        let (head, body) = request.into_parts();
        let mut head = RequestHead::from(head);
        // Starts now, not at the first poll: the client may close its side in between.
        let running = requests.begin_request(head.version);
        async move {
            let response = handle_request(&router, running, &mut head, body.into(), &peer).await;
            if !should_detach(&head, &response) && !is_event_stream(&head, &response) {
                return Ok::<_, Infallible>(response);
            }
            left.detach(head.version, response);
            pending().await
        }
    });
    if version == HttpVersion::Http2 {
        let mut two = HyperHttp2(Box::pin(protocol.http2.serve_connection(wire, service)));
        ok_or_log(supervisor.supervise(&mut two).await?);
        return None;
    }
    let connection = protocol.http1.serve_connection(wire, service);
    let mut one = HyperHttp1 { connection, detach: detach_slot, timeouts };
    ok_or_log(supervisor.supervise(&mut one).await?)?;
    let result = one.into_streaming()?;
    Some(Box::pin(result.run(watch, slot)))
}

/// The value of a phase of the connection; logs an error.
fn ok_or_log<V, E: Display>(ended: Result<V, E>) -> Option<V> {
    let told = |error| tracing::debug!(target: "creole::http", %error, "a connection failed");
    ended.map_err(told).ok()
}
