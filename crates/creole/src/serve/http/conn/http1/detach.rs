//! Hands a streaming response from its request to the connection that it is written to.
//!
//! hyper keeps two buffers of 8 KiB per HTTP/1 connection, also while it is idle for hours. So a request with such a
//! response does not return it to hyper: it puts the response here and never completes, and the connection takes its
//! stream back and continues [without hyper](crate::serve::http::conn::http1::streaming).

use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CONTENT_TYPE, EXPECT};
use http::{HeaderMap, Method, Response, Version};

use crate::serve::http::web::request::RequestHead;

/// Marks a response, in its extensions, that may continue until its client disconnects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streaming;

/// Passes a response from its request to its connection.
pub(crate) struct DetachSlot<B> {
    is_detached: AtomicBool,
    response: Mutex<Option<(Version, Response<B>)>>,
}

impl<B> DetachSlot<B> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { is_detached: AtomicBool::new(false), response: Mutex::new(None) })
    }

    /// Stores the response to a request of that version.
    pub(crate) fn detach(&self, version: Version, response: Response<B>) {
        *self.response.lock() = Some((version, response));
        self.is_detached.store(true, Ordering::Release);
    }

    /// Whether there is a response to take.
    pub(crate) fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::Acquire)
    }

    /// Takes the response, with the version of its request.
    pub(crate) fn take(&self) -> Option<(Version, Response<B>)> {
        self.response.lock().take()
    }
}

/// Whether a response is streaming and is therefore written without hyper.
pub(crate) fn should_detach<B>(request: &RequestHead, response: &Response<B>) -> bool {
    response.extensions().get::<Streaming>().is_some() && can_detach(request)
}

/// Whether a response is an event stream. hyper cannot detect whether a client that closed its sending side still
/// reads, so it does not write them.
pub(crate) fn is_event_stream<B>(request: &RequestHead, response: &Response<B>) -> bool {
    has_event_stream_type(response.headers()) && can_detach(request)
}

/// Whether these are the headers of an event stream.
pub(crate) fn has_event_stream_type(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream")
}

/// Whether the response to a request may be written without hyper. An HTTP/2 connection carries other requests as well;
/// the rules of `HEAD` and `Expect` are left to hyper.
fn can_detach(request: &RequestHead) -> bool {
    matches!(request.version, Version::HTTP_10 | Version::HTTP_11)
        && request.method != Method::HEAD
        && !request.headers.contains(EXPECT.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn only_marked_responses_to_plain_requests_of_http_1_are_left() {
        let plain = || Request::get("/").body(()).unwrap();
        let mut head = plain();
        *head.method_mut() = Method::HEAD;
        let mut expecting = plain();
        expecting.headers_mut().insert(EXPECT, http::HeaderValue::from_static("100-continue"));
        let mut multiplexed = plain();
        *multiplexed.version_mut() = Version::HTTP_2;
        let mut response = Response::new(());
        let is_left = |request: Request<()>, response: &Response<()>| {
            should_detach(&request.into_parts().0.into(), response)
        };
        assert!(!is_left(plain(), &response));
        response.extensions_mut().insert(Streaming);
        assert!(is_left(plain(), &response));
        for request in [head, expecting, multiplexed] {
            assert!(!is_left(request, &response));
        }
    }
}
