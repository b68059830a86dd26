//! The body of a response: bytes, or an event stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of a response.
pub(crate) enum AdminBody {
    /// All of it.
    Whole(Bytes),
    /// What a task sends. Dropping the body ends the task's stream.
    Stream(mpsc::Receiver<Bytes>),
}

impl AdminBody {
    /// A body without a byte.
    pub(crate) fn empty() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl From<Bytes> for AdminBody {
    fn from(whole: Bytes) -> Self {
        Self::Whole(whole)
    }
}

impl Body for AdminBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut *self {
            Self::Whole(whole) if whole.is_empty() => Poll::Ready(None),
            Self::Whole(whole) => Poll::Ready(Some(std::mem::take(whole))),
            Self::Stream(pieces) => pieces.poll_recv(context),
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(whole) if whole.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => SizeHint::with_exact(whole.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
