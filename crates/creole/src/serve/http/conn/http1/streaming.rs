//! Writes a streaming HTTP/1 response without hyper, so that it needs little memory while it is silent.
//!
//! It is the last response of its connection and has `Connection: close`. Input behind the request is read, which
//! detects a disconnect, and discarded. A client that closed its sending side and still reads is served to the end.

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

use crate::serve::http::conn::http1::response_writer::ResponseWriter;
use crate::serve::http::conn::outgoing::OutgoingBody;
use crate::serve::http::conn::prober::HalfCloseProber;
use crate::serve::http::conn::screened_stream::ScreenedStream;
use crate::serve::http::conn::timeouts::{ConnectionTimeouts, ExpiredTimeout};
use crate::serve::http::web::connection_slots::ConnectionSlot;
use crate::serve::http::web::drain::{DrainStage, DrainWatch};
use crate::serve::http::web::incoming::BoxError;
use crate::serve::http::web::limits::STREAMING_DISCARD_BYTES;

/// A streaming response and the stream that it is written to.
pub(crate) struct StreamingResponse<T, B> {
    wire: ScreenedStream<T>,
    timeouts: Arc<ConnectionTimeouts>,
    writer: ResponseWriter<B>,
    /// How many more bytes the client may send.
    discard_left: usize,
    /// Whether everything was written.
    written: bool,
    /// Fires when the client has read nothing for too long.
    write_timer: Option<Pin<Box<Sleep>>>,
    /// Detects whether a client that closed its sending side still reads.
    prober: Option<HalfCloseProber>,
}

impl<T, B> StreamingResponse<T, B>
where
    T: AsyncRead + AsyncWrite + Unpin,
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    /// Continues with a response on a stream on which everything before it was written; the client sent `unread` bytes
    /// behind its request.
    pub(crate) fn new(
        wire: ScreenedStream<T>,
        timeouts: Arc<ConnectionTimeouts>,
        unread: usize,
        version: Version,
        response: Response<OutgoingBody<B>>,
    ) -> Self {
        let (sending, _) = ResponseWriter::new(version, response, true, Vec::new());
        let remaining = STREAMING_DISCARD_BYTES.saturating_sub(unread);
        Self {
            wire,
            timeouts,
            writer: sending,
            discard_left: remaining,
            written: false,
            write_timer: None,
            prober: None,
        }
    }

    /// Writes it to its end, unless the client disconnects or the server shuts down before.
    ///
    /// It is boxed, because a future stores its arguments twice, and this one lives long.
    pub(crate) async fn run(mut self: Box<Self>, watch: DrainWatch, _slot: ConnectionSlot) {
        tokio::select! {
            ended = poll_fn(|context| self.poll(context)) => {
                if let Err(error) = ended {
                    tracing::debug!(target: "creole::http", %error, "a connection failed");
                }
            }
            // The producer of the body ends it when the server drains.
            _ = watch.wait_beyond(DrainStage::Draining) => {}
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
            Poll::Pending => self.poll_write_timeout(context).map(|()| Ok(())),
            closed => closed,
        }
    }

    /// Reads and writes; ready when everything is written.
    fn poll_both(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(gone) = self.poll_discard_input(context) {
            return Poll::Ready(Err(gone));
        }
        loop {
            if let Poll::Ready(result) = self.writer.poll_write(&mut self.wire, context) {
                result?;
                self.written = true;
                return Poll::Ready(Ok(()));
            }
            if !self.timeouts.is_half_closed() {
                return Poll::Pending;
            }
            let prober = self.prober.get_or_insert_with(HalfCloseProber::new);
            ready!(prober.poll_due(context));
            self.writer.probe();
        }
    }

    /// Discards the client's input; ready when the client disconnects or sends too much.
    fn poll_discard_input(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let mut scratch = [0; 512];
        loop {
            let mut forgotten = ReadBuf::new(&mut scratch);
            if let Err(error) = ready!(Pin::new(&mut self.wire).poll_read(context, &mut forgotten))
            {
                return Poll::Ready(error);
            }
            let count = forgotten.filled().len();
            if count == 0 {
                return Poll::Ready(io::ErrorKind::UnexpectedEof.into());
            }
            self.discard_left = self.discard_left.saturating_sub(count);
            if self.discard_left == 0 {
                let text = "the client keeps sending after its last request";
                return Poll::Ready(io::Error::other(text));
            }
        }
    }

    /// Ready when the client has read nothing for too long.
    fn poll_write_timeout(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.timeouts.writer_deadline() else {
            self.write_timer = None;
            return Poll::Pending;
        };
        let alarm = self.write_timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if alarm.deadline() != deadline {
            alarm.as_mut().reset(deadline);
        }
        alarm.as_mut().poll(context).map(|()| {
            let late = ExpiredTimeout::Writer;
            tracing::debug!(target: "creole::http", ?late, "a connection was closed");
        })
    }
}
