//! The stream of one connection: screens the bytes that are read, and closes so that the last response arrives.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use creole_proto::http::smuggling::{SmugglingErrorKind, SmugglingGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::serve::http::conn::prober::HalfCloseProber;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::web::limits::{LINGER, LINGER_BYTES, MAX_HEAD_BYTES, MAX_HEADERS};

/// The bytes that replace rejected input: invalid in every parser state, so that the parser responds 400 and closes.
/// The line ends make it parse at once.
const BAD_REQUEST_BYTES: &[u8] = b"\0\r\n\r\n";

/// The bytes that replace the rest of a head that is too long: the end of its first line, and more headers than a
/// request may have, so that the parser responds 431 and closes.
const TOO_MANY_HEADERS_BYTES: [u8; FIRST.len() + (MAX_HEADERS + 1) * FIELD.len() + 2] = {
    let mut flood = [0; _];
    let mut at = 0;
    while at < flood.len() {
        let behind = at.saturating_sub(FIRST.len());
        flood[at] = match at {
            _ if at < FIRST.len() => FIRST[at],
            _ if behind < (MAX_HEADERS + 1) * FIELD.len() => FIELD[behind % FIELD.len()],
            _ => b"\r\n"[behind % 2],
        };
        at += 1;
    }
    flood
};
const FIRST: &[u8] = b" HTTP/1.1\r\n";
const FIELD: &[u8] = b"a:\r\n";

/// Written to a client that closed its sending side, to see whether it still reads: an interim response, which has no
/// meaning and which every HTTP/1.1 client supports (RFC 9110, 15.2).
const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Slices of one write are joined up to this total size.
const MAX_JOINED_BYTES: usize = 1024;

/// The stream of one connection, inside TLS if there is any.
#[derive(Debug)]
pub(crate) struct ScreenedStream<T> {
    inner: T,
    timeouts: Arc<ConnectionTimeouts>,
    guard: SmugglingGuard,
    /// Bytes that were read and put back.
    read_ahead: Bytes,
    /// Whether the smuggling guard was inside a head after the last read.
    in_head: bool,
    /// The rest of the replacement bytes, once input was rejected.
    rejection: Option<&'static [u8]>,
    /// The rest of an interim response.
    interim: &'static [u8],
    /// Detects whether a client that closed its sending side still reads.
    prober: Option<HalfCloseProber>,
    /// The reader of a client that closed its sending side; it must check again when everything is written.
    reader: Option<Waker>,
    end: CloseState,
}

#[derive(Debug)]
enum CloseState {
    Open,
    /// Our side is closed. Further input is read and discarded, because closing a socket with unread bytes also
    /// discards the response that the client has not read yet.
    Lingering {
        until: Pin<Box<Sleep>>,
        left: usize,
    },
    Closed,
}

impl<T> ScreenedStream<T> {
    pub(crate) fn new(inner: T, timeouts: Arc<ConnectionTimeouts>) -> Self {
        let guard = SmugglingGuard::new(MAX_HEAD_BYTES);
        Self {
            inner,
            timeouts,
            guard,
            read_ahead: Bytes::new(),
            in_head: false,
            rejection: None,
            interim: b"",
            prober: None,
            reader: None,
            end: CloseState::Open,
        }
    }

    /// Puts back bytes that were read; they are read again first.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        self.read_ahead = bytes;
    }

    /// Screens the bytes behind `from`, and removes those that are rejected.
    fn screen_bytes(&mut self, buffer: &mut ReadBuf<'_>, from: usize) {
        if let Err(refused) = self.guard.check(&buffer.filled()[from..]) {
            tracing::debug!(target: "creole::http", flaw = ?refused.kind, "a malformed request was refused");
            buffer.set_filled(from + refused.at);
            self.rejection = Some(match refused.kind {
                SmugglingErrorKind::LongRequestLine => &TOO_MANY_HEADERS_BYTES,
                SmugglingErrorKind::LongHead => &TOO_MANY_HEADERS_BYTES[FIRST.len()..],
                _ => BAD_REQUEST_BYTES,
            });
            self.write_rejection(buffer);
        }
        let in_head = self.guard.is_inside_head();
        if in_head != self.in_head {
            self.in_head = in_head;
            self.timeouts.set_in_head(in_head);
        }
    }

    fn write_rejection(&mut self, buffer: &mut ReadBuf<'_>) {
        if let Some(rest) = self.rejection {
            let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
            buffer.put_slice(now);
            self.rejection = Some(later);
        }
    }

    /// How the stream ends once our side is closed.
    fn closing_state(&self) -> CloseState {
        if self.rejection.is_none() && self.guard.is_between_requests() {
            return CloseState::Closed;
        }
        CloseState::Lingering {
            until: Box::pin(sleep_until(Instant::now() + LINGER)),
            left: LINGER_BYTES,
        }
    }
}

/// The slices concatenated, if they fit.
fn join<'a>(slices: &[IoSlice<'_>], buffer: &'a mut [u8; MAX_JOINED_BYTES]) -> Option<&'a [u8]> {
    let mut filled = 0;
    for slice in slices {
        let end = filled + slice.len();
        buffer.get_mut(filled..end)?.copy_from_slice(slice);
        filled = end;
    }
    Some(&buffer[..filled])
}

impl<T: AsyncWrite + Unpin> ScreenedStream<T> {
    /// Whether the client waits for a response, or the rest of one, and has sent its whole request. Then the end of its
    /// input is not the end of the connection.
    fn is_response_pending(&self) -> bool {
        self.guard.is_outside_body() && !(self.timeouts.is_idle() && self.timeouts.is_flushed())
    }

    /// The client has closed its sending side. It may still read; an error if it does not.
    fn poll_half_closed(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timeouts.set_half_closed();
        self.reader = Some(context.waker().clone());
        loop {
            ready!(self.prober.get_or_insert_with(HalfCloseProber::new).poll_due(context));
            if self.timeouts.can_send_interim() && self.interim.is_empty() {
                self.interim = INTERIM;
            }
            if let Poll::Ready(Err(gone)) = self.poll_interim(context) {
                return Poll::Ready(Err(gone));
            }
        }
    }

    /// Writes the rest of an interim response.
    fn poll_interim(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.is_empty() {
            let taken = ready!(Pin::new(&mut self.inner).poll_write(context, self.interim))?;
            if taken == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.interim = &self.interim[taken..];
            if self.interim.is_empty() {
                ready!(Pin::new(&mut self.inner).poll_flush(context))?;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for ScreenedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.read_ahead.is_empty() {
            let now = self.read_ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.read_ahead[..now]);
            self.read_ahead.advance(now);
            return Poll::Ready(Ok(()));
        }
        if self.rejection.is_some() {
            // The replacement bytes are followed by the end: no input behind rejected bytes is ever read as a request.
            self.write_rejection(buffer);
            return Poll::Ready(Ok(()));
        }
        let (from, available) = (buffer.filled().len(), buffer.remaining());
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if buffer.filled().len() == from && available > 0 && self.is_response_pending() {
            return self.poll_half_closed(context);
        }
        self.screen_bytes(buffer, from);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ScreenedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(context))?;
        self.timeouts.set_unflushed(true);
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(context))?;
        self.timeouts.set_unflushed(true);
        let inner = Pin::new(&mut self.inner);
        // A system call for one slice is cheaper than one for several, by more than the cost of joining small slices.
        let mut together = [0; MAX_JOINED_BYTES];
        match join(slices, &mut together) {
            Some(joined) => inner.poll_write(context, joined),
            None => inner.poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.inner).poll_flush(context));
        self.timeouts.set_unflushed(false);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let CloseState::Open = self.end {
            ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
            self.end = self.closing_state();
        }
        let wire = &mut *self;
        while let CloseState::Lingering { until, left } = &mut wire.end {
            let mut scratch = [0; 4096];
            let mut forgotten = ReadBuf::new(&mut scratch);
            let read = Pin::new(&mut wire.inner).poll_read(context, &mut forgotten);
            *left = left.saturating_sub(forgotten.filled().len());
            let more = match read {
                Poll::Pending => {
                    ready!(until.as_mut().poll(context));
                    false
                }
                Poll::Ready(result) => result.is_ok() && !forgotten.filled().is_empty(),
            };
            if !more || *left == 0 {
                wire.end = CloseState::Closed;
            }
        }
        Poll::Ready(Ok(()))
    }
}
