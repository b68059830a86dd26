//! A connection that reads a stream of a session.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use creole_proto::framing::sse::KEEP_ALIVE_COMMENT;
use creole_proto::http::EventId;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::host::StreamKey;
use crate::serve::http::mcp::response::EventSource;
use crate::serve::http::mcp::session::Session;
use crate::serve::http::mcp::stateless_exchange::{CHUNK, push_event, push_retry};
use crate::serve::http::mcp::stream::{NextEvent, ReaderId};
use crate::serve::http::web::limits::KEEP_ALIVE;

/// A connection that reads a stream. The stream continues when the connection ends.
pub(crate) struct StreamReader {
    session: Arc<Session>,
    key: StreamKey,
    reader: ReaderId,
    timer: Pin<Box<Sleep>>,
    /// Bytes that are sent before all events.
    preamble: Vec<u8>,
    is_over: bool,
}

impl StreamReader {
    /// Reads a stream from its beginning; it starts with an empty event if the revision requires that.
    pub(crate) fn new(session: &Arc<Session>, key: StreamKey, reader: ReaderId) -> Self {
        let mut reading = Self::resume(session, key, reader);
        if session.host.rules().primed_streams && !session.is_single_stream {
            let id = session.event_id(EventId { stream: key, event: 0 });
            push_event(&mut reading.preamble, Some(&id), b"");
        }
        reading
    }

    /// Resumes a stream.
    pub(super) fn resume(session: &Arc<Session>, key: StreamKey, reader: ReaderId) -> Self {
        session.readers.fetch_add(1, Ordering::Relaxed);
        Self {
            session: Arc::clone(session),
            key,
            reader,
            timer: Box::pin(sleep_until(Instant::now() + KEEP_ALIVE)),
            preamble: Vec::new(),
            is_over: false,
        }
    }

    /// Sends these bytes before all events.
    pub(crate) fn with_preamble(mut self, opening: Vec<u8>) -> Self {
        self.preamble = opening;
        self
    }

    fn push(&self, bytes: &mut Vec<u8>, number: u64, text: &[u8]) {
        match self.session.is_single_stream {
            true => {
                bytes.extend_from_slice(b"event: message\n");
                push_event(bytes, None, text);
            }
            false => {
                let id = self.session.event_id(EventId { stream: self.key, event: number });
                push_event(bytes, Some(&id), text);
            }
        }
    }
}

impl EventSource for StreamReader {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let mut bytes = mem::take(&mut self.preamble);
        while bytes.len() < CHUNK {
            match self.session.host.poll_next(self.key, self.reader, context) {
                Poll::Ready(NextEvent::Event(number, event)) => {
                    self.push(&mut bytes, number, &event.text);
                }
                Poll::Ready(NextEvent::Released(retry)) => {
                    if let Some(retry) = retry {
                        push_retry(&mut bytes, retry);
                    }
                    self.is_over = true;
                    break;
                }
                Poll::Ready(NextEvent::Over) => {
                    self.is_over = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if bytes.is_empty() && !self.is_over {
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            bytes.extend_from_slice(KEEP_ALIVE_COMMENT);
        }
        self.timer.as_mut().reset(Instant::now() + KEEP_ALIVE);
        // Polled once more to register the waker for the new time.
        _ = self.timer.as_mut().poll(context);
        Poll::Ready((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.session.readers.fetch_sub(1, Ordering::Relaxed);
        self.session.mark_used();
        if self.session.is_single_stream {
            self.session.close();
        }
    }
}
