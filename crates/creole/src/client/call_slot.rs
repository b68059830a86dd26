//! The dispatcher's part of a call: its unread steps, and the input requests among them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use creole_proto::client::{InputRequestError, InputRequestKey};
use creole_proto::fault::Fault;
use creole_proto::http::request_headers::HeaderField;
use creole_proto::http::{MirroredHeader, request_headers};
use creole_proto::model::InputRequest;
use creole_proto::operation::{Event, Outcome};
use creole_proto::revision::Rules;
use creole_proto::wire::Raw;

use super::transport::Exchange;

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

/// The open input requests of a connection.
pub(super) trait ServerInputRequests: Send + Sync {
    /// Sends the response to an input request.
    fn respond(&self, request: InputRequestKey, response: Result<Raw, InputRequestError>);

    /// The id that the server gave an input request.
    fn request_id_of(&self, request: InputRequestKey) -> Option<String>;

    /// Notifies the server that the response is still pending.
    fn send_keep_alive(&self, request: InputRequestKey);
}

/// The pending response to an input request.
pub struct InputResponder {
    pub(super) key: InputRequestKey,
    /// Where the response goes, until it is sent.
    pub(super) requests: Option<Weak<dyn ServerInputRequests>>,
}

impl InputResponder {
    /// The key of the input request, by which it may be withdrawn.
    pub fn key(&self) -> InputRequestKey {
        self.key
    }

    /// The id that the server gave the input request, if it is still pending.
    pub fn id(&self) -> Option<String> {
        self.requests.as_ref()?.upgrade()?.request_id_of(self.key)
    }

    /// Notifies the server that the response is still pending, if it accepts that.
    pub fn send_keep_alive(&self) {
        if let Some(requests) = self.requests.as_ref().and_then(Weak::upgrade) {
            requests.send_keep_alive(self.key);
        }
    }

    /// Sends this result to the server, or refuses.
    pub fn respond(mut self, response: Result<Raw, InputRequestError>) {
        self.respond_once(response);
    }

    fn respond_once(&mut self, response: Result<Raw, InputRequestError>) {
        if let Some(requests) = self.requests.take().and_then(|requests| requests.upgrade()) {
            requests.respond(self.key, response);
        }
    }
}

impl Drop for InputResponder {
    fn drop(&mut self) {
        if self.requests.is_some() {
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
    pub(super) fn push_event(&mut self, event: CallEvent) -> Result<(), CallEvent> {
        if self.events.len() >= MAX_PENDING_EVENTS {
            return Err(event);
        }
        self.events.push_back(event);
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
        if let Some(event) = self.events.pop_front() {
            return Poll::Ready(SlotPoll::Step(CallStep::Event(event)));
        }
        if let Some(outcome) = self.outcome.take() {
            return Poll::Ready(SlotPoll::Step(CallStep::Done(outcome)));
        }
        if let Some(fault) = &mut self.ended {
            return Poll::Ready(SlotPoll::Step(CallStep::Ended(fault.take())));
        }
        if let Some(exchange) = self.exchange.take() {
            return Poll::Ready(SlotPoll::Exchange(exchange));
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
