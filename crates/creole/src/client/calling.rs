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

use super::hub::Hub;
use super::link::{Carrier, Whereabouts};
use crate::call::CancelReason;

/// News of one call that may wait to be taken. Progress beyond that is left out; a question is refused.
const NEWS: usize = 256;

/// What happens on the way to an outcome.
#[derive(Debug)]
pub enum News {
    /// Progress, or a log message.
    Event(Event),
    /// The server asks something.
    Asked(Asked),
    /// The server asked something that was not offered to it, and was refused.
    NotOffered(InputRequest),
    /// The server no longer wants to know.
    Withdrawn(InputRequestKey),
}

/// The next step of a call.
#[derive(Debug)]
pub enum Step {
    /// Something happened.
    News(News),
    /// It came to this. A subscription goes on.
    Done(Outcome),
    /// Nothing more will come: a subscription is over, by this fault if by any.
    Ended(Option<Fault>),
}

/// A question of a server.
#[derive(Debug)]
pub struct Asked {
    /// What is asked.
    pub question: InputRequest,
    /// The task that it belongs to, as the server names it.
    pub task: Option<String>,
    /// How it is answered. Dropping it refuses.
    pub reply: Reply,
}

/// The answer that is owed for a question.
pub struct Reply {
    pub(super) key: InputRequestKey,
    pub(super) hub: Weak<Hub>,
    pub(super) is_owed: bool,
}

impl Reply {
    /// The question's key, by which it may be withdrawn.
    pub fn key(&self) -> InputRequestKey {
        self.key
    }

    /// The id that the server gave the question, if it still waits.
    pub fn id(&self) -> Option<String> {
        self.hub.upgrade()?.id_of(self.key)
    }

    /// Tells the server that the answer still is on its way, if it wants to be told.
    pub fn keep_waiting(&self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.keep_waiting(self.key);
        }
    }

    /// Answers with the result as the server is to get it, or refuses.
    pub fn answer(mut self, answer: Result<Raw, InputRequestError>) {
        self.give(answer);
    }

    fn give(&mut self, answer: Result<Raw, InputRequestError>) {
        self.is_owed = false;
        if let Some(hub) = self.hub.upgrade() {
            hub.answer(self.key, answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.is_owed {
            self.give(Err(InputRequestError {
                code: -32603,
                message: "nobody answered".to_owned(),
            }));
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Reply").field(&self.key).finish()
    }
}

/// What is found at the desk of a call.
pub(super) enum Found {
    /// What happened.
    Step(Step),
    /// What is to carry the call from now on.
    Carrier(Carrier),
}

/// What the hub keeps of a call: what was said of it and not yet heard.
#[derive(Default)]
pub(super) struct Desk {
    news: VecDeque<News>,
    outcome: Option<Outcome>,
    /// Set once nothing more will come; the fault is that of a subscription.
    ended: Option<Option<Fault>>,
    waker: Option<Waker>,
    /// The arguments that are repeated in headers.
    mirrors: Arc<[MirroredHeader]>,
    /// The headers of its frame, if they were known before that.
    headers: Option<Vec<HeaderField>>,
    /// What carries it, until its caller takes that over.
    carrier: Option<Carrier>,
    /// Whether that has to wait for its turn.
    is_held: bool,
}

impl Desk {
    pub(super) fn new(mirrors: Arc<[MirroredHeader]>, headers: Option<Vec<HeaderField>>) -> Self {
        Self { mirrors, headers, ..Self::default() }
    }

    /// The headers of its frame, for a transport that has headers.
    pub(super) fn headers(&mut self, frame: &[u8], rules: &Rules) -> Vec<HeaderField> {
        let known = self.headers.take();
        known.unwrap_or_else(|| request_headers(frame, rules, &self.mirrors))
    }

    /// Leaves it to the caller to have the request carried, now or when its turn has come.
    pub(super) fn carry(&mut self, carrier: Carrier, is_held: bool) {
        (self.carrier, self.is_held) = (Some(carrier), is_held);
        if !is_held {
            self.wake();
        }
    }

    /// Leaves the rest of the way to the caller, who is woken by what carries it.
    pub(super) fn carry_on(&mut self, carrier: Carrier) {
        self.carrier = Some(carrier);
    }

    /// It is the call's turn to be sent: by whoever says so, unless nobody waits for it yet.
    pub(super) fn release(&mut self) -> Option<(Carrier, Waker)> {
        self.is_held = false;
        let waker = self.waker.clone()?;
        self.carrier.take().map(|carrier| (carrier, waker))
    }

    /// Wakes nobody until somebody looks again.
    pub(super) fn hush(&mut self) {
        self.waker = None;
    }

    /// Puts news down, unless too much waits already.
    pub(super) fn tell(&mut self, news: News) -> Result<(), News> {
        if self.news.len() >= NEWS {
            return Err(news);
        }
        self.news.push_back(news);
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
    pub(super) fn is_quiet(&self) -> bool {
        self.news.is_empty() && self.outcome.is_none() && self.ended.is_none()
    }

    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<Found> {
        if let Some(news) = self.news.pop_front() {
            return Poll::Ready(Found::Step(Step::News(news)));
        }
        if let Some(outcome) = self.outcome.take() {
            return Poll::Ready(Found::Step(Step::Done(outcome)));
        }
        if let Some(fault) = &mut self.ended {
            return Poll::Ready(Found::Step(Step::Ended(fault.take())));
        }
        if let Some(carrier) = self.carrier.take_if(|_| !self.is_held) {
            return Poll::Ready(Found::Carrier(carrier));
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
pub struct Calling {
    pub(super) key: CallKey,
    pub(super) hub: Arc<Hub>,
    /// What carries it, while it is carried by whoever waits for it.
    pub(super) carrier: Option<Carrier>,
    /// Why it was not made at all.
    pub(super) refused: Option<Box<Fault>>,
    /// What the server is told if it is given up.
    pub(super) reason: Option<CancelReason>,
}

impl Calling {
    /// What the call is known by.
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// Has the server told this reason if the call is given up and the reason is known by then.
    pub fn set_cancel_reason(&mut self, reason: &CancelReason) {
        self.reason = Some(Arc::clone(reason));
    }

    /// Where another process can go on with the call, if the server lets its stream be taken up again and all that came
    /// of it was heard.
    pub fn whereabouts(&self) -> Option<Whereabouts> {
        self.hub.whereabouts(self.key)
    }

    /// Leaves the call to another process that goes on with it: the server is told nothing, now or when the connection
    /// is closed.
    pub fn leave(self) {
        self.hub.leave(self.key);
    }

    /// The next step; to be called until the outcome, and for a subscription until its end. Cancel-safe.
    pub async fn next(&mut self) -> Step {
        if let Some(fault) = self.refused.take() {
            return Step::Done((*fault).into());
        }
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        loop {
            if let Some(carrier) = &mut self.carrier {
                // What comes is looked for right afterwards.
                self.hub.hush(self.key);
                if carrier.as_mut().poll(context).is_ready() {
                    self.carrier = None;
                }
            }
            match ready!(self.hub.poll_found(self.key, context)) {
                Found::Step(step) => return Poll::Ready(step),
                Found::Carrier(carrier) => self.carrier = Some(carrier),
            }
        }
    }

    /// What the call comes to; `on_news` is told what happens on the way. Cancel-safe.
    pub async fn outcome(&mut self, mut on_news: impl FnMut(News)) -> Outcome {
        loop {
            match self.next().await {
                Step::News(news) => on_news(news),
                Step::Done(outcome) => return outcome,
                Step::Ended(fault) => {
                    let over = || Fault::new(FaultKind::Internal, "the call is over already");
                    return fault.unwrap_or_else(over).into();
                }
            }
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let reason = self.reason.as_ref().and_then(|reason| reason.get());
        self.hub.give_up(self.key, reason.map(String::as_str));
    }
}

impl fmt::Debug for Calling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Calling").field("key", &self.key).finish_non_exhaustive()
    }
}
