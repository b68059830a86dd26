//! The stream of one connection: screens what is read, and ends so that the last answer arrives.

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

/// What the reader is given in place of refused bytes: wrong in every state, so that it answers 400 and
/// closes. The line ends make it look at once.
const BAD_REQUEST_BYTES: &[u8] = b"\0\r\n\r\n";

/// What the reader is given in place of the rest of a head that is too long: the end of its first line, and more headers
/// than a request may have, so that it answers 431 and closes.
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

/// What is written to a client that closed its side, to see whether it still reads: an interim answer, which means
/// nothing and which every client of HTTP/1.1 knows (RFC 9110, 15.2).
const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What is written at once is joined if it has at most that many bytes.
const MAX_JOINED_BYTES: usize = 1024;

/// The stream of one connection, inside of TLS if there is any.
#[derive(Debug)]
pub(crate) struct ScreenedStream<T> {
    inner: T,
    timeouts: Arc<ConnectionTimeouts>,
    guard: SmugglingGuard,
    /// What was read and given back.
    read_ahead: Bytes,
    /// Whether the screen was inside a head after the last read.
    in_head: bool,
    /// What is left of the poison, once something was refused.
    rejection: Option<&'static [u8]>,
    /// What is left of an interim answer.
    interim: &'static [u8],
    /// Finds out whether a client that closed its side still reads.
    prober: Option<HalfCloseProber>,
    /// Who reads from a client that closed its side, and is to look again when everything was written.
    reader: Option<Waker>,
    end: CloseState,
}

#[derive(Debug)]
enum CloseState {
    Open,
    /// Our side is closed; what the client still sends is read and forgotten, because closing a socket on
    /// unread bytes also takes back the answer that the client has not read yet.
    Lingering {
        until: Pin<Box<Sleep>>,
        left: usize,
    },
    Closed,
}

impl<T> ScreenedStream<T> {
    pub(crate) fn new(inner: T, pace: Arc<ConnectionTimeouts>) -> Self {
        let screen = SmugglingGuard::new(MAX_HEAD_BYTES);
        Self {
            inner,
            timeouts: pace,
            guard: screen,
            read_ahead: Bytes::new(),
            in_head: false,
            rejection: None,
            interim: b"",
            prober: None,
            reader: None,
            end: CloseState::Open,
        }
    }

    /// Gives back bytes that were read, to be read again before all others.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        self.read_ahead = bytes;
    }

    /// Looks at the bytes behind `from`, and takes back those that are refused.
    fn screen_bytes(&mut self, buffer: &mut ReadBuf<'_>, from: usize) {
        if let Err(refused) = self.guard.check(&buffer.filled()[from..]) {
            tracing::debug!(target: "creole::http", flaw = ?refused.kind, "bytes were refused");
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

    /// How the stream ends when our side is closed.
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

/// The slices behind each other, if there is room for them.
fn join<'a>(slices: &[IoSlice<'_>], room: &'a mut [u8; MAX_JOINED_BYTES]) -> Option<&'a [u8]> {
    let mut filled = 0;
    for slice in slices {
        let end = filled + slice.len();
        room.get_mut(filled..end)?.copy_from_slice(slice);
        filled = end;
    }
    Some(&room[..filled])
}

impl<T: AsyncWrite + Unpin> ScreenedStream<T> {
    /// Whether the client waits for an answer, or the rest of one, and has sent all that belongs to its request. Its end is
    /// not the end of the connection then.
    fn is_response_pending(&self) -> bool {
        self.guard.is_outside_body() && !(self.timeouts.is_idle() && self.timeouts.is_flushed())
    }

    /// The client has closed its side. It may still read: an error if it does not.
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

    /// Writes what is left of an interim answer.
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
            // Behind the poison is the end: nothing that follows refused bytes is ever read as a request.
            self.write_rejection(buffer);
            return Poll::Ready(Ok(()));
        }
        let (from, room) = (buffer.filled().len(), buffer.remaining());
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if buffer.filled().len() == from && room > 0 && self.is_response_pending() {
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
        // A system call for one slice costs less than one for several: more than it costs to join what is little.
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
