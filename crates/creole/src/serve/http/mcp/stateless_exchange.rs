//! A stateless request: its calls run as long as the client waits for the response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::fault::FaultKind;
use creole_proto::framing::sse::KEEP_ALIVE_COMMENT;
use creole_proto::http::response_status;
use creole_proto::revision::Rules;
use http::Response;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::host::{COMMON_STREAM, HostedCall, StartedCalls};
use crate::serve::http::mcp::change_fanout::{ChangeFanout, ChangeSubscription};
use crate::serve::http::mcp::http_caller::HttpCaller;
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::{AtDeadline, EventSource, McpBody};
use crate::serve::http::mcp::stream::{NextEvent, ReaderId};
use crate::serve::http::mcp::streams::{FirstReply, HttpHost};
use crate::serve::http::web::limits::KEEP_ALIVE;

/// How long a call may be silent before its response becomes a stream, which can be kept alive.
pub(crate) const STREAM_AFTER: Duration = Duration::from_secs(1);

/// Maximum size of one chunk of a stream, except for its last event.
pub(crate) const CHUNK: usize = 64 * 1024;

/// A stateless request with the calls that it started.
pub(crate) struct StatelessExchange {
    host: Arc<HttpHost>,
    reader: ReaderId,
    pending: Vec<HostedCall>,
    timer: Option<Pin<Box<Sleep>>>,
    /// When the next keep-alive comment is due.
    keep_alive_at: Instant,
    subscription: Option<ChangeSubscription>,
    /// Whether the calls were polled in this task and not woken since.
    is_just_polled: bool,
    is_over: bool,
}

impl StatelessExchange {
    /// Starts the calls of a message.
    pub(crate) fn begin<'a>(
        host: Arc<HttpHost>,
        started: StartedCalls,
        fanout: impl FnOnce() -> &'a Arc<ChangeFanout>,
        context: &mut Context<'_>,
    ) -> Option<Self> {
        // Subscribed before the call starts to listen, so that no change in between is missed.
        let listening = started.has_listener().then(|| fanout().subscribe(&host));
        // Allocated exactly: finished calls must not keep memory.
        let mut pending = Vec::with_capacity(started.len());
        for call in started {
            pending.extend(host.first_poll(call, context));
        }
        let reader = host.attach(COMMON_STREAM, None)?;
        let sign = host.started() + STREAM_AFTER;
        let (timer, is_driven, over) = (None, true, false);
        Some(Self {
            host,
            reader,
            pending,
            timer,
            keep_alive_at: sign,
            subscription: listening,
            is_just_polled: is_driven,
            is_over: over,
        })
    }

    /// The response, if it is ready and no event precedes it.
    pub(crate) fn ready_response(
        &mut self,
        rules: &'static Rules,
        caller: HttpCaller<'_>,
    ) -> Option<Response<McpBody>> {
        match self.host.first_reply_now(COMMON_STREAM, self.reader, true) {
            FirstReply::Response(text, fault) => Some(whole_response(text, fault, rules, caller)),
            FirstReply::Events | FirstReply::Nothing => None,
        }
    }

    /// Responds to the request.
    pub(crate) async fn into_response(
        mut self,
        takes_events: bool,
        rules: &'static Rules,
        caller: HttpCaller<'_>,
    ) -> Response<McpBody> {
        match poll_fn(|context| self.poll_first_reply(takes_events, context)).await {
            FirstReply::Response(text, fault) => whole_response(text, fault, rules, caller),
            FirstReply::Nothing => response::empty_response(202),
            FirstReply::Events => {
                self.keep_alive_at = Instant::now() + KEEP_ALIVE;
                match self.subscription {
                    Some(_) => {
                        let (host, deadline) = (Arc::clone(&self.host), caller.stream_deadline());
                        let response = response::streaming_response(self);
                        let end = AtDeadline::EndSubscriptions;
                        response::with_deadline(response, deadline, &host, end)
                    }
                    None => response::event_response(self),
                }
            }
        }
    }

    fn poll_first_reply(
        &mut self,
        takes_events: bool,
        context: &mut Context<'_>,
    ) -> Poll<FirstReply> {
        self.poll_calls(context);
        let first = self.host.poll_first_reply(COMMON_STREAM, self.reader, takes_events, context);
        if let Poll::Ready(FirstReply::Nothing) = first
            && !self.pending.is_empty()
        {
            return Poll::Pending;
        }
        if first.is_pending() && self.pending.is_empty() {
            // Nothing runs and there is no message: a notification.
            return Poll::Ready(FirstReply::Nothing);
        }
        match first.is_pending() && self.poll_timer(takes_events, context).is_ready() {
            true => Poll::Ready(FirstReply::Events),
            false => first,
        }
    }

    /// Polls the calls, unless they were just started.
    fn poll_calls(&mut self, context: &mut Context<'_>) {
        if std::mem::take(&mut self.is_just_polled) {
            return;
        }
        self.host.poll_calls(&mut self.pending, COMMON_STREAM, context);
    }

    /// Ready when a keep-alive comment is due, if the client accepts them; ends calls whose deadline has passed.
    fn poll_timer(&mut self, takes_signs: bool, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let deadline = self.host.deadline();
            let sign = takes_signs.then_some(self.keep_alive_at);
            let Some(next) = deadline.into_iter().chain(sign).min() else { return Poll::Pending };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(next)));
            if timer.deadline() != next {
                timer.as_mut().reset(next);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.host.tick();
                self.pending.retain(|call| !call.is_cancelled());
                context.waker().wake_by_ref();
            }
            if takes_signs && self.keep_alive_at <= now {
                return Poll::Ready(());
            }
        }
    }
}

impl EventSource for StatelessExchange {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        this.poll_calls(context);
        let mut bytes = Vec::new();
        while bytes.len() < CHUNK {
            match this.host.poll_next(COMMON_STREAM, this.reader, context) {
                Poll::Ready(NextEvent::Event(_, event)) => {
                    push_event(&mut bytes, None, &event.text)
                }
                Poll::Ready(_) => {
                    this.is_over = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if !bytes.is_empty() {
            this.keep_alive_at = Instant::now() + KEEP_ALIVE;
            return Poll::Ready(Some(bytes.into()));
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        this.poll_timer(true, context).map(|()| {
            this.keep_alive_at = Instant::now() + KEEP_ALIVE;
            Some(Bytes::from_static(KEEP_ALIVE_COMMENT))
        })
    }
}

impl Drop for StatelessExchange {
    /// The end of the response cancels its calls (2026-07-28 basic/transports/streamable-http, cancellation).
    fn drop(&mut self) {
        self.host.cancel_calls();
    }
}

/// The response with one message.
fn whole_response(
    text: Bytes,
    fault: Option<FaultKind>,
    rules: &'static Rules,
    caller: HttpCaller<'_>,
) -> Response<McpBody> {
    let refused = caller.refuse_fault(fault, &text, rules);
    refused.unwrap_or_else(|| response::json_response(response_status(fault, rules), text))
}

/// Writes one event; the text is on one line.
pub(crate) fn push_event(out: &mut Vec<u8>, id: Option<&str>, text: &[u8]) {
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\n\n");
}

/// Writes when a client should reconnect whose stream ends.
pub(crate) fn push_retry(out: &mut Vec<u8>, retry: Duration) {
    out.extend_from_slice(format!("retry: {}\n\n", retry.as_millis()).as_bytes());
}
