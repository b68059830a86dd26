//! Writes an HTTP/1 response without hyper.

use std::io;
use std::io::{IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use creole_proto::framing::sse::KEEP_ALIVE_COMMENT;
use http::response::Parts;
use http::{Response, Version};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::serve::http::conn::http1::detach::has_event_stream_type;
use crate::serve::http::conn::http1::response_head;
use crate::serve::http::conn::http1::response_head::ResponseFraming;
use crate::serve::http::conn::outgoing::OutgoingBody;
use crate::serve::http::conn::screened_stream::ScreenedStream;
use crate::serve::http::web::incoming::BoxError;

/// A response that is being written.
pub(crate) struct ResponseWriter<B> {
    /// The source of the body, until its end.
    body: Option<OutgoingBody<B>>,
    framing: ResponseFraming,
    /// Whether the body is an event stream.
    is_events: bool,
    /// The head, until it is being written.
    head: Vec<u8>,
    out: WriteBuffer,
}

/// The bytes that are being written: the prefix of a piece of the body, the piece, and its suffix.
#[derive(Default)]
struct WriteBuffer {
    prefix: Vec<u8>,
    piece: Bytes,
    suffix: &'static [u8],
    /// How many bytes of the three were written.
    written: usize,
}

impl WriteBuffer {
    fn is_written(&self) -> bool {
        self.written == self.prefix.len() + self.piece.len() + self.suffix.len()
    }

    /// The unwritten rest of the three.
    fn slices(&self) -> [IoSlice<'_>; 3] {
        let mut skipped = self.written;
        [&self.prefix[..], &self.piece, self.suffix].map(|part| {
            let (done, left) = part.split_at(skipped.min(part.len()));
            skipped -= done.len();
            IoSlice::new(left)
        })
    }
}

impl<B> ResponseWriter<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// A response to a request of that version. Its head is written to `room`; the last one of a connection has
    /// `Connection: close`. Returns the parts of the response, which are no longer needed.
    pub(crate) fn new(
        version: Version,
        response: Response<OutgoingBody<B>>,
        is_last: bool,
        mut buffer: Vec<u8>,
    ) -> (Self, Parts) {
        let (parts, body) = response.into_parts();
        let length = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        let framing = ResponseFraming::of(version, length);
        buffer.clear();
        response_head::write_head(&mut buffer, version, &parts, framing, is_last);
        let is_events = has_event_stream_type(&parts.headers);
        (
            Self {
                body: Some(body),
                framing,
                is_events,
                head: buffer,
                out: WriteBuffer::default(),
            },
            parts,
        )
    }

    /// Queues bytes without meaning, to see whether the client accepts them; returns whether that was possible.
    pub(crate) fn probe(&mut self) -> bool {
        let is_between = self.head.is_empty() && self.out.is_written() && self.body.is_some();
        let is_possible =
            is_between && self.is_events && !matches!(self.framing, ResponseFraming::Length(_));
        if is_possible {
            self.out = WriteBuffer::default();
        }
        is_possible && self.queue_piece(Bytes::from_static(KEEP_ALIVE_COMMENT)).is_ok()
    }

    /// The buffer, for the head of another response.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        self.out.prefix
    }

    /// Writes the available bytes; ready when everything is written.
    pub(crate) fn poll_write<T>(
        &mut self,
        wire: &mut ScreenedStream<T>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            while !self.out.is_written() {
                let slices = self.out.slices();
                let taken = ready!(Pin::new(&mut *wire).poll_write_vectored(context, &slices))?;
                if taken == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.out.written += taken;
            }
            let next = self.poll_piece(context);
            if let Poll::Ready(Some(piece)) = next {
                piece?;
                continue;
            }
            if next.is_pending() {
                // Frees the buffer while the body is silent.
                self.out = WriteBuffer::default();
            }
            ready!(Pin::new(&mut *wire).poll_flush(context))?;
            return next.map(|_| Ok(()));
        }
    }

    /// Queues the next bytes; `None` at the end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<()>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let piece = match self.framing {
            ResponseFraming::Length(0) => Poll::Ready(None),
            _ => next_piece(body, context),
        };
        if piece.is_pending() && self.head.is_empty() {
            return Poll::Pending;
        }
        // The first piece goes out with the head, if it is available.
        let mut front = std::mem::take(&mut self.head);
        if front.is_empty() {
            front = std::mem::take(&mut self.out.prefix);
            front.clear();
        }
        self.out = WriteBuffer { prefix: front, ..WriteBuffer::default() };
        Poll::Ready(Some(match piece {
            Poll::Pending => Ok(()),
            Poll::Ready(Some(piece)) => piece.and_then(|piece| self.queue_piece(piece)),
            Poll::Ready(None) => self.queue_end(),
        }))
    }

    fn queue_piece(&mut self, piece: Bytes) -> io::Result<()> {
        match &mut self.framing {
            ResponseFraming::Length(remaining) => {
                let rest = remaining.checked_sub(piece.len() as u64);
                *remaining =
                    rest.ok_or_else(|| io::Error::other("a body is longer than announced"))?;
            }
            ResponseFraming::Chunks => {
                write!(self.out.prefix, "{:X}\r\n", piece.len())?;
                self.out.suffix = b"\r\n";
            }
            ResponseFraming::Close => {}
        }
        self.out.piece = piece;
        Ok(())
    }

    fn queue_end(&mut self) -> io::Result<()> {
        self.body = None;
        match self.framing {
            ResponseFraming::Length(1..) => {
                return Err(io::Error::other("a body is shorter than announced"));
            }
            ResponseFraming::Chunks => self.out.suffix = b"0\r\n\r\n",
            ResponseFraming::Length(0) | ResponseFraming::Close => {}
        }
        Ok(())
    }
}

/// The next non-empty piece of a body; `None` at its end.
fn next_piece<B>(
    body: &mut OutgoingBody<B>,
    context: &mut Context<'_>,
) -> Poll<Option<io::Result<Bytes>>>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(context)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(piece) if !piece.is_empty() => return Poll::Ready(Some(Ok(piece))),
                // No handler sends trailers.
                _ => {}
            },
            Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
            None => return Poll::Ready(None),
        }
    }
}
