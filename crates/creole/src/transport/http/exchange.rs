//! A request that stands alone: its calls run for as long as somebody waits for the response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::http::response_status;
use creole_proto::operation::Operation;
use creole_proto::revision::Rules;
use creole_proto::server::Call;
use http::Response;
use tokio::time::{Instant, Sleep, sleep_until};

use super::conversation::{COMMON, Conversation, First, Pending};
use super::hub::{Hub, Listening};
use super::reply::{self, Body, Events};
use super::stream::{Next, Reader};

/// How long a call may be silent before its response becomes a stream, which can be kept alive.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How often a silent stream says that it is there.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The bytes that one chunk of a stream has at most, but for its last event.
pub(super) const CHUNK: usize = 64 * 1024;

/// A comment, which clients ignore.
pub(super) const STILL_THERE: &[u8] = b":\n\n";

/// A request that stands alone, with the calls that it started.
pub(super) struct Exchange {
    conversation: Arc<Conversation>,
    reader: Reader,
    pending: Vec<Pending>,
    timer: Option<Pin<Box<Sleep>>>,
    /// When the stream says that it is there.
    sign: Instant,
    listening: Option<Listening>,
    /// Whether the calls were polled in this task and nobody was woken since.
    is_driven: bool,
    over: bool,
}

impl Exchange {
    /// Begins the calls that a message started.
    pub(super) fn begin<'a>(
        conversation: Arc<Conversation>,
        started: Vec<Call>,
        hub: impl FnOnce() -> &'a Arc<Hub>,
        context: &mut Context<'_>,
    ) -> Option<Self> {
        // Registered before it listens, so that no change in between is missed.
        let listens = started.iter().any(|call| matches!(call.operation, Operation::Listen(_)));
        let listening = listens.then(|| hub().listen(&conversation));
        // Room of its own, and no more than that: calls that are done are not to keep theirs.
        let mut pending = Vec::with_capacity(started.len());
        for call in started {
            pending.extend(conversation.begin(call, context));
        }
        let reader = conversation.attach(COMMON, None)?;
        let sign = conversation.started() + PATIENCE;
        let (timer, is_driven, over) = (None, true, false);
        Some(Self { conversation, reader, pending, timer, sign, listening, is_driven, over })
    }

    /// The answer, if it is there already and nothing comes before it.
    pub(super) fn now(&mut self, rules: &'static Rules) -> Option<Response<Body>> {
        match self.conversation.first_now(COMMON, self.reader, true) {
            First::Answer(text, fault) => Some(reply::json(response_status(fault, rules), text)),
            First::Events | First::Nothing => None,
        }
    }

    /// Answers the request.
    pub(super) async fn answer(
        mut self,
        takes_events: bool,
        rules: &'static Rules,
    ) -> Response<Body> {
        match poll_fn(|context| self.poll_first(takes_events, context)).await {
            First::Answer(text, fault) => reply::json(response_status(fault, rules), text),
            First::Nothing => reply::empty(202),
            First::Events => {
                self.sign = Instant::now() + KEEP_ALIVE;
                match self.listening {
                    Some(_) => reply::lasting_events(self),
                    None => reply::events(self),
                }
            }
        }
    }

    fn poll_first(&mut self, takes_events: bool, context: &mut Context<'_>) -> Poll<First> {
        self.drive(context);
        let first = self.conversation.poll_first(COMMON, self.reader, takes_events, context);
        if let Poll::Ready(First::Nothing) = first
            && !self.pending.is_empty()
        {
            return Poll::Pending;
        }
        if first.is_pending() && self.pending.is_empty() {
            // Nothing runs, and nothing was said: a notification.
            return Poll::Ready(First::Nothing);
        }
        match first.is_pending() && self.poll_timer(takes_events, context).is_ready() {
            true => Poll::Ready(First::Events),
            false => first,
        }
    }

    /// Lets the calls go on, unless they were just begun.
    fn drive(&mut self, context: &mut Context<'_>) {
        if std::mem::take(&mut self.is_driven) {
            return;
        }
        self.conversation.drive(&mut self.pending, COMMON, context);
    }

    /// Whether it is time for a sign of life, where the client takes them; ends calls whose time is over on the way.
    fn poll_timer(&mut self, takes_signs: bool, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let deadline = self.conversation.deadline();
            let sign = takes_signs.then_some(self.sign);
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
                self.conversation.tick();
                let conversation = &self.conversation;
                self.pending.retain(|call| conversation.is_open(call.key));
                context.waker().wake_by_ref();
            }
            if takes_signs && self.sign <= now {
                return Poll::Ready(());
            }
        }
    }
}

impl Events for Exchange {
    fn poll_bytes(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let this = &mut *self;
        if this.over {
            return Poll::Ready(None);
        }
        this.drive(context);
        let mut bytes = Vec::new();
        while bytes.len() < CHUNK {
            match this.conversation.poll_next(COMMON, this.reader, context) {
                Poll::Ready(Next::Event(_, event)) => push_event(&mut bytes, None, &event.text),
                Poll::Ready(_) => {
                    this.over = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if !bytes.is_empty() {
            this.sign = Instant::now() + KEEP_ALIVE;
            return Poll::Ready(Some(bytes.into()));
        }
        if this.over {
            return Poll::Ready(None);
        }
        this.poll_timer(true, context).map(|()| {
            this.sign = Instant::now() + KEEP_ALIVE;
            Some(Bytes::from_static(STILL_THERE))
        })
    }
}

impl Drop for Exchange {
    /// The end of the response is the end of its calls (2026-07-28 basic/transports/streamable-http,
    /// cancellation).
    fn drop(&mut self) {
        self.conversation.abandon();
    }
}

/// Writes one event; the text is on one line.
pub(super) fn push_event(out: &mut Vec<u8>, id: Option<&str>, text: &[u8]) {
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\n\n");
}
