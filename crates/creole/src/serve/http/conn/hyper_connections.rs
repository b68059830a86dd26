//! HTTP/1 and HTTP/2 connections that hyper serves.

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

use crate::serve::http::conn::http1::detach::DetachSlot;
use crate::serve::http::conn::http1::streaming::StreamingResponse;
use crate::serve::http::conn::http2_requests::Http2Executor;
use crate::serve::http::conn::outgoing::OutgoingBody;
use crate::serve::http::conn::screened_stream::ScreenedStream;
use crate::serve::http::conn::supervise::Drivable;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::web::incoming::BoxError;
use crate::serve::http::web::limits::{
    CONNECTION_WINDOW, HttpLimits, MAX_HEAD_BYTES, MAX_LOCAL_RESETS, MAX_PENDING_RESETS,
    MAX_PIECE_BYTES, MAX_STREAMS, PING_INTERVAL, SEND_BUFFER, SPARE, STREAM_WINDOW,
};

/// hyper's settings, the same for all connections.
pub(crate) struct HyperBuilders {
    pub(crate) http1: http1::Builder,
    pub(crate) http2: http2::Builder<Http2Executor>,
}

impl HyperBuilders {
    /// Both versions of HTTP, with their limits.
    ///
    /// hyper's own timer for heads is off: it also runs while a connection is idle between two requests, so
    /// [`ConnectionTimeouts`] enforces the limit.
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        let mut one = http1::Builder::new();
        // The screened stream rejects a head that is too long, for both parsers in the same way.
        one.timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES + SPARE);
        let mut two = http2::Builder::new(Http2Executor { write_timeout: limits.write_timeout });
        two.timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
            .max_local_error_reset_streams(MAX_LOCAL_RESETS)
            .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
            .max_frame_size(u32::try_from(MAX_PIECE_BYTES).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL);
        Self { http1: one, http2: two }
    }
}

/// An HTTP/1 connection.
pub(crate) struct HyperHttp1<T, S, B>
where
    S: Service<Request<Incoming>, Response = Response<OutgoingBody<B>>, Error = Infallible>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    pub(crate) connection: http1::Connection<TokioIo<ScreenedStream<T>>, S>,
    pub(crate) detach: Arc<DetachSlot<OutgoingBody<B>>>,
    pub(crate) timeouts: Arc<ConnectionTimeouts>,
}

impl<T, S, B> HyperHttp1<T, S, B>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<OutgoingBody<B>>, Error = Infallible>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    /// The streaming response that is left to be written, with its stream, if there is one.
    pub(crate) fn into_streaming(self) -> Option<Box<StreamingResponse<T, B>>> {
        let (version, response) = self.detach.take()?;
        let parts = self.connection.into_parts();
        let wire = parts.io.into_inner();
        let unread = parts.read_buf.len();
        Some(Box::new(StreamingResponse::new(wire, self.timeouts, unread, version, response)))
    }
}

impl<T, S, B> Drivable for HyperHttp1<T, S, B>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<OutgoingBody<B>>, Error = Infallible> + Unpin,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
{
    type End = hyper::Result<()>;

    /// Also ends when there is a detached response and all earlier ones are written.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End> {
        match Pin::new(&mut self.connection).poll(context) {
            Poll::Pending if self.detach.is_detached() && self.timeouts.is_flushed() => {
                Poll::Ready(Ok(()))
            }
            ended => ended,
        }
    }

    fn shut_down(&mut self) {
        Pin::new(&mut self.connection).graceful_shutdown();
    }
}

/// An HTTP/2 connection.
pub(crate) struct HyperHttp2<C>(pub(crate) Pin<Box<C>>);

impl<T, S, B> Drivable
    for HyperHttp2<http2::Connection<TokioIo<ScreenedStream<T>>, S, Http2Executor>>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<OutgoingBody<B>>, Error = Infallible>,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin + 'static,
    Http2Executor: Http2ServerConnExec<S::Future, OutgoingBody<B>>,
{
    type End = hyper::Result<()>;

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End> {
        self.0.as_mut().poll(context)
    }

    fn shut_down(&mut self) {
        self.0.as_mut().graceful_shutdown();
    }
}
