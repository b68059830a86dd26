//! A response of HTTP/1 that lasts, written without hyper, so that it needs little memory while it is silent.
//!
//! It is the last one of its connection and says so. Whatever the client sends behind its request is read, which
//! is how its leaving is noticed, and forgotten.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::buf::Chain;
use bytes::{Buf, Bytes};
use http::{Response, Version};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep_until};

use super::answer::BoxError;
use super::drain::{Stage, Watch};
use super::head;
use super::limits::LINGER_BYTES;
use super::outgoing::Outgoing;
use super::pace::{Overdue, Pace};
use super::wire::Wire;

/// A response that lasts, and the wire that it is written to.
pub(super) struct Lasting<T, B> {
    wire: Wire<T>,
    pace: Arc<Pace>,
    /// What produces the body, until its end.
    body: Option<Outgoing<B>>,
    /// Whether the body is written in chunks. Otherwise it ends with the connection.
    chunked: bool,
    /// The head, until it is on its way.
    head: Vec<u8>,
    /// What is on its way: what precedes a piece of the body, the piece, and what follows it.
    out: Out,
    /// How much the client may still send.
    left: usize,
    /// Whether everything was written.
    written: bool,
    /// Rings when the client has taken nothing for too long.
    alarm: Option<Pin<Box<Sleep>>>,
}

type Out = Chain<Chain<Bytes, Bytes>, Bytes>;

fn out(front: impl Into<Bytes>, piece: Bytes, back: &'static [u8]) -> Out {
    front.into().chain(piece).chain(Bytes::from_static(back))
}

impl<T, B> Lasting<T, B>
where
    T: AsyncRead + AsyncWrite + Unpin,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Goes on with a response on a wire on which everything before it was written; `unread` bytes were sent
    /// behind its request.
    pub(super) fn new(
        wire: Wire<T>,
        pace: Arc<Pace>,
        unread: usize,
        version: Version,
        response: Response<Outgoing<B>>,
    ) -> Self {
        let (parts, body) = response.into_parts();
        let chunked = version > Version::HTTP_10;
        Self {
            wire,
            pace,
            body: Some(body),
            chunked,
            head: head::of_last(version, &parts),
            out: out(Bytes::new(), Bytes::new(), b""),
            left: LINGER_BYTES.saturating_sub(unread),
            written: false,
            alarm: None,
        }
    }

    /// Writes it to its end, unless the client or the server ends before.
    ///
    /// It is boxed, because a future holds what it is given twice, and this one waits for long.
    pub(super) async fn run(mut self: Box<Self>, watch: Watch, _place: OwnedSemaphorePermit) {
        tokio::select! {
            ended = poll_fn(|context| self.poll(context)) => {
                if let Err(error) = ended {
                    tracing::debug!(target: "creole::http", %error, "a connection broke off");
                }
            }
            // Whoever produces the body ends it when the server drains.
            _ = watch.beyond(Stage::Draining) => {}
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = match self.written {
            false => self.poll_both(context),
            true => Poll::Ready(Ok(())),
        };
        let closed = match ended {
            Poll::Ready(Ok(())) => Pin::new(&mut self.wire).poll_shutdown(context),
            unfinished => unfinished,
        };
        match closed {
            Poll::Pending => self.poll_alarm(context).map(|()| Ok(())),
            closed => closed,
        }
    }

    /// Reads and writes; ready when everything was written.
    fn poll_both(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(gone) = self.poll_client(context) {
            return Poll::Ready(Err(gone));
        }
        ready!(self.poll_write(context))?;
        self.written = true;
        Poll::Ready(Ok(()))
    }

    /// Forgets what the client sends; ready when it leaves or says too much.
    fn poll_client(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let mut scratch = [0; 512];
        loop {
            let mut forgotten = ReadBuf::new(&mut scratch);
            if let Err(error) = ready!(Pin::new(&mut self.wire).poll_read(context, &mut forgotten))
            {
                return Poll::Ready(error);
            }
            let came = forgotten.filled().len();
            if came == 0 {
                return Poll::Ready(io::ErrorKind::UnexpectedEof.into());
            }
            self.left = self.left.saturating_sub(came);
            if self.left == 0 {
                let said = "the client goes on to send behind its last request";
                return Poll::Ready(io::Error::other(said));
            }
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.out.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 3];
                let count = self.out.chunks_vectored(&mut slices);
                let wire = Pin::new(&mut self.wire);
                let taken = ready!(wire.poll_write_vectored(context, &slices[..count]))?;
                if taken == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.out.advance(taken);
            }
            match self.poll_piece(context) {
                Poll::Ready(Some(next)) => self.out = next?,
                ended => {
                    // What was written needs no room any more.
                    self.out = out(Bytes::new(), Bytes::new(), b"");
                    ready!(Pin::new(&mut self.wire).poll_flush(context))?;
                    return ended.map(|_| Ok(()));
                }
            }
        }
    }

    /// What is to be written next; nothing at the end.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Out>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = loop {
            match Pin::new(&mut *body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => break Poll::Ready(Some(piece)),
                    // There are no trailers in what lasts.
                    _ => {}
                },
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(io::Error::other(error))));
                }
                Poll::Ready(None) => break Poll::Ready(None),
                Poll::Pending => break Poll::Pending,
            }
        };
        // The first piece goes out with the head, if it is there.
        let mut front = std::mem::take(&mut self.head);
        let next = match frame {
            Poll::Pending if front.is_empty() => return Poll::Pending,
            Poll::Pending => out(front, Bytes::new(), b""),
            Poll::Ready(Some(piece)) if self.chunked => {
                front.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                out(front, piece, b"\r\n")
            }
            Poll::Ready(Some(piece)) => out(front, piece, b""),
            Poll::Ready(None) => {
                self.body = None;
                out(front, Bytes::new(), if self.chunked { b"0\r\n\r\n" } else { b"" })
            }
        };
        Poll::Ready(Some(Ok(next)))
    }

    /// Whether the client has taken nothing for too long.
    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.pace.writer_deadline() else {
            self.alarm = None;
            return Poll::Pending;
        };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if alarm.deadline() != deadline {
            alarm.as_mut().reset(deadline);
        }
        alarm.as_mut().poll(context).map(|()| {
            let late = Overdue::Writer;
            tracing::debug!(target: "creole::http", ?late, "a connection was closed");
        })
    }
}
