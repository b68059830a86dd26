//! One call to a server, as its caller sees it.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use creole_proto::client::CallKey;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::Outcome;

use super::call_slot::SlotPoll;
pub use super::call_slot::{CallEvent, CallStep, InputResponder, ServerInputRequest};
use super::dispatcher::{AddedCall, Dispatcher};
use super::transport::{Exchange, ResumePoint};
use crate::call::CancelReason;
use crate::telemetry::record::FrameTap;

/// A call in flight. Dropping it cancels it.
pub struct PendingCall {
    key: CallKey,
    dispatcher: Arc<Dispatcher>,
    /// The exchange, while the caller polls it.
    exchange: Option<Exchange>,
    /// Why the call was not made at all.
    fault: Option<Box<Fault>>,
    /// The reason that is sent to the server if the call is cancelled.
    cancel_reason: Option<CancelReason>,
}

impl PendingCall {
    pub(super) fn new(dispatcher: &Arc<Dispatcher>, added: AddedCall) -> Self {
        let (key, fault) = match added {
            Ok(key) => (key, None),
            // No machine assigns this key: there is no call to cancel under it.
            Err(fault) => (CallKey(u64::MAX), Some(Box::new(fault))),
        };
        let dispatcher = Arc::clone(dispatcher);
        Self { key, dispatcher, exchange: None, fault, cancel_reason: None }
    }

    /// The key of the call.
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// Sets the reason that is sent to the server if the call is cancelled. The reason may be filled in until then.
    pub fn set_cancel_reason(&mut self, reason: CancelReason) {
        self.cancel_reason = Some(reason);
    }

    /// Keeps the messages of the call in this record from now on, or in none.
    pub fn set_tap(&self, tap: Option<FrameTap>) {
        self.dispatcher.set_tap(self.key, tap);
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
            if let Some(exchange) = &mut self.exchange {
                // The slot is polled right afterwards.
                self.dispatcher.clear_waker(self.key);
                if exchange.as_mut().poll(context).is_ready() {
                    self.exchange = None;
                }
            }
            match ready!(self.dispatcher.poll_slot(self.key, context)) {
                SlotPoll::Step(step) => return Poll::Ready(step),
                SlotPoll::Exchange(exchange) => self.exchange = Some(exchange),
            }
        }
    }

    /// The outcome of the call; `on_news` gets the events of the call. Cancel-safe.
    pub async fn outcome(&mut self, mut on_news: impl FnMut(CallEvent)) -> Outcome {
        loop {
            match self.next().await {
                CallStep::Event(event) => on_news(event),
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
