//! Connections of either version of HTTP, as hyper serves them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::BoxError;
use super::handover::Handover;
use super::lasting::Lasting;
use super::limits::{
    CONNECTION_WINDOW, HEAD, LOCAL_RESETS, Limits, PENDING_RESETS, PIECE, PING, SEND_BUFFER, SPARE,
    STREAM_WINDOW, STREAMS,
};
use super::outgoing::Outgoing;
use super::pace::Pace;
use super::speaker::Speaker;
use super::streams::Streams;
use super::wire::Wire;

/// How connections are read and written, the same for all.
pub(super) struct Protocol {
    pub(super) one: http1::Builder,
    pub(super) two: http2::Builder<Streams>,
}

impl Protocol {
    /// Both versions of HTTP, with their limits.
    ///
    /// The reader's own timer for heads is off: it also runs while a connection rests between two requests,
    /// so [`Pace`] keeps the time.
    pub(super) fn new(limits: &Limits) -> Self {
        let mut one = http1::Builder::new();
        // A head that is too long is refused by the wire, for every reader in the same way.
        one.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(HEAD + SPARE);
        let mut two = http2::Builder::new(Streams { patience: limits.write_timeout });
        two.timer(TokioTimer::new())
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
        Self { one, two }
    }
}

/// A connection of HTTP/1.
pub(super) struct One<T, S, B>
where
    S: Service<Request<Incoming>, Response = Response<Outgoing<B>>, Error = Infallible>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    pub(super) connection: http1::Connection<TokioIo<Wire<T>>, S>,
    pub(super) handover: Arc<Handover<Outgoing<B>>>,
    pub(super) pace: Arc<Pace>,
}

impl<T, S, B> One<T, S, B>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<Outgoing<B>>, Error = Infallible>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    /// The response that is left to be written, and the wire for it, if there is one.
    pub(super) fn taken_over(self) -> Option<Box<Lasting<T, B>>> {
        let (version, response) = self.handover.take()?;
        let parts = self.connection.into_parts();
        let wire = parts.io.into_inner();
        let unread = parts.read_buf.len();
        Some(Box::new(Lasting::new(wire, self.pace, unread, version, response)))
    }
}

impl<T, S, B> Speaker for One<T, S, B>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<Outgoing<B>>, Error = Infallible> + Unpin,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    type End = hyper::Result<()>;

    /// Also ends when there is a response to be taken over, and nothing of an earlier one left to be written.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End> {
        match Pin::new(&mut self.connection).poll(context) {
            Poll::Pending if self.handover.is_left() && self.pace.is_flushed() => {
                Poll::Ready(Ok(()))
            }
            ended => ended,
        }
    }

    fn conclude(&mut self) {
        Pin::new(&mut self.connection).graceful_shutdown();
    }
}

/// A connection of HTTP/2.
pub(super) struct Two<C>(pub(super) Pin<Box<C>>);

impl<T, S, B> Speaker for Two<http2::Connection<TokioIo<Wire<T>>, S, Streams>>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<Outgoing<B>>, Error = Infallible>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
    Streams: Http2ServerConnExec<S::Future, Outgoing<B>>,
{
    type End = hyper::Result<()>;

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End> {
        self.0.as_mut().poll(context)
    }

    fn conclude(&mut self) {
        self.0.as_mut().graceful_shutdown();
    }
}
