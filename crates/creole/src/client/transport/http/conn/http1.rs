//! An HTTP/1.1 connection, which carries one request at a time. The exchange that uses it writes and reads on it
//! directly: a separate task with channels would cost a call more than its bytes do.

mod body_framing;
mod response_head;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client::transport::http::conn::http1::body_framing::BodyFraming;
use crate::client::transport::http::conn::proxy_connector::HopStream;
use crate::client::transport::http::conn::request::HttpRequest;
use crate::client::transport::http::conn::response::ResponseHead;

/// Minimum and maximum size of a read; it grows while much data arrives.
const MIN_READ: usize = 8 * 1024;
const MAX_READ: usize = 256 * 1024;

/// Maximum length of a response's head.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// A body up to this size is written together with its head.
const SMALL_BODY: usize = 64 * 1024;

/// The byte stream, encrypted or not.
pub(crate) type ClientStream = MaybeHttpsStream<HopStream>;

/// Signals the end of a stream, where its end could be an attacker's doing.
pub(crate) trait CloseNotify {
    /// Sends the signal, unless that would block.
    fn send_close_notify(&mut self) {}
}

impl CloseNotify for TokioIo<ClientStream> {
    /// An attacker that cuts an encrypted connection cannot send the signal (RFC 8446, section 6.1); an unencrypted one
    /// needs none.
    fn send_close_notify(&mut self) {
        if matches!(self.inner(), MaybeHttpsStream::Https(_)) {
            let mut context = Context::from_waker(Waker::noop());
            // A peer that has disconnected does not receive it.
            _ = Pin::new(self).poll_shutdown(&mut context);
        }
    }
}

/// A connection that carries one request at a time.
pub(crate) struct Http1Connection<S: CloseNotify = TokioIo<ClientStream>> {
    stream: S,
    /// The unread bytes are between `start` and `end`; the rest is free.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    outgoing: RequestWriter,
    framing: BodyFraming,
    /// Whether no other request can follow.
    is_last: bool,
}

/// A request that is being written.
#[derive(Default)]
struct RequestWriter {
    /// Its head, and its body if that is small.
    text: Vec<u8>,
    /// How much of the text is written.
    written: usize,
    /// The body, if it is large.
    body: Bytes,
    is_flushed: bool,
}

impl RequestWriter {
    fn start(&mut self, request: &HttpRequest) {
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

impl Http1Connection {
    /// A new connection.
    pub(crate) fn new(stream: ClientStream) -> Box<Self> {
        Self::from_stream(TokioIo::new(stream))
    }
}

impl<S: CloseNotify> Drop for Http1Connection<S> {
    fn drop(&mut self) {
        self.stream.send_close_notify();
    }
}

impl<S: AsyncRead + AsyncWrite + CloseNotify + Unpin> Http1Connection<S> {
    fn from_stream(stream: S) -> Box<Self> {
        Box::new(Self {
            stream,
            buffer: vec![0; MIN_READ],
            start: 0,
            end: 0,
            outgoing: RequestWriter { is_flushed: true, ..RequestWriter::default() },
            framing: BodyFraming::EMPTY,
            is_last: false,
        })
    }

    /// Whether another request may follow: the last one is written and its response is read to the end.
    pub(crate) fn is_free(&self) -> bool {
        let is_read = self.framing.is_finished() && self.start == self.end;
        is_read && self.outgoing.is_written() && !self.is_last
    }

    /// Whether nothing arrived while the connection was idle, such as its end.
    pub(crate) fn is_still_open(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.poll_fill(&mut context).is_pending()
    }

    /// Frees the space of large reads.
    pub(crate) fn shrink(&mut self) {
        self.buffer.truncate(MIN_READ);
        self.buffer.shrink_to_fit();
        (self.start, self.end) = (0, 0);
    }

    /// Sends a request and waits for the head of its response.
    ///
    /// # Errors
    /// With the reason, and whether anything of the request was sent.
    pub(crate) async fn send(
        &mut self,
        request: &HttpRequest,
    ) -> Result<ResponseHead, (io::Error, bool)> {
        self.outgoing.start(request);
        let result = poll_fn(|context| self.poll_head(context)).await;
        result.map_err(|error| (error, self.outgoing.written > 0))
    }

    /// Appends more of the body; returns whether there was more.
    pub(crate) fn poll_append(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<bool>> {
        let before = buffer.len();
        while buffer.len() == before && !self.framing.is_finished() {
            if self.start == self.end {
                // A server may respond before it has read the whole request; it need not read the rest.
                _ = self.poll_write(context);
                let was_full = self.end == self.buffer.len();
                if was_full && self.end < MAX_READ {
                    self.buffer.resize(self.end * 2, 0);
                }
                if ready!(self.poll_fill(context))? == 0 {
                    return Poll::Ready(self.on_eof().map(|()| false));
                }
            }
            self.start += self.framing.take(&self.buffer[self.start..self.end], buffer)?;
        }
        Poll::Ready(Ok(buffer.len() > before))
    }

    /// The length of the rest of the body, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.framing.length()
    }

    /// The server closed the connection, which is the end of some bodies.
    fn on_eof(&mut self) -> io::Result<()> {
        let is_end = self.framing == BodyFraming::UntilClosed;
        (self.framing, self.is_last) = (BodyFraming::EMPTY, true);
        if is_end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ResponseHead>> {
        let written = self.poll_write(context);
        // Also if nothing can be written any more: the server may have sent the reason.
        let came = loop {
            let came = self.poll_fill(context)?;
            if !matches!(came, Poll::Ready(1..)) {
                break came;
            }
            if let Some((response, length)) =
                response_head::parse_head(&self.buffer[self.start..self.end])?
            {
                self.start += length;
                (self.framing, self.is_last) = (response.framing, response.is_last);
                return Poll::Ready(Ok(response.head));
            }
        };
        if let Poll::Ready(Err(error)) = written {
            return Poll::Ready(Err(error));
        }
        came.map(|_| Err(io::ErrorKind::UnexpectedEof.into()))
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let RequestWriter { text, written, body, is_flushed } = &mut self.outgoing;
        let mut stream = Pin::new(&mut self.stream);
        while *written < text.len() {
            *written += non_zero(ready!(stream.as_mut().poll_write(context, &text[*written..]))?)?;
        }
        while !body.is_empty() {
            body.advance(non_zero(ready!(stream.as_mut().poll_write(context, body))?)?);
        }
        if !*is_flushed {
            ready!(stream.poll_flush(context))?;
            *is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, behind the unread bytes; returns the number of new bytes.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            // Only the head of a response must be in the buffer as a whole.
            if self.end >= MAX_HEAD_BYTES {
                let detail = "the head of the response is too long";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, detail)));
            }
            self.buffer.resize(self.end * 2, 0);
        }
        let mut buffer = ReadBuf::new(&mut self.buffer[self.end..]);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let count = buffer.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }
}

/// A stream that accepts no bytes is closed.
fn non_zero(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

#[cfg(test)]
mod tests;
