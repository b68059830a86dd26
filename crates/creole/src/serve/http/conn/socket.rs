//! A socket that records when its client reads nothing.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::serve::http::conn::timeouts::ConnectionTimeouts;

/// The lowest layer, so that only bytes that the client's side accepted count as progress.
#[derive(Debug)]
pub(crate) struct TimedSocket<S> {
    inner: S,
    timeouts: Arc<ConnectionTimeouts>,
    /// Whether the last write was not accepted.
    blocked: bool,
}

impl<S> TimedSocket<S> {
    pub(crate) fn new(inner: S, timeouts: Arc<ConnectionTimeouts>) -> Self {
        Self { inner, timeouts, blocked: false }
    }

    fn record_write<R>(&mut self, written: Poll<R>) -> Poll<R> {
        let blocked = written.is_pending();
        if blocked != self.blocked {
            self.blocked = blocked;
            self.timeouts.set_blocked(blocked);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.record_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.record_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
