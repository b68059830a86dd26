//! The fast path: reads simple HTTP/1 requests and writes their responses without hyper, which does much work that
//! these requests do not need.
//!
//! A connection starts here and stays as long as its requests [qualify](request). The first one that does not goes to
//! hyper with every byte that was read, and so does the rest of the connection: one parser decides what is rejected and
//! how.

mod request;

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{CONNECTION, HeaderMap};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::serve::http::conn::handle_request::handle_request;
use crate::serve::http::conn::http1::detach::should_detach;
use crate::serve::http::conn::http1::fast_path::request::FastPathHead;
use crate::serve::http::conn::http1::response_writer::ResponseWriter;
use crate::serve::http::conn::http1::streaming::StreamingResponse;
use crate::serve::http::conn::prober::HalfCloseProber;
use crate::serve::http::conn::screened_stream::ScreenedStream;
use crate::serve::http::conn::supervise::Drivable;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::web::handler::{ConnectionPeer, HttpHandler};
use crate::serve::http::web::incoming::{BodyFeed, BoxError, IncomingBody};
use crate::serve::http::web::limits::MAX_HEAD_BYTES;
use crate::serve::http::web::request::RequestHead;
use crate::serve::http::web::router::Router;

/// Bytes per read.
const READ_CHUNK: usize = 8 * 1024;
/// Bytes per read of a body.
const BODY_CHUNK: usize = 64 * 1024;
/// Maximum number of reads in which a head may arrive.
const MAX_HEAD_PARTS: usize = 8;

/// How the fast path of a connection ends.
pub(crate) enum FastPathEnd<T, B> {
    /// The connection is closed.
    Closed,
    /// A streaming response is left to be written.
    Streaming(Box<StreamingResponse<T, B>>),
    /// The next request does not qualify; hyper takes over.
    Fallback(Box<ScreenedStream<T>>),
}

/// Drives the fast path of a connection.
pub(crate) struct FastPath<F> {
    serving: Pin<Box<F>>,
    is_shutting_down: Arc<AtomicBool>,
}

impl<F: Future> Drivable for FastPath<F> {
    type End = F::Output;

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<F::Output> {
        self.serving.as_mut().poll(context)
    }

    fn shut_down(&mut self) {
        self.is_shutting_down.store(true, Ordering::Release);
    }
}

/// Serves the qualifying requests of a connection.
pub(crate) fn fast_path<T, A>(
    wire: ScreenedStream<T>,
    router: Arc<Router<A>>,
    timeouts: Arc<ConnectionTimeouts>,
    peer: ConnectionPeer,
) -> FastPath<impl Future<Output = io::Result<FastPathEnd<T, A::Body>>>>
where
    T: AsyncRead + AsyncWrite + Unpin,
    A: HttpHandler,
{
    let concluded = Arc::new(AtomicBool::new(false));
    let line = FastPathConnection {
        wire,
        read_ahead: Bytes::new(),
        shutdown_flag: Arc::clone(&concluded),
        timeouts: Arc::clone(&timeouts),
        prober: None,
    };
    FastPath {
        serving: Box::pin(serve_requests(line, router, timeouts, peer)),
        is_shutting_down: concluded,
    }
}

async fn serve_requests<T, A>(
    mut line: FastPathConnection<T>,
    router: Arc<Router<A>>,
    timeouts: Arc<ConnectionTimeouts>,
    peer: ConnectionPeer,
) -> io::Result<FastPathEnd<T, A::Body>>
where
    T: AsyncRead + AsyncWrite + Unpin,
    A: HttpHandler,
{
    let mut head = RequestHead::default();
    let mut buffer = Vec::new();
    loop {
        let (end, length, closes) = match line.next_request(&mut head).await? {
            Some(FastPathHead::Request { end, length, closes }) => (end, length, closes),
            Some(_) => return Ok(FastPathEnd::Fallback(line.into_wire())),
            None => break,
        };
        let (body, feed) = line.request_body(end, length);
        let among = router.in_flight().enter();
        let response = {
            let running = timeouts.begin_request(head.version);
            let mut result = pin!(handle_request(&router, running, &mut head, body, &peer));
            let result = poll_fn(|context| {
                loop {
                    if let Poll::Ready(response) = result.as_mut().poll(context) {
                        return Poll::Ready(Ok::<_, io::Error>(response));
                    }
                    ready!(line.poll_read_during_response(feed.as_deref(), context))?;
                }
            });
            result.await?
        };
        if should_detach(&head, &response) {
            let FastPathConnection { wire, read_ahead: unread, .. } = line;
            let returned =
                StreamingResponse::new(wire, timeouts, unread.len(), head.version, response);
            return Ok(FastPathEnd::Streaming(Box::new(returned)));
        }
        let is_unread = feed.is_some_and(|feed| feed.missing() > 0);
        let is_last =
            closes || is_unread || line.is_shutting_down() || says_close(response.headers());
        let (mut sending, parts) = ResponseWriter::new(head.version, response, is_last, buffer);
        among.yield_to_others().await;
        poll_fn(|context| line.poll_write_response(&mut sending, context)).await?;
        if is_last {
            break;
        }
        buffer = sending.into_buffer();
        head.headers.clear_keeping(parts.headers);
    }
    poll_fn(|context| Pin::new(&mut line.wire).poll_shutdown(context)).await?;
    Ok(FastPathEnd::Closed)
}

/// Whether a response closes its connection.
fn says_close(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// A connection with its read-ahead buffer.
struct FastPathConnection<T> {
    wire: ScreenedStream<T>,
    /// Bytes that were read and belong to no request yet.
    read_ahead: Bytes,
    /// Whether no further request may start.
    shutdown_flag: Arc<AtomicBool>,
    timeouts: Arc<ConnectionTimeouts>,
    /// Detects whether a client that closed its sending side still reads.
    prober: Option<HalfCloseProber>,
}

impl<T> FastPathConnection<T>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn is_shutting_down(&self) -> bool {
        self.shutdown_flag.load(Ordering::Acquire)
    }

    /// The stream with the read-ahead bytes put back.
    fn into_wire(mut self) -> Box<ScreenedStream<T>> {
        self.wire.unread(self.read_ahead);
        Box::new(self.wire)
    }

    /// Waits for the next request and parses its head; `None` at the end of the connection.
    async fn next_request(&mut self, head: &mut RequestHead) -> io::Result<Option<FastPathHead>> {
        for _ in 0..MAX_HEAD_PARTS {
            if !self.read_ahead.is_empty() {
                match request::parse_head(&self.read_ahead, head) {
                    FastPathHead::Incomplete if self.read_ahead.len() < MAX_HEAD_BYTES => {}
                    found => return Ok(Some(found)),
                }
            }
            let came = poll_fn(|context| match self.is_shutting_down() {
                true => Poll::Ready(Ok(0)),
                false => self.poll_read(context),
            });
            if came.await? == 0 {
                return Ok(None);
            }
        }
        // Parsing restarts with each part, so a head in many small parts is left to hyper.
        Ok(Some(FastPathHead::Incomplete))
    }

    /// The body of the request whose head ends at `end`; the missing bytes are fed to it.
    fn request_body(&mut self, end: usize, length: u64) -> (IncomingBody, Option<Arc<BodyFeed>>) {
        self.read_ahead.advance(end);
        match usize::try_from(length) {
            Ok(length) if length <= self.read_ahead.len() => {
                (self.read_ahead.split_to(length).into(), None)
            }
            _ => {
                let come = std::mem::take(&mut self.read_ahead);
                let missing = length - come.len() as u64;
                let feed = BodyFeed::new(come, missing);
                (Arc::clone(&feed).into(), Some(feed))
            }
        }
    }

    /// Writes a response, and reads input meanwhile.
    fn poll_write_response<B>(
        &mut self,
        sending: &mut ResponseWriter<B>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        loop {
            if let Poll::Ready(result) = sending.poll_write(&mut self.wire, context) {
                return Poll::Ready(result);
            }
            if let Poll::Ready(broken) = self.poll_read_during_response(None, context) {
                return Poll::Ready(broken);
            }
            if !self.timeouts.is_half_closed() {
                return Poll::Pending;
            }
            let prober = self.prober.get_or_insert_with(HalfCloseProber::new);
            ready!(prober.poll_due(context));
            sending.probe();
        }
    }

    /// Reads input while a request is handled: a part of its body, which makes this ready, or bytes behind it. A
    /// disconnect is an error.
    fn poll_read_during_response(
        &mut self,
        feed: Option<&BodyFeed>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(feed) = feed.filter(|feed| feed.missing() > 0) {
            return match feed.wanted() {
                0 => Poll::Pending,
                expected => self.poll_feed_body(feed, expected, context),
            };
        }
        while self.read_ahead.len() < READ_CHUNK {
            if ready!(self.poll_read(context))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Poll::Pending
    }

    fn poll_feed_body(
        &mut self,
        feed: &BodyFeed,
        expected: u64,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let max = usize::try_from(expected).unwrap_or(BODY_CHUNK).min(BODY_CHUNK);
        // Not zeroed: zeroing would write the whole buffer for each byte of a client that sends byte by byte.
        let mut piece = BytesMut::with_capacity(max);
        let mut buffer = (&mut piece).limit(max);
        let count = ready!(pin!(self.wire.read_buf(&mut buffer)).poll(context))?;
        if count == 0 {
            feed.abort();
            return Poll::Ready(Ok(()));
        }
        // A small part is copied, so that it does not keep a large buffer.
        feed.push(match count < max / 2 {
            true => Bytes::copy_from_slice(&piece),
            false => piece.freeze(),
        });
        Poll::Ready(Ok(()))
    }

    /// Reads more bytes and returns their number.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // On the stack, so that an idle connection holds no buffer.
        let mut buffer = [const { MaybeUninit::uninit() }; READ_CHUNK];
        let mut buffer = ReadBuf::uninit(&mut buffer);
        ready!(Pin::new(&mut self.wire).poll_read(context, &mut buffer))?;
        let bytes = buffer.filled();
        self.read_ahead = if self.read_ahead.is_empty() {
            Bytes::copy_from_slice(bytes)
        } else {
            let mut unread = BytesMut::from(std::mem::take(&mut self.read_ahead));
            unread.extend_from_slice(bytes);
            unread.freeze()
        };
        Poll::Ready(Ok(bytes.len()))
    }
}

#[cfg(test)]
mod tests;
