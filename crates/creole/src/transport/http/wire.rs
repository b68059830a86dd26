//! The stream of one connection: screens what is read, and ends so that the last answer arrives.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use creole_proto::http::screen::Screen;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::{LINGER, LINGER_BYTES};
use super::pace::Pace;

/// What the reader is given in place of refused bytes: wrong in every state, so that it answers 400 and
/// closes. The line ends make it look at once.
const POISON: &[u8] = b"\0\r\n\r\n";

/// What is written at once is joined if it has at most that many bytes.
const LITTLE: usize = 1024;

/// The stream of one connection, inside of TLS if there is any.
#[derive(Debug)]
pub(super) struct Wire<T> {
    inner: T,
    pace: Arc<Pace>,
    screen: Screen,
    /// What was read and given back.
    ahead: Bytes,
    /// Whether the screen was inside a head after the last read.
    in_head: bool,
    /// What is left of the poison, once something was refused.
    poison: Option<&'static [u8]>,
    end: End,
}

#[derive(Debug)]
enum End {
    Open,
    /// Our side is closed; what the client still sends is read and forgotten, because closing a socket on
    /// unread bytes also takes back the answer that the client has not read yet.
    Lingering {
        until: Pin<Box<Sleep>>,
        left: usize,
    },
    Closed,
}

impl<T> Wire<T> {
    pub(super) fn new(inner: T, pace: Arc<Pace>) -> Self {
        let screen = Screen::new();
        Self {
            inner,
            pace,
            screen,
            ahead: Bytes::new(),
            in_head: false,
            poison: None,
            end: End::Open,
        }
    }

    /// Gives back bytes that were read, to be read again before all others.
    pub(super) fn give_back(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    /// Looks at the bytes behind `from`, and takes back those that are refused.
    fn look(&mut self, buffer: &mut ReadBuf<'_>, from: usize) {
        if let Err(refused) = self.screen.pass(&buffer.filled()[from..]) {
            tracing::debug!(target: "creole::http", flaw = ?refused.flaw, "bytes were refused");
            buffer.set_filled(from + refused.at);
            self.poison = Some(POISON);
            self.give_poison(buffer);
        }
        let in_head = self.screen.is_inside_head();
        if in_head != self.in_head {
            self.in_head = in_head;
            self.pace.head(in_head);
        }
    }

    fn give_poison(&mut self, buffer: &mut ReadBuf<'_>) {
        if let Some(rest) = self.poison {
            let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
            buffer.put_slice(now);
            self.poison = Some(later);
        }
    }

    /// How the stream ends when our side is closed.
    fn last_state(&self) -> End {
        if self.poison.is_none() && self.screen.is_between() {
            return End::Closed;
        }
        End::Lingering { until: Box::pin(sleep_until(Instant::now() + LINGER)), left: LINGER_BYTES }
    }
}

/// The slices behind each other, if there is room for them.
fn join<'a>(slices: &[IoSlice<'_>], room: &'a mut [u8; LITTLE]) -> Option<&'a [u8]> {
    let mut filled = 0;
    for slice in slices {
        let end = filled + slice.len();
        room.get_mut(filled..end)?.copy_from_slice(slice);
        filled = end;
    }
    Some(&room[..filled])
}

impl<T: AsyncRead + Unpin> AsyncRead for Wire<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let now = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead[..now]);
            self.ahead.advance(now);
            return Poll::Ready(Ok(()));
        }
        if self.poison.is_some() {
            // Behind the poison is the end: nothing that follows refused bytes is ever read as a request.
            self.give_poison(buffer);
            return Poll::Ready(Ok(()));
        }
        let from = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.look(buffer, from);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pace.unwritten(true);
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.pace.unwritten(true);
        let inner = Pin::new(&mut self.inner);
        // A system call for one slice costs less than one for several: more than it costs to join what is little.
        let mut together = [0; LITTLE];
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
        self.pace.unwritten(false);
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let End::Open = self.end {
            ready!(Pin::new(&mut self.inner).poll_shutdown(context))?;
            self.end = self.last_state();
        }
        let wire = &mut *self;
        while let End::Lingering { until, left } = &mut wire.end {
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
                wire.end = End::Closed;
            }
        }
        Poll::Ready(Ok(()))
    }
}
