//! A response of HTTP/1 that lasts, written without hyper, so that it needs little memory while it is silent.
//!
//! It is the last one of its connection and says so. Whatever the client sends behind its request is read, which
//! is how its leaving is noticed, and forgotten. A client that closed its side and still reads is served to the end.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, Version};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep_until};

use super::answer::BoxError;
use super::drain::{Stage, Watch};
use super::limits::LASTING_BYTES;
use super::outgoing::Outgoing;
use super::pace::{Overdue, Pace};
use super::places::Place;
use super::prober::Prober;
use super::sending::Sending;
use super::wire::Wire;

/// A response that lasts, and the wire that it is written to.
pub(super) struct Lasting<T, B> {
    wire: Wire<T>,
    pace: Arc<Pace>,
    sending: Sending<B>,
    /// How much the client may still send.
    left: usize,
    /// Whether everything was written.
    written: bool,
    /// Rings when the client has taken nothing for too long.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Finds out whether a client that closed its side still reads.
    prober: Option<Prober>,
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
        let (sending, _) = Sending::new(version, response, true, Vec::new());
        let left = LASTING_BYTES.saturating_sub(unread);
        Self { wire, pace, sending, left, written: false, alarm: None, prober: None }
    }

    /// Writes it to its end, unless the client or the server ends before.
    ///
    /// It is boxed, because a future holds what it is given twice, and this one waits for long.
    pub(super) async fn run(mut self: Box<Self>, watch: Watch, _place: Place) {
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
        loop {
            if let Poll::Ready(written) = self.sending.poll_write(&mut self.wire, context) {
                written?;
                self.written = true;
                return Poll::Ready(Ok(()));
            }
            if !self.pace.is_half_closed() {
                return Poll::Pending;
            }
            let prober = self.prober.get_or_insert_with(Prober::new);
            ready!(prober.poll_due(context));
            self.sending.probe();
        }
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
