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

/// Maximum number of unread events of one call. Beyond it, progress is dropped and input requests are refused.
const MAX_PENDING_EVENTS: usize = 256;

/// An event before the outcome of a call.
#[derive(Debug)]
pub enum CallEvent {
    /// Progress, or a log message.
    Event(Event),
    /// The server sends an input request.
    InputRequested(ServerInputRequest),
    /// The server sent an input request without the capability for it; it was refused.
    InputNotOffered(InputRequest),
    /// The server withdrew an input request.
    InputWithdrawn(InputRequestKey),
}

/// The next step of a call.
#[derive(Debug)]
pub enum CallStep {
    /// An event occurred.
    Event(CallEvent),
    /// The outcome. A subscription continues after it.
    Done(Outcome),
    /// The end of a subscription, with its fault if there is one.
    Ended(Option<Fault>),
}

/// An input request of a server.
#[derive(Debug)]
pub struct ServerInputRequest {
    /// The input request.
    pub request: InputRequest,
    /// The task that it belongs to, as the server names it.
    pub task: Option<String>,
    /// Sends the response. Dropping it refuses the request.
    pub responder: InputResponder,
}

/// The pending response to an input request.
pub struct InputResponder {
    pub(super) key: InputRequestKey,
    pub(super) dispatcher: Weak<Dispatcher>,
    pub(super) is_pending: bool,
}

impl InputResponder {
    /// The key of the input request, by which it may be withdrawn.
    pub fn key(&self) -> InputRequestKey {
        self.key
    }

    /// The id that the server gave the input request, if it is still pending.
    pub fn id(&self) -> Option<String> {
        self.dispatcher.upgrade()?.request_id_of(self.key)
    }

    /// Notifies the server that the response is still pending, if it accepts that.
    pub fn send_keep_alive(&self) {
        if let Some(hub) = self.dispatcher.upgrade() {
            hub.send_keep_alive(self.key);
        }
    }

    /// Sends this result to the server, or refuses.
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
                message: "the client sent no input response".to_owned(),
            }));
        }
    }
}

impl fmt::Debug for InputResponder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Reply").field(&self.key).finish()
    }
}

/// The result of polling a call's slot.
pub(super) enum SlotPoll {
    /// A step.
    Step(CallStep),
    /// The exchange that the caller must poll from now on.
    Exchange(Exchange),
}

/// The dispatcher's part of a call: its unread steps.
#[derive(Default)]
pub(super) struct CallSlot {
    events: VecDeque<CallEvent>,
    outcome: Option<Outcome>,
    /// Set once nothing more will arrive; the fault is that of a subscription.
    ended: Option<Option<Fault>>,
    waker: Option<Waker>,
    /// The arguments that are repeated in headers.
    mirrored_headers: Arc<[MirroredHeader]>,
    /// The headers of its frame, if they were known before the frame.
    headers: Option<Vec<HeaderField>>,
    /// The exchange, until the caller takes it.
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

    /// Leaves the exchange to the caller, which polls it.
    pub(super) fn set_exchange(&mut self, exchange: Exchange) {
        self.exchange = Some(exchange);
        self.wake();
    }

    /// Clears the waker; the next poll registers it again.
    pub(super) fn clear_waker(&mut self) {
        self.waker = None;
    }

    /// Adds an event, unless too many are unread.
    pub(super) fn push_event(&mut self, news: CallEvent) -> Result<(), CallEvent> {
        if self.events.len() >= MAX_PENDING_EVENTS {
            return Err(news);
        }
        self.events.push_back(news);
        self.wake();
        Ok(())
    }

    /// Stores the outcome of the call.
    pub(super) fn finish(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.wake();
    }

    /// Ends the call.
    pub(super) fn end(&mut self, fault: Option<Fault>) {
        self.ended = Some(fault);
        self.wake();
    }

    /// Whether all events were read, and the call is still open.
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
    /// The exchange, while the caller polls it.
    pub(super) exchange: Option<Exchange>,
    /// Why the call was not made at all.
    pub(super) fault: Option<Box<Fault>>,
    /// The reason that is sent to the server if the call is cancelled.
    pub(super) cancel_reason: Option<CancelReason>,
}

impl PendingCall {
    /// The key of the call.
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// Sets the reason that is sent to the server if the call is cancelled. The reason may be filled in until then.
    pub fn set_cancel_reason(&mut self, reason: &CancelReason) {
        self.cancel_reason = Some(Arc::clone(reason));
    }

    /// Where another process can continue the call, if the server allows its stream to be resumed and all its events
    /// were read.
    pub fn resume_point(&self) -> Option<ResumePoint> {
        self.dispatcher.resume_point(self.key)
    }

    /// Leaves the call to another process that continues it: the server is not notified, now or when the connection
    /// closes.
    pub fn hand_over(self) {
        self.dispatcher.hand_over_call(self.key);
    }

    /// The next step; call it until the outcome, and for a subscription until its end. Cancel-safe.
    pub async fn next(&mut self) -> CallStep {
        if let Some(fault) = self.fault.take() {
            return CallStep::Done((*fault).into());
        }
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<CallStep> {
        loop {
            if let Some(carrier) = &mut self.exchange {
                // The slot is polled right afterwards.
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

    /// The outcome of the call; `on_news` gets the events of the call. Cancel-safe.
    pub async fn outcome(&mut self, mut on_news: impl FnMut(CallEvent)) -> Outcome {
        loop {
            match self.next().await {
                CallStep::Event(news) => on_news(news),
                CallStep::Done(outcome) => return outcome,
                CallStep::Ended(fault) => {
                    let over = || Fault::new(FaultKind::Internal, "the call has already ended");
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
