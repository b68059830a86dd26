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

use self::request::Found;
use super::answer::{Answer, BoxError, Peer};
use super::connection::answered;
use super::handover::is_to_be_left;
use super::incoming::{Feed, Incoming};
use super::lasting::Lasting;
use super::limits::HEAD;
use super::pace::Pace;
use super::prober::Prober;
use super::request::Head;
use super::router::Router;
use super::sending::Sending;
use super::speaker::Speaker;
use super::wire::Wire;

/// How much is read at once.
const READ: usize = 8 * 1024;
/// How much of a body is read at once.
const PIECE: usize = 64 * 1024;
/// In how many parts a head may come.
const PARTS: usize = 8;

/// How the plain requests of a connection end.
pub(super) enum End<T, B> {
    /// The connection is over.
    Over,
    /// A response is left that lasts.
    Lasting(Box<Lasting<T, B>>),
    /// What comes next is not plain.
    Other(Box<Wire<T>>),
}

/// Somebody who answers the plain requests of a connection.
pub(super) struct Plain<F> {
    talk: Pin<Box<F>>,
    concluded: Arc<AtomicBool>,
}

impl<F: Future> Speaker for Plain<F> {
    type End = F::Output;

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<F::Output> {
        self.talk.as_mut().poll(context)
    }

    fn conclude(&mut self) {
        self.concluded.store(true, Ordering::Release);
    }
}

/// Answers the plain requests that come on a wire.
pub(super) fn plain<T, A>(
    wire: Wire<T>,
    router: Arc<Router<A>>,
    pace: Arc<Pace>,
    peer: Peer,
) -> Plain<impl Future<Output = io::Result<End<T, A::Body>>>>
where
    T: AsyncRead + AsyncWrite + Unpin,
    A: Answer,
{
    let concluded = Arc::new(AtomicBool::new(false));
    let line = Line {
        wire,
        unread: Bytes::new(),
        concluded: Arc::clone(&concluded),
        pace: Arc::clone(&pace),
        prober: None,
    };
    Plain { talk: Box::pin(talk(line, router, pace, peer)), concluded }
}

async fn talk<T, A>(
    mut line: Line<T>,
    router: Arc<Router<A>>,
    pace: Arc<Pace>,
    peer: Peer,
) -> io::Result<End<T, A::Body>>
where
    T: AsyncRead + AsyncWrite + Unpin,
    A: Answer,
{
    let mut head = Head::default();
    let mut room = Vec::new();
    loop {
        let (end, length, closes) = match line.next(&mut head).await? {
            Some(Found::Request { end, length, closes }) => (end, length, closes),
            Some(_) => return Ok(End::Other(line.give_back())),
            None => break,
        };
        let (body, feed) = line.body(end, length);
        let among = router.together().join();
        let response = {
            let running = pace.begin(head.version);
            let mut answer = pin!(answered(&router, running, &mut head, body, peer));
            let answer = poll_fn(|context| {
                loop {
                    if let Poll::Ready(response) = answer.as_mut().poll(context) {
                        return Poll::Ready(Ok::<_, io::Error>(response));
                    }
                    ready!(line.poll_beside(feed.as_deref(), context))?;
                }
            });
            answer.await?
        };
        if is_to_be_left(&head, &response) {
            let Line { wire, unread, .. } = line;
            let lasting = Lasting::new(wire, pace, unread.len(), head.version, response);
            return Ok(End::Lasting(Box::new(lasting)));
        }
        let is_unread = feed.is_some_and(|feed| feed.missing() > 0);
        let is_last = closes || is_unread || line.is_concluded() || says_close(response.headers());
        let (mut sending, parts) = Sending::new(head.version, response, is_last, room);
        among.let_others().await;
        poll_fn(|context| line.poll_send(&mut sending, context)).await?;
        if is_last {
            break;
        }
        room = sending.into_room();
        head.headers.rest(parts.headers);
    }
    poll_fn(|context| Pin::new(&mut line.wire).poll_shutdown(context)).await?;
    Ok(End::Over)
}

/// Whether a response is to be the last on its connection.
fn says_close(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// A connection, and what was read ahead on it.
struct Line<T> {
    wire: Wire<T>,
    /// What was read and belongs to no request yet.
    unread: Bytes,
    /// Whether nothing more is to be begun.
    concluded: Arc<AtomicBool>,
    pace: Arc<Pace>,
    /// Finds out whether a client that closed its side still reads.
    prober: Option<Prober>,
}

impl<T> Line<T>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn is_concluded(&self) -> bool {
        self.concluded.load(Ordering::Acquire)
    }

    /// The wire, with what was read ahead.
    fn give_back(mut self) -> Box<Wire<T>> {
        self.wire.give_back(self.unread);
        Box::new(self.wire)
    }

    /// Waits for what comes next: a request, whose head is taken, or something else; nothing at the end.
    async fn next(&mut self, head: &mut Head) -> io::Result<Option<Found>> {
        for _ in 0..PARTS {
            if !self.unread.is_empty() {
                match request::read(&self.unread, head) {
                    Found::Part if self.unread.len() < HEAD => {}
                    found => return Ok(Some(found)),
                }
            }
            let came = poll_fn(|context| match self.is_concluded() {
                true => Poll::Ready(Ok(0)),
                false => self.poll_read(context),
            });
            if came.await? == 0 {
                return Ok(None);
            }
        }
        // Who sends a head in crumbs has time, and its reader should not begin anew with each.
        Ok(Some(Found::Part))
    }

    /// The body of the request whose head ends there; what of it is missing is fed to it.
    fn body(&mut self, end: usize, length: u64) -> (Incoming, Option<Arc<Feed>>) {
        self.unread.advance(end);
        match usize::try_from(length) {
            Ok(length) if length <= self.unread.len() => {
                (self.unread.split_to(length).into(), None)
            }
            _ => {
                let come = std::mem::take(&mut self.unread);
                let missing = length - come.len() as u64;
                let feed = Feed::new(come, missing);
                (Arc::clone(&feed).into(), Some(feed))
            }
        }
    }

    /// Writes a response, and reads what comes meanwhile.
    fn poll_send<B>(
        &mut self,
        sending: &mut Sending<B>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        loop {
            if let Poll::Ready(written) = sending.poll_write(&mut self.wire, context) {
                return Poll::Ready(written);
            }
            if let Poll::Ready(broken) = self.poll_beside(None, context) {
                return Poll::Ready(broken);
            }
            if !self.pace.is_half_closed() {
                return Poll::Pending;
            }
            let prober = self.prober.get_or_insert_with(Prober::new);
            ready!(prober.poll_due(context));
            sending.probe();
        }
    }

    /// Reads what comes while a request is answered: a part of its body, which makes it ready, or what follows it. Its
    /// client's leaving is an error.
    fn poll_beside(
        &mut self,
        feed: Option<&Feed>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(feed) = feed.filter(|feed| feed.missing() > 0) {
            return match feed.wanted() {
                0 => Poll::Pending,
                wanted => self.poll_feed(feed, wanted, context),
            };
        }
        while self.unread.len() < READ {
            if ready!(self.poll_read(context))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Poll::Pending
    }

    fn poll_feed(
        &mut self,
        feed: &Feed,
        wanted: u64,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let most = usize::try_from(wanted).unwrap_or(PIECE).min(PIECE);
        // Not zeroed: a client that sends byte by byte would have as much written for each of its bytes.
        let mut piece = BytesMut::with_capacity(most);
        let mut room = (&mut piece).limit(most);
        let came = ready!(pin!(self.wire.read_buf(&mut room)).poll(context))?;
        if came == 0 {
            feed.cut();
            return Poll::Ready(Ok(()));
        }
        // What came slowly does not keep room for more.
        feed.put(match came < most / 2 {
            true => Bytes::copy_from_slice(&piece),
            false => piece.freeze(),
        });
        Poll::Ready(Ok(()))
    }

    /// Reads more; tells how much.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // Not on the heap, so that a connection on which nothing comes needs no room for it.
        let mut room = [const { MaybeUninit::uninit() }; READ];
        let mut room = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.wire).poll_read(context, &mut room))?;
        let came = room.filled();
        self.unread = if self.unread.is_empty() {
            Bytes::copy_from_slice(came)
        } else {
            let mut unread = BytesMut::from(std::mem::take(&mut self.unread));
            unread.extend_from_slice(came);
            unread.freeze()
        };
        Poll::Ready(Ok(came.len()))
    }
}

#[cfg(test)]
mod tests;
