//! Plain requests of HTTP/1, read and answered without hyper: for the few things that they need, hyper does much that
//! is not needed, and what is left of a call is little.
//!
//! A connection begins here and stays for as long as its requests are [plain](request). The first one that is not
//! goes to hyper with all that was read, and so does the rest of the connection: what is refused, and how, is
//! settled in one place.

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

use crate::serve::http::conn::connection::handle_request;
use crate::serve::http::conn::http1::detach::should_detach;
use crate::serve::http::conn::http1::fast_path::request::FastPathHead;
use crate::serve::http::conn::http1::response_writer::ResponseWriter;
use crate::serve::http::conn::http1::streaming::StreamingResponse;
use crate::serve::http::conn::incoming::{BodyFeed, IncomingBody};
use crate::serve::http::conn::prober::HalfCloseProber;
use crate::serve::http::conn::screened_stream::ScreenedStream;
use crate::serve::http::conn::supervise::Drivable;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::web::handler::{BoxError, HttpHandler, PeerAddress};
use crate::serve::http::web::limits::MAX_HEAD_BYTES;
use crate::serve::http::web::request::RequestHead;
use crate::serve::http::web::router::Router;

/// How much is read at once.
const READ_CHUNK: usize = 8 * 1024;
/// How much of a body is read at once.
const BODY_CHUNK: usize = 64 * 1024;
/// In how many parts a head may come.
const MAX_HEAD_PARTS: usize = 8;

/// How the plain requests of a connection end.
pub(crate) enum FastPathEnd<T, B> {
    /// The connection is over.
    Closed,
    /// A response is left that lasts.
    Streaming(Box<StreamingResponse<T, B>>),
    /// What comes next is not plain.
    Fallback(Box<ScreenedStream<T>>),
}

/// Somebody who answers the plain requests of a connection.
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

/// Answers the plain requests that come on a wire.
pub(crate) fn fast_path<T, A>(
    wire: ScreenedStream<T>,
    router: Arc<Router<A>>,
    pace: Arc<ConnectionTimeouts>,
    peer: PeerAddress,
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
        timeouts: Arc::clone(&pace),
        prober: None,
    };
    FastPath {
        serving: Box::pin(serve_requests(line, router, pace, peer)),
        is_shutting_down: concluded,
    }
}

async fn serve_requests<T, A>(
    mut line: FastPathConnection<T>,
    router: Arc<Router<A>>,
    pace: Arc<ConnectionTimeouts>,
    peer: PeerAddress,
) -> io::Result<FastPathEnd<T, A::Body>>
where
    T: AsyncRead + AsyncWrite + Unpin,
    A: HttpHandler,
{
    let mut head = RequestHead::default();
    let mut room = Vec::new();
    loop {
        let (end, length, closes) = match line.next_request(&mut head).await? {
            Some(FastPathHead::Request { end, length, closes }) => (end, length, closes),
            Some(_) => return Ok(FastPathEnd::Fallback(line.into_wire())),
            None => break,
        };
        let (body, feed) = line.request_body(end, length);
        let among = router.in_flight().enter();
        let response = {
            let running = pace.begin_request(head.version);
            let mut answer = pin!(handle_request(&router, running, &mut head, body, peer));
            let answer = poll_fn(|context| {
                loop {
                    if let Poll::Ready(response) = answer.as_mut().poll(context) {
                        return Poll::Ready(Ok::<_, io::Error>(response));
                    }
                    ready!(line.poll_read_during_response(feed.as_deref(), context))?;
                }
            });
            answer.await?
        };
        if should_detach(&head, &response) {
            let FastPathConnection { wire, read_ahead: unread, .. } = line;
            let lasting = StreamingResponse::new(wire, pace, unread.len(), head.version, response);
            return Ok(FastPathEnd::Streaming(Box::new(lasting)));
        }
        let is_unread = feed.is_some_and(|feed| feed.missing() > 0);
        let is_last =
            closes || is_unread || line.is_shutting_down() || says_close(response.headers());
        let (mut sending, parts) = ResponseWriter::new(head.version, response, is_last, room);
        among.yield_to_others().await;
        poll_fn(|context| line.poll_write_response(&mut sending, context)).await?;
        if is_last {
            break;
        }
        room = sending.into_buffer();
        head.headers.clear_keeping(parts.headers);
    }
    poll_fn(|context| Pin::new(&mut line.wire).poll_shutdown(context)).await?;
    Ok(FastPathEnd::Closed)
}

/// Whether a response is to be the last on its connection.
fn says_close(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// A connection, and what was read ahead on it.
struct FastPathConnection<T> {
    wire: ScreenedStream<T>,
    /// What was read and belongs to no request yet.
    read_ahead: Bytes,
    /// Whether nothing more is to be begun.
    shutdown_flag: Arc<AtomicBool>,
    timeouts: Arc<ConnectionTimeouts>,
    /// Finds out whether a client that closed its side still reads.
    prober: Option<HalfCloseProber>,
}

impl<T> FastPathConnection<T>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn is_shutting_down(&self) -> bool {
        self.shutdown_flag.load(Ordering::Acquire)
    }

    /// The wire, with what was read ahead.
    fn into_wire(mut self) -> Box<ScreenedStream<T>> {
        self.wire.unread(self.read_ahead);
        Box::new(self.wire)
    }

    /// Waits for what comes next: a request, whose head is taken, or something else; nothing at the end.
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
        // Who sends a head in crumbs has time, and its reader should not begin anew with each.
        Ok(Some(FastPathHead::Incomplete))
    }

    /// The body of the request whose head ends there; what of it is missing is fed to it.
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

    /// Writes a response, and reads what comes meanwhile.
    fn poll_write_response<B>(
        &mut self,
        sending: &mut ResponseWriter<B>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        loop {
            if let Poll::Ready(written) = sending.poll_write(&mut self.wire, context) {
                return Poll::Ready(written);
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

    /// Reads what comes while a request is answered: a part of its body, which makes it ready, or what follows it. Its
    /// client's leaving is an error.
    fn poll_read_during_response(
        &mut self,
        feed: Option<&BodyFeed>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(feed) = feed.filter(|feed| feed.missing() > 0) {
            return match feed.wanted() {
                0 => Poll::Pending,
                wanted => self.poll_feed_body(feed, wanted, context),
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
        wanted: u64,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let most = usize::try_from(wanted).unwrap_or(BODY_CHUNK).min(BODY_CHUNK);
        // Not zeroed: a client that sends byte by byte would have as much written for each of its bytes.
        let mut piece = BytesMut::with_capacity(most);
        let mut room = (&mut piece).limit(most);
        let came = ready!(pin!(self.wire.read_buf(&mut room)).poll(context))?;
        if came == 0 {
            feed.abort();
            return Poll::Ready(Ok(()));
        }
        // What came slowly does not keep room for more.
        feed.push(match came < most / 2 {
            true => Bytes::copy_from_slice(&piece),
            false => piece.freeze(),
        });
        Poll::Ready(Ok(()))
    }

    /// Reads more; tells how much.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // Not on the heap, so that a connection on which nothing comes needs no room for it.
        let mut room = [const { MaybeUninit::uninit() }; READ_CHUNK];
        let mut room = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.wire).poll_read(context, &mut room))?;
        let came = room.filled();
        self.read_ahead = if self.read_ahead.is_empty() {
            Bytes::copy_from_slice(came)
        } else {
            let mut unread = BytesMut::from(std::mem::take(&mut self.read_ahead));
            unread.extend_from_slice(came);
            unread.freeze()
        };
        Poll::Ready(Ok(came.len()))
    }
}

#[cfg(test)]
mod tests;
