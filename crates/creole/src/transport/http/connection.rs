//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use super::answer::{Answer, Peer, Refusal};
use super::drain::{Stage, Watch};
use super::handover::{Handover, is_stream, is_to_be_left};
use super::incoming::Incoming;
use super::opening::{Opening, Version};
use super::outgoing::Outgoing;
use super::pace::{InFlight, Pace};
use super::places::Place;
use super::plain::{End, plain};
use super::request::Head;
use super::router::Router;
use super::speaker::Overseer;
use super::versions::{One, Protocol, Two};
use super::wire::Wire;
use crate::catch_panic::{CatchPanic, CaughtPanic};
use crate::chain::BoxFuture;

/// What a connection needs to be served.
pub(super) struct Served<A> {
    pub(super) router: Arc<Router<A>>,
    pub(super) protocol: Arc<Protocol>,
    pub(super) peer: Peer,
    pub(super) pace: Arc<Pace>,
    pub(super) watch: Watch,
    /// Its place among the connections that there may be.
    pub(super) place: Place,
}

/// Serves one connection until it ends, takes too long, or the server does.
pub(super) fn serve<A: Answer, T>(stream: T, served: Served<A>) -> impl Future<Output = ()> + Send
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // On the heap, so that a response that lasts does not keep the room of what came before it.
    let spoken = Box::pin(speak(stream, served));
    async move {
        if let Some(lasting) = spoken.await {
            lasting.await;
        }
    }
}

/// Speaks until the connection ends, or until there is nothing more to do on it but to write one response.
async fn speak<A: Answer, T>(stream: T, served: Served<A>) -> Option<BoxFuture<'static, ()>>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Served { router, protocol, peer, pace, mut watch, place } = served;
    let mut overseer = Overseer {
        pace: Arc::clone(&pace),
        watch: &mut watch,
        timer: pin!(sleep_until(Instant::now())),
        stage: Stage::Serving,
        concluding: false,
    };
    let mut opening = Opening::new(Wire::new(stream, Arc::clone(&pace)));
    let opened = overseer.listen(&mut opening).await?;
    let (version, wire) = whole(opened)??;
    let wire = match version {
        Version::Two => wire,
        Version::One => {
            let mut plain = plain(wire, Arc::clone(&router), Arc::clone(&pace), peer);
            match whole(overseer.listen(&mut plain).await?)? {
                End::Over => return None,
                End::Lasting(lasting) => return Some(Box::pin(lasting.run(watch, place))),
                End::Other(wire) => *wire,
            }
        }
    };
    let wire = TokioIo::new(wire);
    let handover = Handover::new();
    let (requests, left) = (Arc::clone(&pace), Arc::clone(&handover));
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (router, left) = (Arc::clone(&router), Arc::clone(&left));
        let (head, body) = request.into_parts();
        let mut head = Head::from(head);
        // From now on, and not from when it is first looked at: its client may end in between.
        let running = requests.begin(head.version);
        async move {
            let response = answered(&router, running, &mut head, body.into(), peer).await;
            if !is_to_be_left(&head, &response) && !is_stream(&head, &response) {
                return Ok::<_, Infallible>(response);
            }
            left.put(head.version, response);
            pending().await
        }
    });
    if version == Version::Two {
        let mut two = Two(Box::pin(protocol.two.serve_connection(wire, service)));
        whole(overseer.listen(&mut two).await?);
        return None;
    }
    let connection = protocol.one.serve_connection(wire, service);
    let mut one = One { connection, handover, pace };
    whole(overseer.listen(&mut one).await?)?;
    let lasting = one.taken_over()?;
    Some(Box::pin(lasting.run(watch, place)))
}

/// The answer to a request, which counts as running until that is complete.
pub(super) async fn answered<A: Answer>(
    router: &Router<A>,
    running: InFlight,
    head: &mut Head,
    body: Incoming,
    peer: Peer,
) -> Response<Outgoing<A::Body>> {
    let answered = CatchPanic(pin!(router.answer(head, body, peer))).await;
    answered.unwrap_or_else(broken_down).map(|body| body.holding(running))
}

/// What came of something on a connection, unless that broke off.
fn whole<V, E: Display>(ended: Result<V, E>) -> Option<V> {
    let told = |error| tracing::debug!(target: "creole::http", %error, "a connection broke off");
    ended.map_err(told).ok()
}

/// What is answered in place of an answer that could not be made.
fn broken_down<B>(panic: CaughtPanic) -> Response<Outgoing<B>> {
    tracing::error!(target: "creole::http", message = %panic.message, "an answer broke down");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Refusal::new(status, "the server broke down on this request").into_response()
}
