//! The body of a response, which reports when it is complete.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::serve::http::conn::http2_requests::Http2Progress;
use crate::serve::http::conn::timeouts::RequestGuard;
use crate::serve::http::web::incoming::BoxError;
use crate::serve::http::web::limits::MAX_PIECE_BYTES;
use crate::serve::http::web::router::RoutedBody;

/// The body of a response: fixed bytes, or the body of a handler.
#[derive(Debug)]
pub(crate) struct OutgoingBody<B> {
    /// The source of the body, unless it is fixed.
    source: Option<B>,
    /// Bytes that are ready to be written.
    rest: Bytes,
    /// The request, which lasts as long as its response.
    _request: RequestGuard,
    progress: Option<Arc<Http2Progress>>,
}

impl<B> OutgoingBody<B> {
    /// The body, which holds the request and reports its progress to the current task.
    pub(crate) fn new(body: RoutedBody<B>, request: RequestGuard) -> Self {
        let (source, rest) = match body {
            RoutedBody::Fixed(text) => (None, text),
            RoutedBody::Handler(source) => (Some(source), Bytes::new()),
        };
        let progress = Http2Progress::current();
        if let Some(progress) = &progress {
            progress.set_pending();
        }
        Self { source, rest, _request: request, progress }
    }
}

impl<B> Body for OutgoingBody<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let body = &mut *self;
        if let Some(progress) = &body.progress {
            progress.set_taken();
        }
        if body.rest.is_empty() {
            let Some(source) = &mut body.source else { return Poll::Ready(None) };
            let frame = ready!(Pin::new(source).poll_frame(context));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => body.rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => return Poll::Ready(None),
            }
        }
        let piece = match &body.progress {
            Some(progress) => {
                progress.set_pending();
                body.rest.split_to(body.rest.len().min(MAX_PIECE_BYTES))
            }
            None => std::mem::take(&mut body.rest),
        };
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let ended = self.source.as_ref().is_none_or(Body::is_end_stream);
        ended && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.source.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut whole = SizeHint::new();
        whole.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}
