//! The middle of a connection: the protocol machine, whom its happenings concern, and the link.

mod happenings;
mod turns;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use creole_proto::client::{
    CallKey, CallRequest, DropReason, InputRequestError, InputRequestKey, Machine,
    NegotiationResult, Outbox,
};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::{MirroredHeader, call_headers};
use creole_proto::model::Level;
use creole_proto::monotonic_map::MonotonicMap;
use creole_proto::wire::Raw;
use tokio::runtime::Handle;
use tokio::sync::{Notify, broadcast, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use self::turns::Turns;
use super::calling::{Calling, Desk, Found, Step};
use super::connection::{Before, Closed, Notice, OnLog, OnQuestion, Setup};
use super::link::{Inbox, Link, Transport, Whereabouts};
use super::noise::Meter;
use crate::process::unavailable_fault;

/// Notices that may wait to be taken; whoever lags behind is told so.
const NOTICES: usize = 256;

/// The middle of a connection.
pub(super) struct Hub {
    name: Arc<str>,
    state: Mutex<State>,
    link: OnceLock<Arc<dyn Link>>,
    opened: watch::Sender<Option<Result<Arc<NegotiationResult>, Fault>>>,
    closed: watch::Sender<Option<Closed>>,
    notices: broadcast::Sender<Notice>,
    /// Whether what belongs to no call can be heard.
    hearing: watch::Sender<bool>,
    on_question: Option<OnQuestion>,
    on_log: Option<OnLog>,
    /// Told when the machine's deadline comes earlier.
    sooner: Arc<Notify>,
    clock: OnceLock<AbortHandle>,
    usher: OnceLock<AbortHandle>,
    started: Instant,
    own: Weak<Self>,
}

struct State {
    machine: Machine,
    outbox: Outbox,
    calls: MonotonicMap<CallKey, Desk>,
    /// Whose call a question belongs to.
    questions: BTreeMap<InputRequestKey, CallKey>,
    /// When the clock rings next.
    armed: Option<Duration>,
    noise: Meter,
    turns: Turns,
}

impl Hub {
    /// Begins a link and opens the conversation.
    pub(super) fn start(transport: Box<dyn Transport>, setup: Setup) -> Arc<Self> {
        let state = State {
            machine: Machine::new(setup.profile, setup.opening).with_ids_after_number(setup.after),
            outbox: Outbox::default(),
            calls: MonotonicMap::default(),
            questions: BTreeMap::new(),
            armed: None,
            noise: Meter::default(),
            turns: Turns::default(),
        };
        let hub = Arc::new_cyclic(|own| Self {
            name: transport.name().into(),
            state: Mutex::new(state),
            link: OnceLock::new(),
            opened: watch::Sender::new(None),
            closed: watch::Sender::new(None),
            notices: broadcast::Sender::new(NOTICES),
            hearing: watch::Sender::new(true),
            on_question: setup.on_question,
            on_log: setup.on_log,
            sooner: Arc::new(Notify::new()),
            clock: OnceLock::new(),
            usher: OnceLock::new(),
            started: Instant::now(),
            own: own.clone(),
        });
        hub.begin_link(transport, setup.heard.as_ref());
        let clock = tokio::spawn(ring(Arc::downgrade(&hub), Arc::clone(&hub.sooner)));
        let _ = hub.clock.set(clock.abort_handle());
        hub.take_turns();
        if setup.heard.is_none() {
            hub.work(|state, now| {
                state.machine.open(now, &mut state.outbox);
            });
        }
        hub
    }

    /// Begins the link. What was heard before is taken before anything else: whoever reads waits for the state meanwhile.
    fn begin_link(self: &Arc<Self>, transport: Box<dyn Transport>, heard: Option<&Before>) {
        let heard = heard.map(|heard| (self.lock(), heard));
        let _ = self.link.set(transport.begin(Inbox(Arc::downgrade(self))));
        if let Some((state, heard)) = heard {
            self.take_heard(state, heard);
        }
    }

    /// Takes what the server said before, to an opening request that was sent before.
    fn take_heard(&self, mut state: MutexGuard<'_, State>, heard: &Before) {
        let (now, inner) = (self.now(), &mut *state);
        inner.machine.open(now, &mut inner.outbox);
        inner.outbox.clear_frames();
        inner.machine.skip_ids_to(heard.last);
        for message in &heard.messages {
            inner.machine.receive(message.trim_ascii(), None, now, &mut inner.outbox);
        }
        let later = self.obey(inner, now);
        drop(state);
        self.finish(later);
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn opened(&self) -> Result<Arc<NegotiationResult>, Fault> {
        let mut opened = self.opened.subscribe();
        let told = opened.wait_for(Option::is_some).await.ok().and_then(|told| told.clone());
        told.unwrap_or_else(|| Err(Fault::new(FaultKind::Internal, "nothing was opened")))
    }

    pub(super) fn begin(
        hub: &Arc<Self>,
        request: CallRequest,
        mirrors: Arc<[MirroredHeader]>,
    ) -> Calling {
        let has_headers = hub.link.get().is_some_and(|link| link.has_headers());
        // A frame that waits for the opening is sent by rules that are not known yet.
        let knows = has_headers && matches!(&*hub.opened.borrow(), Some(Ok(_)));
        Self::enter(hub, |state, now| {
            let rules = state.machine.rules();
            let headers = knows.then(|| call_headers(&request.operation, rules, &mirrors));
            let key = state.machine.request(&request, now, &mut state.outbox);
            (key, Desk::new(mirrors, headers))
        })
    }

    pub(super) fn ping(hub: &Arc<Self>) -> Calling {
        Self::enter(hub, |state, now| (state.machine.ping(now, &mut state.outbox), Desk::default()))
    }

    pub(super) fn set_level(hub: &Arc<Self>, level: Level) -> Calling {
        Self::enter(hub, |state, now| {
            (state.machine.set_level(level, now, &mut state.outbox), Desk::default())
        })
    }

    pub(super) fn roots_changed(&self) {
        self.work(|state, _| state.machine.notify_roots_changed(&mut state.outbox));
    }

    /// Makes a call, unless the connection is gone or stuck.
    fn enter(
        hub: &Arc<Self>,
        make: impl FnOnce(&mut State, Duration) -> (CallKey, Desk),
    ) -> Calling {
        // No machine gives out this key: there is nothing to give up under it.
        let (mut key, refused) = (CallKey(u64::MAX), hub.obstacle());
        if refused.is_none() {
            hub.work(|state, now| {
                let (made, desk) = make(state, now);
                key = made;
                state.calls.insert(key, desk);
            });
        }
        let (hub, refused) = (Arc::clone(hub), refused.map(Box::new));
        Calling { key, hub, carrier: None, refused, reason: None }
    }

    /// Wakes nobody who waits for a call until they look again.
    pub(super) fn hush(&self, call: CallKey) {
        if let Some(desk) = self.lock().calls.get_mut(call) {
            desk.hush();
        }
    }

    /// What is found at the desk of a call; one that is not known is over.
    pub(super) fn poll_found(&self, call: CallKey, context: &Context<'_>) -> Poll<Found> {
        let mut state = self.lock();
        let over = Poll::Ready(Found::Step(Step::Ended(None)));
        state.calls.get_mut(call).map_or(over, |desk| desk.poll(context))
    }

    fn obstacle(&self) -> Option<Fault> {
        if let Some(closed) = &*self.closed.borrow() {
            return Some(closed.fault.clone());
        }
        let is_full = self.link.get().is_some_and(|link| link.is_full());
        let detail = || format!("`{}` does not take what it was sent before", self.name);
        is_full.then(|| Fault::new(FaultKind::Busy, detail()).with_subject(&self.name))
    }

    /// Forgets a call; one that is not over is cancelled, for this reason if there is one.
    pub(super) fn give_up(&self, call: CallKey, reason: Option<&str>) {
        let mut state = self.lock();
        let desk = state.calls.remove(call);
        let is_open = desk.is_some() && state.machine.is_open(call);
        drop(state);
        if is_open {
            self.work(|state, _| {
                let reason = reason.unwrap_or("nobody waits for it any more");
                state.machine.cancel(call, reason, &mut state.outbox);
                state.questions.retain(|_, owner| *owner != call);
            });
            if let Some(link) = self.link.get() {
                link.given_up(call);
            }
        }
        // Last, and outside of the lock: questions that nobody took are refused.
        drop(desk);
    }

    /// Forgets a call that another process goes on with, and has the session stay that it is in.
    pub(super) fn leave(&self, call: CallKey) {
        if let Some(link) = self.link.get() {
            link.left(call);
        }
        self.work(|state, _| {
            state.machine.release_call(call, &mut state.outbox);
            state.questions.retain(|_, owner| *owner != call);
        });
    }

    pub(super) fn answer(&self, question: InputRequestKey, answer: Result<Raw, InputRequestError>) {
        self.work(|state, _| {
            state.questions.remove(&question);
            state.machine.respond(question, answer, &mut state.outbox);
        });
    }

    /// The id that the server gave a question.
    pub(super) fn id_of(&self, question: InputRequestKey) -> Option<String> {
        self.lock().machine.input_request_id(question).map(|id| id.raw().to_owned())
    }

    /// Where a call could be gone on with by another process.
    pub(super) fn whereabouts(&self, call: CallKey) -> Option<Whereabouts> {
        let whereabouts = self.link.get()?.whereabouts(call)?;
        // What was seen and nobody has looked at yet would be missed there.
        let is_quiet = self.lock().calls.get(call).is_some_and(Desk::is_quiet);
        is_quiet.then_some(whereabouts)
    }

    pub(super) fn keep_waiting(&self, question: InputRequestKey) {
        self.work(|state, _| state.machine.send_input_progress(question, &mut state.outbox));
    }

    pub(super) fn received(&self, message: &[u8], origin: Option<CallKey>) {
        self.work(|state, now| state.machine.receive(message, origin, now, &mut state.outbox));
    }

    pub(super) fn received_large(&self, message: String, origin: Option<CallKey>) {
        self.work(|state, now| {
            state.machine.receive_large(message, origin, now, &mut state.outbox);
        });
    }

    pub(super) fn dropped(&self, start: &[u8], why: DropReason, origin: Option<CallKey>) {
        self.work(|state, _| {
            state.machine.take_dropped_start(start, why, origin, &mut state.outbox)
        });
    }

    pub(super) fn dropped_end(&self, end: &[u8]) {
        self.work(|state, _| state.machine.take_dropped_end(end, &mut state.outbox));
    }

    pub(super) fn failed(&self, call: CallKey, fault: Fault) {
        self.work(|state, _| state.machine.fail_call(call, fault, &mut state.outbox));
    }

    /// The connection is over; the first reason counts.
    pub(super) fn ended(&self, fault: Fault, session_lost: bool) {
        self.end(Closed { fault, session_lost, by_us: false });
    }

    fn end(&self, closed: Closed) {
        let (fault, by_us) = (closed.fault.clone(), closed.by_us);
        let is_news =
            self.closed.send_if_modified(|told| told.is_none() && told.replace(closed).is_none());
        if !is_news {
            return;
        }
        self.work(|state, _| state.machine.close(fault.clone(), &mut state.outbox));
        // Nobody is to wait for a greeting for ever.
        self.opened.send_if_modified(|told| told.is_none() && told.replace(Err(fault)).is_none());
        // Whatever is left of the way, such as a child that only closed its output, is of no more use.
        if let (Some(link), Ok(runtime), false) = (self.link.get(), Handle::try_current(), by_us) {
            runtime.spawn(link.close());
        }
    }

    pub(super) async fn close(&self) {
        let detail = format!("the connection to `{}` was closed", self.name);
        let fault = unavailable_fault(&self.name, detail, "closed");
        self.end(Closed { fault, session_lost: false, by_us: true });
        if let Some(link) = self.link.get() {
            link.close().await;
        }
    }

    pub(super) fn is_open(&self, call: CallKey) -> bool {
        self.lock().machine.is_open(call)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lock().machine.in_flight()
    }

    pub(super) fn noise(&self) -> u64 {
        self.lock().machine.violation_count() as u64
    }

    pub(super) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// Must not take the state: the link is told of the opening by whoever holds it.
    pub(super) fn hears(&self, hears: bool) {
        self.hearing.send_replace(hears);
    }

    pub(super) fn hearing(&self) -> watch::Receiver<bool> {
        self.hearing.subscribe()
    }

    pub(super) fn ending(&self) -> impl Future<Output = Option<Closed>> + Send + use<> {
        let mut closed = self.closed.subscribe();
        async move { closed.wait_for(Option::is_some).await.ok().and_then(|told| told.clone()) }
    }

    pub(super) async fn closed(&self) -> Closed {
        match self.ending().await {
            Some(closed) => closed,
            // The sender lives as long as we do.
            None => std::future::pending().await,
        }
    }

    pub(super) fn is_closed(&self) -> Option<Closed> {
        self.closed.borrow().clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Does something with the machine and sees to what comes of it.
    fn work(&self, what: impl FnOnce(&mut State, Duration)) {
        let later = {
            let mut state = self.lock();
            let now = self.now();
            what(&mut state, now);
            self.obey(&mut state, now)
        };
        self.finish(later);
    }

    /// When the clock is to ring.
    fn arm(&self) -> Option<Instant> {
        let mut state = self.lock();
        state.armed = state.machine.deadline();
        state.armed.map(|due| self.started + due)
    }

    fn tick(&self) {
        self.work(|state, now| state.machine.tick(now, &mut state.outbox));
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let own = [&self.clock, &self.usher].into_iter().filter_map(OnceLock::get);
        own.for_each(AbortHandle::abort);
    }
}

/// The clock of a connection.
async fn ring(hub: Weak<Hub>, sooner: Arc<Notify>) {
    while let Some(due) = hub.upgrade().map(|hub| hub.arm()) {
        let Some(due) = due else {
            sooner.notified().await;
            continue;
        };
        tokio::select! {
            () = sooner.notified() => {}
            () = sleep_until(due) => {
                if let Some(hub) = hub.upgrade() {
                    hub.tick();
                }
            }
        }
    }
}
