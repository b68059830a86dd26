//! A response of HTTP/1 on its way to its client, written without hyper.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::response::Parts;
use http::{Response, Version};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::BoxError;
use super::exchange::STILL_THERE;
use super::handover::is_events;
use super::head::{self, Framing};
use super::outgoing::Outgoing;
use super::wire::Wire;

/// A response on its way.
pub(super) struct Sending<B> {
    /// What produces the body, until its end.
    body: Option<Outgoing<B>>,
    framing: Framing,
    /// Whether it is a stream of events.
    is_events: bool,
    /// The head, until it is on its way.
    head: Vec<u8>,
    out: Out,
}

/// What is on its way: what precedes a piece of the body, the piece, and what follows it.
#[derive(Default)]
struct Out {
    front: Vec<u8>,
    piece: Bytes,
    back: &'static [u8],
    /// How much of it all was written.
    written: usize,
}

impl Out {
    fn is_written(&self) -> bool {
        self.written == self.front.len() + self.piece.len() + self.back.len()
    }

    /// What is left of the three.
    fn slices(&self) -> [IoSlice<'_>; 3] {
        let mut skipped = self.written;
        [&self.front[..], &self.piece, self.back].map(|part| {
            let (done, left) = part.split_at(skipped.min(part.len()));
            skipped -= done.len();
            IoSlice::new(left)
        })
    }
}

impl<B> Sending<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// A response to a request of that version, whose head is written to `room`; the last one of its connection says
    /// so. Gives back its parts, which nobody needs any more.
    pub(super) fn new(
        version: Version,
        response: Response<Outgoing<B>>,
        is_last: bool,
        mut room: Vec<u8>,
    ) -> (Self, Parts) {
        let (parts, body) = response.into_parts();
        let length = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        let framing = Framing::of(version, length);
        room.clear();
        head::write(&mut room, version, &parts, framing, is_last);
        let is_events = is_events(&parts.headers);
        (Self { body: Some(body), framing, is_events, head: room, out: Out::default() }, parts)
    }

    /// Puts out what means nothing, to see whether the client takes it; tells whether that was possible.
    pub(super) fn probe(&mut self) -> bool {
        let is_between = self.head.is_empty() && self.out.is_written() && self.body.is_some();
        let is_possible =
            is_between && self.is_events && !matches!(self.framing, Framing::Length(_));
        if is_possible {
            self.out = Out::default();
        }
        is_possible && self.put(Bytes::from_static(STILL_THERE)).is_ok()
    }

    /// Room for the head of another response.
    pub(super) fn into_room(self) -> Vec<u8> {
        self.out.front
    }

    /// Writes what is there; ready when everything was written.
    pub(super) fn poll_write<T>(
        &mut self,
        wire: &mut Wire<T>,
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
                // What was written needs no room while there is nothing to say.
                self.out = Out::default();
            }
            ready!(Pin::new(&mut *wire).poll_flush(context))?;
            return next.map(|_| Ok(()));
        }
    }

    /// Puts out what is to be written next; nothing at the end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<()>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let piece = match self.framing {
            Framing::Length(0) => Poll::Ready(None),
            _ => next_piece(body, context),
        };
        if piece.is_pending() && self.head.is_empty() {
            return Poll::Pending;
        }
        // The first piece goes out with the head, if it is there.
        let mut front = std::mem::take(&mut self.head);
        if front.is_empty() {
            front = std::mem::take(&mut self.out.front);
            front.clear();
        }
        self.out = Out { front, ..Out::default() };
        Poll::Ready(Some(match piece {
            Poll::Pending => Ok(()),
            Poll::Ready(Some(piece)) => piece.and_then(|piece| self.put(piece)),
            Poll::Ready(None) => self.put_end(),
        }))
    }

    fn put(&mut self, piece: Bytes) -> io::Result<()> {
        match &mut self.framing {
            Framing::Length(left) => {
                let rest = left.checked_sub(piece.len() as u64);
                *left = rest.ok_or_else(|| io::Error::other("a body is longer than announced"))?;
            }
            Framing::Chunks => {
                write!(self.out.front, "{:X}\r\n", piece.len())?;
                self.out.back = b"\r\n";
            }
            Framing::Close => {}
        }
        self.out.piece = piece;
        Ok(())
    }

    fn put_end(&mut self) -> io::Result<()> {
        self.body = None;
        match self.framing {
            Framing::Length(1..) => {
                return Err(io::Error::other("a body is shorter than announced"));
            }
            Framing::Chunks => self.out.back = b"0\r\n\r\n",
            Framing::Length(0) | Framing::Close => {}
        }
        Ok(())
    }
}

/// The next piece of a body that is not empty; nothing at its end.
fn next_piece<B>(
    body: &mut Outgoing<B>,
    context: &mut Context<'_>,
) -> Poll<Option<io::Result<Bytes>>>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(context)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(piece) if !piece.is_empty() => return Poll::Ready(Some(Ok(piece))),
                // Nobody sends trailers.
                _ => {}
            },
            Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
            None => return Poll::Ready(None),
        }
    }
}
