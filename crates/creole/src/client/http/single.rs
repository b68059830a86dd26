//! A connection of HTTP/1.1, which carries one request at a time. Whoever has it writes and reads on it themselves:
//! a task of its own, and channels to that, would cost a call more than all that is said on it.

mod reply;
mod rest;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::rest::Rest;
use super::answer::Head;
use super::request::Request;
use super::route::Hop;

/// How much is read at once, at first and while much comes.
const LEAST_READ: usize = 8 * 1024;
const MOST_READ: usize = 256 * 1024;

/// The longest head of an answer.
const LONGEST_HEAD: usize = 64 * 1024;

/// A body up to this size is written together with its head.
const SMALL_BODY: usize = 64 * 1024;

/// What bytes travel on, encrypted or not.
pub(super) type Stream = MaybeHttpsStream<Hop>;

/// Says that nothing more comes, where the end of a stream could be somebody else's doing.
pub(super) trait Goodbye {
    /// Says it, unless that would have to wait.
    fn say_goodbye(&mut self) {}
}

impl Goodbye for TokioIo<Stream> {
    /// Whoever cuts an encrypted connection cannot say it (RFC 8446, section 6.1); of another nobody wants to hear it.
    fn say_goodbye(&mut self) {
        if matches!(self.inner(), MaybeHttpsStream::Https(_)) {
            let mut context = Context::from_waker(Waker::noop());
            // Who is gone already does not hear it.
            _ = Pin::new(self).poll_shutdown(&mut context);
        }
    }
}

/// A connection that carries one request at a time.
pub(super) struct Single<S: Goodbye = TokioIo<Stream>> {
    stream: S,
    /// What was read, between two places; the rest is room.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    outgoing: Outgoing,
    rest: Rest,
    /// Whether no other request can follow.
    is_last: bool,
}

/// A request on its way.
#[derive(Default)]
struct Outgoing {
    /// Its head, and its body if that is small.
    text: Vec<u8>,
    /// How much of the text was written.
    written: usize,
    /// The body, if it is large.
    body: Bytes,
    is_flushed: bool,
}

impl Outgoing {
    fn put(&mut self, request: &Request) {
        self.text.clear();
        self.text.shrink_to(SMALL_BODY);
        self.written = 0;
        self.is_flushed = false;
        request.write_head(&mut self.text);
        self.body = match request.body.len() {
            ..=SMALL_BODY => {
                self.text.extend_from_slice(&request.body);
                Bytes::new()
            }
            _ => request.body.clone(),
        };
    }

    fn is_written(&self) -> bool {
        self.is_flushed && self.written == self.text.len() && self.body.is_empty()
    }
}

impl Single {
    /// A new connection.
    pub(super) fn new(stream: Stream) -> Box<Self> {
        Self::on(TokioIo::new(stream))
    }
}

impl<S: Goodbye> Drop for Single<S> {
    fn drop(&mut self) {
        self.stream.say_goodbye();
    }
}

impl<S: AsyncRead + AsyncWrite + Goodbye + Unpin> Single<S> {
    fn on(stream: S) -> Box<Self> {
        Box::new(Self {
            stream,
            buffer: vec![0; LEAST_READ],
            start: 0,
            end: 0,
            outgoing: Outgoing { is_flushed: true, ..Outgoing::default() },
            rest: Rest::NOTHING,
            is_last: false,
        })
    }

    /// Whether another request may follow: the last one was written and its answer read to the end.
    pub(super) fn is_free(&self) -> bool {
        let is_read = self.rest.is_over() && self.start == self.end;
        is_read && self.outgoing.is_written() && !self.is_last
    }

    /// Whether nothing has come while nobody waited for anything, such as its end.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.poll_fill(&mut context).is_pending()
    }

    /// Gives back the room that much took.
    pub(super) fn shrink(&mut self) {
        self.buffer.truncate(LEAST_READ);
        self.buffer.shrink_to_fit();
        (self.start, self.end) = (0, 0);
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// With the reason, and whether anything of the request was sent.
    pub(super) async fn send(&mut self, request: &Request) -> Result<Head, (io::Error, bool)> {
        self.outgoing.put(request);
        let answered = poll_fn(|context| self.poll_head(context)).await;
        answered.map_err(|error| (error, self.outgoing.written > 0))
    }

    /// Puts more of the body down; tells whether there was more.
    pub(super) fn poll_more(
        &mut self,
        context: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<io::Result<bool>> {
        let before = into.len();
        while into.len() == before && !self.rest.is_over() {
            if self.start == self.end {
                // A server may answer before it has read everything; whether it reads the rest is its own matter.
                _ = self.poll_write(context);
                let was_full = self.end == self.buffer.len();
                if was_full && self.end < MOST_READ {
                    self.buffer.resize(self.end * 2, 0);
                }
                if ready!(self.poll_fill(context))? == 0 {
                    return Poll::Ready(self.closed().map(|()| false));
                }
            }
            self.start += self.rest.take(&self.buffer[self.start..self.end], into)?;
        }
        Poll::Ready(Ok(into.len() > before))
    }

    /// How much of the body is to come, if that is known.
    pub(super) fn length(&self) -> Option<u64> {
        self.rest.length()
    }

    /// The server has closed the connection, which is the end of some bodies.
    fn closed(&mut self) -> io::Result<()> {
        let is_end = self.rest == Rest::UntilClosed;
        (self.rest, self.is_last) = (Rest::NOTHING, true);
        if is_end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Head>> {
        let written = self.poll_write(context);
        // Also where nothing can be written any more: the server may have said why.
        let came = loop {
            let came = self.poll_fill(context)?;
            if !matches!(came, Poll::Ready(1..)) {
                break came;
            }
            if let Some((reply, length)) = reply::read(&self.buffer[self.start..self.end])? {
                self.start += length;
                (self.rest, self.is_last) = (reply.rest, reply.is_last);
                return Poll::Ready(Ok(reply.head));
            }
        };
        if let Poll::Ready(Err(error)) = written {
            return Poll::Ready(Err(error));
        }
        came.map(|_| Err(io::ErrorKind::UnexpectedEof.into()))
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Outgoing { text, written, body, is_flushed } = &mut self.outgoing;
        let mut stream = Pin::new(&mut self.stream);
        while *written < text.len() {
            *written += some(ready!(stream.as_mut().poll_write(context, &text[*written..]))?)?;
        }
        while !body.is_empty() {
            body.advance(some(ready!(stream.as_mut().poll_write(context, body))?)?);
        }
        if !*is_flushed {
            ready!(stream.poll_flush(context))?;
            *is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, behind what was read before; tells how much came.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            // Only the head of an answer has to lie there as a whole.
            if self.end >= LONGEST_HEAD {
                let detail = "the head of the answer is too long";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, detail)));
            }
            self.buffer.resize(self.end * 2, 0);
        }
        let mut room = ReadBuf::new(&mut self.buffer[self.end..]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut room))?;
        let count = room.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }
}

/// A stream that takes nothing is closed.
fn some(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

#[cfg(test)]
mod tests;
