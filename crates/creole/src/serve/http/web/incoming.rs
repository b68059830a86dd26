//! The body of a request, from the fast path or from hyper.

use crate::sync::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming as Read;

/// An error of any kind.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request.
#[derive(Debug)]
pub struct IncomingBody(BodySource);

#[derive(Debug)]
enum BodySource {
    /// It arrived with its head.
    Whole(Bytes),
    /// It arrives while the request is handled.
    Fed(Arc<BodyFeed>),
    /// hyper reads it.
    Read(Read),
}

impl From<Bytes> for IncomingBody {
    fn from(whole: Bytes) -> Self {
        Self(BodySource::Whole(whole))
    }
}

impl From<Arc<BodyFeed>> for IncomingBody {
    fn from(feed: Arc<BodyFeed>) -> Self {
        Self(BodySource::Fed(feed))
    }
}

impl From<Read> for IncomingBody {
    fn from(read: Read) -> Self {
        Self(BodySource::Read(read))
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let piece = match &mut self.0 {
            BodySource::Whole(whole) if whole.is_empty() => Poll::Ready(None),
            BodySource::Whole(whole) => Poll::Ready(Some(Ok(std::mem::take(whole)))),
            BodySource::Fed(feed) => feed.poll_piece(context),
            BodySource::Read(read) => {
                let frame = Pin::new(read).poll_frame(context);
                return frame.map_err(BoxError::from);
            }
        };
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodySource::Whole(whole) => whole.is_empty(),
            BodySource::Fed(feed) => feed.remaining() == 0,
            BodySource::Read(read) => read.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodySource::Whole(whole) => SizeHint::with_exact(whole.len() as u64),
            BodySource::Fed(feed) => SizeHint::with_exact(feed.remaining()),
            BodySource::Read(read) => read.size_hint(),
        }
    }
}

/// The rest of a body, between its connection and its reader. The connection reads no more than the reader requests.
#[derive(Debug)]
pub(crate) struct BodyFeed(Mutex<FeedState>);

#[derive(Debug)]
struct FeedState {
    /// Bytes that arrived and were not taken.
    received: Bytes,
    /// The number of bytes that are missing.
    missing: u64,
    /// Whether the missing bytes will never arrive.
    is_aborted: bool,
    /// The reader that waits for them.
    reader: Option<Waker>,
}

impl BodyFeed {
    /// A body of which these bytes arrived, and this many are missing.
    pub(crate) fn new(come: Bytes, missing: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(FeedState {
            received: come,
            missing,
            is_aborted: false,
            reader: None,
        })))
    }

    /// The number of bytes that the reader requests now.
    pub(crate) fn wanted(&self) -> u64 {
        let state = self.lock();
        if state.reader.is_some() { state.missing } else { 0 }
    }

    /// The number of bytes that are missing.
    pub(crate) fn missing(&self) -> u64 {
        self.lock().missing
    }

    /// Adds bytes that arrived; they must have been [wanted](Self::wanted).
    pub(crate) fn push(&self, piece: Bytes) {
        let mut state = self.lock();
        state.missing = state.missing.saturating_sub(piece.len() as u64);
        state.received = piece;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// The client closed its side before the whole body arrived.
    pub(crate) fn abort(&self) {
        let mut state = self.lock();
        state.is_aborted = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    fn remaining(&self) -> u64 {
        let state = self.lock();
        state.received.len() as u64 + state.missing
    }

    fn poll_piece(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let mut state = self.lock();
        if !state.received.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut state.received))));
        }
        if state.is_aborted {
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())));
        }
        if state.missing == 0 {
            return Poll::Ready(None);
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fed_body_requests_more_bytes_and_ends_with_the_last() {
        let feed = BodyFeed::new(Bytes::from_static(b"ab"), 3);
        let mut body = IncomingBody::from(Arc::clone(&feed));
        let mut context = Context::from_waker(Waker::noop());
        let mut next = |body: &mut IncomingBody| match Pin::new(body).poll_frame(&mut context) {
            Poll::Pending => None,
            Poll::Ready(piece) => Some(piece.map(|frame| frame.unwrap().into_data().unwrap())),
        };
        assert_eq!((feed.wanted(), body.size_hint().exact()), (0, Some(5)));
        assert_eq!(next(&mut body), Some(Some("ab".into())));
        assert_eq!((feed.wanted(), feed.missing()), (0, 3));
        assert_eq!(next(&mut body), None);
        assert_eq!(feed.wanted(), 3);
        feed.push(Bytes::from_static(b"cde"));
        assert_eq!((feed.wanted(), feed.missing(), body.is_end_stream()), (0, 0, false));
        assert_eq!(next(&mut body), Some(Some("cde".into())));
        assert!(body.is_end_stream());
        assert_eq!(next(&mut body), Some(None));
    }

    #[test]
    fn an_incomplete_body_is_an_error() {
        let feed = BodyFeed::new(Bytes::from_static(b"ab"), 3);
        let mut body = IncomingBody::from(Arc::clone(&feed));
        let mut context = Context::from_waker(Waker::noop());
        feed.abort();
        let mut next = || Pin::new(&mut body).poll_frame(&mut context);
        assert!(matches!(next(), Poll::Ready(Some(Ok(_)))));
        assert!(matches!(next(), Poll::Ready(Some(Err(_)))));
    }
}
