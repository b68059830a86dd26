//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};

use super::answer::{Answer, Peer, Refusal};
use super::drain::{Stage, Watch};
use super::limits::{
    CONNECTION_WINDOW, GOODBYE, HEAD, LAST_CALL, LOCAL_RESETS, Limits, PENDING_RESETS, PIECE, PING,
    SEND_BUFFER, STREAM_WINDOW, STREAMS,
};
use super::outgoing::Outgoing;
use super::pace::{Overdue, Pace};
use super::router::Router;
use super::streams::Streams;
use super::wire::Wire;
use crate::guard::{CatchPanic, Panic};

/// How connections are read and written, the same for all.
pub(super) type Protocol = auto::Builder<Streams>;

/// Both versions of HTTP, with their limits.
///
/// The reader's own timer for heads is off: it also runs while a connection rests between two requests, so
/// [`Pace`] keeps the time.
pub(super) fn protocol(limits: &Limits) -> Protocol {
    let mut protocol = Protocol::new(Streams { patience: limits.write_timeout });
    protocol.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEAD);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(LOCAL_RESETS)
        .max_header_list_size(u32::try_from(HEAD).unwrap_or(u32::MAX))
        .max_frame_size(u32::try_from(PIECE).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    protocol
}

/// Serves one connection until it ends, takes too long, or the server does.
pub(super) async fn serve<A: Answer, T>(
    stream: T,
    peer: Peer,
    pace: Arc<Pace>,
    router: Arc<Router<A>>,
    protocol: &Protocol,
    mut watch: Watch,
) where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let wire = TokioIo::new(Wire::new(stream, Arc::clone(&pace)));
    let requests = Arc::clone(&pace);
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, running) = (Arc::clone(&router), requests.begin());
        let (mut head, body) = request.into_parts();
        async move {
            let answered = CatchPanic(pin!(router.answer(&mut head, body, peer))).await;
            let response = answered.unwrap_or_else(broken_down);
            // The request counts as running until its answer is complete.
            Ok::<_, Infallible>(response.map(|body| body.holding(running)))
        }
    });
    let mut connection = pin!(protocol.serve_connection(wire, service));
    let mut stage = Stage::Serving;
    let mut closing = false;
    let mut timer = pin!(sleep_until(Instant::now()));
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(target: "creole::http", %error, "a connection broke off");
                }
                return;
            }
            reached = watch.beyond(stage) => {
                stage = reached;
                if stage == Stage::Ended {
                    return;
                }
                if pace.is_idle() {
                    // A request may be on its way already.
                    timer.as_mut().reset(Instant::now() + LAST_CALL);
                } else {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
            () = timer.as_mut() => {
                let now = Instant::now();
                let late = match pace.check(now) {
                    Ok(_) if stage == Stage::Draining && !closing => Overdue::Idle,
                    Ok(next) => {
                        timer.as_mut().reset(next);
                        continue;
                    }
                    Err(late) => late,
                };
                if closing || late != Overdue::Idle {
                    tracing::debug!(target: "creole::http", ?late, "a connection was closed");
                    return;
                }
                closing = true;
                connection.as_mut().graceful_shutdown();
                timer.as_mut().reset(now + GOODBYE);
            }
        }
    }
}

/// What is answered in place of an answer that could not be made.
fn broken_down<B>(panic: Panic) -> Response<Outgoing<B>> {
    tracing::error!(target: "creole::http", message = %panic.message, "an answer broke down");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    Refusal::new(status, "the server broke down on this request").into_response()
}
