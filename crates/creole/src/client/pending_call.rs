//! One call to a server, as its caller sees it.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker, ready};

use creole_proto::client::{CallKey, InputRequestError, InputRequestKey};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::request_headers::HeaderField;
use creole_proto::http::{MirroredHeader, request_headers};
use creole_proto::model::InputRequest;
use creole_proto::operation::{Event, Outcome};
use creole_proto::revision::Rules;
use creole_proto::wire::Raw;

use super::dispatcher::Dispatcher;
use super::transport::{Exchange, ResumePoint};
use crate::call::CancelReason;

/// News of one call that may wait to be taken. Progress beyond that is left out; a question is refused.
const MAX_PENDING_EVENTS: usize = 256;

/// What happens on the way to an outcome.
#[derive(Debug)]
pub enum CallEvent {
    /// Progress, or a log message.
    Event(Event),
    /// The server asks something.
    InputRequested(ServerInputRequest),
    /// The server asked something that was not offered to it, and was refused.
    InputNotOffered(InputRequest),
    /// The server no longer wants to know.
    InputWithdrawn(InputRequestKey),
}

/// The next step of a call.
#[derive(Debug)]
pub enum CallStep {
    /// Something happened.
    Event(CallEvent),
    /// It came to this. A subscription goes on.
    Done(Outcome),
    /// Nothing more will come: a subscription is over, by this fault if by any.
    Ended(Option<Fault>),
}

/// A question of a server.
#[derive(Debug)]
pub struct ServerInputRequest {
    /// What is asked.
    pub request: InputRequest,
    /// The task that it belongs to, as the server names it.
    pub task: Option<String>,
    /// How it is answered. Dropping it refuses.
    pub responder: InputResponder,
}

/// The answer that is owed for a question.
pub struct InputResponder {
    pub(super) key: InputRequestKey,
    pub(super) dispatcher: Weak<Dispatcher>,
    pub(super) is_pending: bool,
}

impl InputResponder {
    /// The question's key, by which it may be withdrawn.
    pub fn key(&self) -> InputRequestKey {
        self.key
    }

    /// The id that the server gave the question, if it still waits.
    pub fn id(&self) -> Option<String> {
        self.dispatcher.upgrade()?.request_id_of(self.key)
    }

    /// Tells the server that the answer still is on its way, if it wants to be told.
    pub fn send_keep_alive(&self) {
        if let Some(hub) = self.dispatcher.upgrade() {
            hub.send_keep_alive(self.key);
        }
    }

    /// Answers with the result as the server is to get it, or refuses.
    pub fn respond(mut self, answer: Result<Raw, InputRequestError>) {
        self.respond_once(answer);
    }

    fn respond_once(&mut self, answer: Result<Raw, InputRequestError>) {
        self.is_pending = false;
        if let Some(hub) = self.dispatcher.upgrade() {
            hub.respond(self.key, answer);
        }
    }
}

impl Drop for InputResponder {
    fn drop(&mut self) {
        if self.is_pending {
            self.respond_once(Err(InputRequestError {
                code: -32603,
                message: "nobody answered".to_owned(),
            }));
        }
    }
}

impl fmt::Debug for InputResponder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Reply").field(&self.key).finish()
    }
}

/// What is found at the desk of a call.
pub(super) enum SlotPoll {
    /// What happened.
    Step(CallStep),
    /// What is to carry the call from now on.
    Exchange(Exchange),
}

/// What the hub keeps of a call: what was said of it and not yet heard.
#[derive(Default)]
pub(super) struct CallSlot {
    events: VecDeque<CallEvent>,
    outcome: Option<Outcome>,
    /// Set once nothing more will come; the fault is that of a subscription.
    ended: Option<Option<Fault>>,
    waker: Option<Waker>,
    /// The arguments that are repeated in headers.
    mirrored_headers: Arc<[MirroredHeader]>,
    /// The headers of its frame, if they were known before that.
    headers: Option<Vec<HeaderField>>,
    /// What carries it, until its caller takes that over.
    exchange: Option<Exchange>,
}

impl CallSlot {
    pub(super) fn new(mirrors: Arc<[MirroredHeader]>, headers: Option<Vec<HeaderField>>) -> Self {
        Self { mirrored_headers: mirrors, headers, ..Self::default() }
    }

    /// The headers of its frame, for a transport that has headers.
    pub(super) fn headers(&mut self, frame: &[u8], rules: &Rules) -> Vec<HeaderField> {
        let known = self.headers.take();
        known.unwrap_or_else(|| request_headers(frame, rules, &self.mirrored_headers))
    }

    /// Leaves the exchange to the caller, who polls it.
    pub(super) fn set_exchange(&mut self, exchange: Exchange) {
        self.exchange = Some(exchange);
        self.wake();
    }

    /// Wakes nobody until somebody looks again.
    pub(super) fn clear_waker(&mut self) {
        self.waker = None;
    }

    /// Puts news down, unless too much waits already.
    pub(super) fn push_event(&mut self, news: CallEvent) -> Result<(), CallEvent> {
        if self.events.len() >= MAX_PENDING_EVENTS {
            return Err(news);
        }
        self.events.push_back(news);
        self.wake();
        Ok(())
    }

    /// Puts down what the call came to.
    pub(super) fn finish(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.wake();
    }

    /// Nothing more will come.
    pub(super) fn end(&mut self, fault: Option<Fault>) {
        self.ended = Some(fault);
        self.wake();
    }

    /// Whether all that was said was heard, and the call goes on.
    pub(super) fn is_drained(&self) -> bool {
        self.events.is_empty() && self.outcome.is_none() && self.ended.is_none()
    }

    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<SlotPoll> {
        if let Some(news) = self.events.pop_front() {
            return Poll::Ready(SlotPoll::Step(CallStep::Event(news)));
        }
        if let Some(outcome) = self.outcome.take() {
            return Poll::Ready(SlotPoll::Step(CallStep::Done(outcome)));
        }
        if let Some(fault) = &mut self.ended {
            return Poll::Ready(SlotPoll::Step(CallStep::Ended(fault.take())));
        }
        if let Some(carrier) = self.exchange.take() {
            return Poll::Ready(SlotPoll::Exchange(carrier));
        }
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A call in flight. Dropping it cancels it.
pub struct PendingCall {
    pub(super) key: CallKey,
    pub(super) dispatcher: Arc<Dispatcher>,
    /// What carries it, while it is carried by whoever waits for it.
    pub(super) exchange: Option<Exchange>,
    /// Why it was not made at all.
    pub(super) fault: Option<Box<Fault>>,
    /// What the server is told if it is given up.
    pub(super) cancel_reason: Option<CancelReason>,
}

impl PendingCall {
    /// What the call is known by.
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// Has the server told this reason if the call is given up and the reason is known by then.
    pub fn set_cancel_reason(&mut self, reason: &CancelReason) {
        self.cancel_reason = Some(Arc::clone(reason));
    }

    /// Where another process can go on with the call, if the server lets its stream be taken up again and all that came
    /// of it was heard.
    pub fn resume_point(&self) -> Option<ResumePoint> {
        self.dispatcher.resume_point(self.key)
    }

    /// Leaves the call to another process that goes on with it: the server is told nothing, now or when the connection
    /// is closed.
    pub fn hand_over(self) {
        self.dispatcher.hand_over_call(self.key);
    }

    /// The next step; to be called until the outcome, and for a subscription until its end. Cancel-safe.
    pub async fn next(&mut self) -> CallStep {
        if let Some(fault) = self.fault.take() {
            return CallStep::Done((*fault).into());
        }
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<CallStep> {
        loop {
            if let Some(carrier) = &mut self.exchange {
                // What comes is looked for right afterwards.
                self.dispatcher.clear_waker(self.key);
                if carrier.as_mut().poll(context).is_ready() {
                    self.exchange = None;
                }
            }
            match ready!(self.dispatcher.poll_slot(self.key, context)) {
                SlotPoll::Step(step) => return Poll::Ready(step),
                SlotPoll::Exchange(carrier) => self.exchange = Some(carrier),
            }
        }
    }

    /// What the call comes to; `on_news` is told what happens on the way. Cancel-safe.
    pub async fn outcome(&mut self, mut on_news: impl FnMut(CallEvent)) -> Outcome {
        loop {
            match self.next().await {
                CallStep::Event(news) => on_news(news),
                CallStep::Done(outcome) => return outcome,
                CallStep::Ended(fault) => {
                    let over = || Fault::new(FaultKind::Internal, "the call is over already");
                    return fault.unwrap_or_else(over).into();
                }
            }
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let reason = self.cancel_reason.as_ref().and_then(|reason| reason.get());
        self.dispatcher.cancel_call(self.key, reason.map(String::as_str));
    }
}

impl fmt::Debug for PendingCall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Calling").field("key", &self.key).finish_non_exhaustive()
    }
}
