//! The dispatcher of a connection: owns the protocol machine, routes its events to the calls, and its frames to the
//! transport.

mod frame_taps;
mod machine_events;
mod protocol_violations;

use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, OnceLock, Weak};
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

use super::call_slot::{CallSlot, CallStep, ServerInputRequests, SlotPoll};
use super::connection_setup::{
    CloseReason, ConnectionSetup, OnInputRequest, OnLog, OnViolation, PriorMessages,
    ServerNotification,
};
use super::transport::{Inbox, MessageReceiver, ResumePoint, Transport, TransportHandle};
use crate::client::dispatcher::frame_taps::FrameTaps;
use crate::client::dispatcher::protocol_violations::ViolationCounter;
use crate::process::unavailable_fault;
use crate::telemetry::record::FrameTap;

/// Maximum number of unread notifications; a receiver that lags gets an error.
const MAX_PENDING_NOTIFICATIONS: usize = 256;

/// The key of a call that was added, or why it was not.
pub(super) type AddedCall = Result<CallKey, Fault>;

/// Connects the protocol machine, the calls and the transport of one connection.
pub(super) struct Dispatcher {
    name: Arc<str>,
    state: Mutex<DispatcherState>,
    transport: OnceLock<Arc<dyn TransportHandle>>,
    opened: watch::Sender<Option<Result<Arc<NegotiationResult>, Fault>>>,
    closed_sender: watch::Sender<Option<CloseReason>>,
    notifications: broadcast::Sender<ServerNotification>,
    /// Whether notifications that belong to no call can arrive.
    notifications_available: watch::Sender<bool>,
    on_input_request: Option<OnInputRequest>,
    on_log: Option<OnLog>,
    on_violation: Option<OnViolation>,
    /// Notified when the machine's deadline moves forward.
    deadline_moved: Arc<Notify>,
    timer_task: OnceLock<AbortHandle>,
    started: Instant,
    weak_self: Weak<Self>,
}

struct DispatcherState {
    machine: Machine,
    outbox: Outbox,
    calls: MonotonicMap<CallKey, CallSlot>,
    /// The call that each input request belongs to.
    input_requests: BTreeMap<InputRequestKey, CallKey>,
    /// The next deadline of the timer.
    timer_deadline: Option<Duration>,
    violations: ViolationCounter,
    taps: FrameTaps,
}

impl Dispatcher {
    /// Connects the transport and opens the session.
    pub(super) fn start(transport: Box<dyn Transport>, setup: ConnectionSetup) -> Arc<Self> {
        let state = DispatcherState {
            machine: Machine::new(setup.profile, setup.opening)
                .with_ids_after_number(setup.after_id),
            outbox: Outbox::default(),
            calls: MonotonicMap::default(),
            input_requests: BTreeMap::new(),
            timer_deadline: None,
            violations: ViolationCounter::default(),
            taps: FrameTaps::default(),
        };
        let dispatcher = Arc::new_cyclic(|own| Self {
            name: transport.name().into(),
            state: Mutex::new(state),
            transport: OnceLock::new(),
            opened: watch::Sender::new(None),
            closed_sender: watch::Sender::new(None),
            notifications: broadcast::Sender::new(MAX_PENDING_NOTIFICATIONS),
            notifications_available: watch::Sender::new(true),
            on_input_request: setup.on_input_request,
            on_log: setup.on_log,
            on_violation: setup.on_violation,
            deadline_moved: Arc::new(Notify::new()),
            timer_task: OnceLock::new(),
            started: Instant::now(),
            weak_self: own.clone(),
        });
        dispatcher.begin_transport(transport, setup.prior_messages.as_ref());
        let clock = tokio::spawn(run_timer(
            Arc::downgrade(&dispatcher),
            Arc::clone(&dispatcher.deadline_moved),
        ));
        let _ = dispatcher.timer_task.set(clock.abort_handle());
        if setup.prior_messages.is_none() {
            dispatcher.with_machine(|state, now| {
                state.machine.open(now, &mut state.outbox);
            });
        }
        dispatcher
    }

    /// Connects the transport. Earlier messages are processed first: the transport's reader waits for the state
    /// meanwhile.
    fn begin_transport(
        self: &Arc<Self>,
        transport: Box<dyn Transport>,
        heard: Option<&PriorMessages>,
    ) {
        let heard = heard.map(|prior| (self.lock(), prior));
        let receiver = self.weak_self.clone();
        let _ = self.transport.set(transport.connect(Inbox(receiver)));
        if let Some((state, prior)) = heard {
            self.replay_messages(state, prior);
        }
    }

    /// Processes the server's earlier messages, in response to an opening request that was already sent.
    fn replay_messages(&self, mut state: MutexGuard<'_, DispatcherState>, prior: &PriorMessages) {
        let (now, inner) = (self.now(), &mut *state);
        inner.machine.open(now, &mut inner.outbox);
        inner.outbox.clear_frames();
        inner.machine.skip_ids_to(prior.last_request_id);
        for message in &prior.messages {
            inner.machine.receive(message.trim_ascii(), None, now, &mut inner.outbox);
        }
        let later = self.perform_actions(inner, now);
        drop(state);
        self.run_deferred(later);
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) async fn opened(&self) -> Result<Arc<NegotiationResult>, Fault> {
        let mut opened = self.opened.subscribe();
        let opened = opened.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
        opened.unwrap_or_else(|| {
            Err(Fault::new(
                FaultKind::Internal,
                "the upstream closed the connection before the handshake finished",
            ))
        })
    }

    pub(super) fn start_call(
        &self,
        request: CallRequest,
        mirrors: Arc<[MirroredHeader]>,
        tap: Option<FrameTap>,
    ) -> AddedCall {
        let has_headers = self.transport.get().is_some_and(|link| link.has_headers());
        // A frame that waits for the opening is sent under rules that are not known yet.
        let knows = has_headers && matches!(&*self.opened.borrow(), Some(Ok(_)));
        self.add_call(|state, now| {
            let rules = state.machine.rules();
            let headers = knows.then(|| {
                let mut headers = call_headers(&request.operation, rules, &mirrors);
                headers.extend(request.options.trace_headers.iter().cloned());
                headers
            });
            let key = state.machine.request(&request, now, &mut state.outbox);
            if tap.is_some() {
                state.taps.set(key, tap);
            }
            (key, CallSlot::new(mirrors, headers))
        })
    }

    pub(super) fn ping(&self) -> AddedCall {
        self.add_call(|state, now| {
            (state.machine.ping(now, &mut state.outbox), CallSlot::default())
        })
    }

    pub(super) fn set_level(&self, level: Level) -> AddedCall {
        self.add_call(|state, now| {
            (state.machine.set_level(level, now, &mut state.outbox), CallSlot::default())
        })
    }

    pub(super) fn roots_changed(&self) {
        self.with_machine(|state, _| state.machine.notify_roots_changed(&mut state.outbox));
    }

    /// Adds a call, unless the connection is closed or its send queue is full.
    fn add_call(
        &self,
        make: impl FnOnce(&mut DispatcherState, Duration) -> (CallKey, CallSlot),
    ) -> AddedCall {
        if let Some(fault) = self.unavailable_fault() {
            return Err(fault);
        }
        // Replaced below: the closure runs once.
        let mut key = CallKey(u64::MAX);
        self.with_machine(|state, now| {
            let (made, slot) = make(state, now);
            key = made;
            state.calls.insert(key, slot);
        });
        Ok(key)
    }

    /// Keeps the messages of a call in this record from now on, or in none.
    pub(super) fn set_tap(&self, call: CallKey, tap: Option<FrameTap>) {
        self.lock().taps.set(call, tap);
    }

    /// Clears the waker of a call; the next poll registers it again.
    pub(super) fn clear_waker(&self, call: CallKey) {
        if let Some(slot) = self.lock().calls.get_mut(call) {
            slot.clear_waker();
        }
    }

    /// The next step of a call; an unknown call is over.
    pub(super) fn poll_slot(&self, call: CallKey, context: &Context<'_>) -> Poll<SlotPoll> {
        let mut state = self.lock();
        let over = Poll::Ready(SlotPoll::Step(CallStep::Ended(None)));
        state.calls.get_mut(call).map_or(over, |slot| slot.poll(context))
    }

    fn unavailable_fault(&self) -> Option<Fault> {
        if let Some(closed) = &*self.closed_sender.borrow() {
            return Some(closed.fault.clone());
        }
        let is_full = self.transport.get().is_some_and(|link| link.is_full());
        let detail = || format!("`{}` is not reading its input; the send queue is full", self.name);
        is_full.then(|| Fault::new(FaultKind::Busy, detail()).with_subject(&self.name))
    }

    /// Removes a call; one that is not finished is cancelled, with this reason if there is one.
    pub(super) fn cancel_call(&self, call: CallKey, reason: Option<&str>) {
        let mut state = self.lock();
        let slot = state.calls.remove(call);
        state.taps.remove(call);
        let is_open = slot.is_some() && state.machine.is_open(call);
        drop(state);
        if is_open {
            self.with_machine(|state, _| {
                let reason = reason.unwrap_or("the caller no longer waits for the response");
                state.machine.cancel(call, reason, &mut state.outbox);
                state.input_requests.retain(|_, owner| *owner != call);
            });
            if let Some(link) = self.transport.get() {
                link.on_call_cancelled(call);
            }
        }
        // Dropped last, and outside of the lock: this refuses pending input requests.
        drop(slot);
    }

    /// Removes a call that another process continues, and keeps its session open.
    pub(super) fn hand_over_call(&self, call: CallKey) {
        if let Some(link) = self.transport.get() {
            link.on_call_handed_over(call);
        }
        self.with_machine(|state, _| {
            state.machine.release_call(call, &mut state.outbox);
            state.input_requests.retain(|_, owner| *owner != call);
        });
    }

    /// Where another process could continue a call.
    pub(super) fn resume_point(&self, call: CallKey) -> Option<ResumePoint> {
        let whereabouts = self.transport.get()?.resume_point(call)?;
        // The other process would miss events that the caller has not read yet.
        let is_quiet = self.lock().calls.get(call).is_some_and(CallSlot::is_drained);
        is_quiet.then_some(whereabouts)
    }

    fn close_with(&self, closed: CloseReason) {
        let (fault, by_us) = (closed.fault.clone(), closed.by_us);
        // After a lost session, calls may still be open.
        let has_open_calls = self.closed_sender.borrow().as_ref().is_none_or(|it| it.session_lost);
        self.refuse_calls(closed);
        if !has_open_calls {
            return;
        }
        self.with_machine(|state, _| state.machine.close(fault, &mut state.outbox));
        // The rest of the transport, such as a child that only closed its output, is of no more use.
        if let (Some(link), Ok(runtime), false) =
            (self.transport.get(), Handle::try_current(), by_us)
        {
            runtime.spawn(link.close());
        }
    }

    /// Lets calls that begin later fail, unless they do already.
    fn refuse_calls(&self, closed: CloseReason) {
        let fault = closed.fault.clone();
        self.closed_sender
            .send_if_modified(|reason| reason.is_none() && reason.replace(closed).is_none());
        // Ends the wait for the opening.
        self.opened
            .send_if_modified(|opened| opened.is_none() && opened.replace(Err(fault)).is_none());
    }

    pub(super) async fn close(&self) {
        let detail = format!("the connection to `{}` was closed", self.name);
        let fault = unavailable_fault(&self.name, detail, "closed");
        self.close_with(CloseReason { fault, session_lost: false, by_us: true });
        if let Some(link) = self.transport.get() {
            link.close().await;
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lock().machine.in_flight()
    }

    pub(super) fn violation_count(&self) -> u64 {
        self.lock().machine.violation_count() as u64
    }

    pub(super) fn notifications(&self) -> broadcast::Receiver<ServerNotification> {
        self.notifications.subscribe()
    }

    pub(super) fn watch_notifications_available(&self) -> watch::Receiver<bool> {
        self.notifications_available.subscribe()
    }

    pub(super) fn closed_future(&self) -> impl Future<Output = Option<CloseReason>> + Send + use<> {
        let mut closed = self.closed_sender.subscribe();
        async move { closed.wait_for(Option::is_some).await.ok().and_then(|it| it.clone()) }
    }

    pub(super) async fn wait_closed(&self) -> CloseReason {
        match self.closed_future().await {
            Some(closed) => closed,
            // The sender lives as long as the dispatcher.
            None => std::future::pending().await,
        }
    }

    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.closed_sender.borrow().clone()
    }

    fn lock(&self) -> MutexGuard<'_, DispatcherState> {
        self.state.lock()
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Gives input to the machine and processes its events.
    fn with_machine(&self, what: impl FnOnce(&mut DispatcherState, Duration)) {
        let later = {
            let mut state = self.lock();
            let now = self.now();
            what(&mut state, now);
            self.perform_actions(&mut state, now)
        };
        self.run_deferred(later);
    }

    /// When the timer must fire.
    fn next_deadline(&self) -> Option<Instant> {
        let mut state = self.lock();
        state.timer_deadline = state.machine.deadline();
        state.timer_deadline.map(|due| self.started + due)
    }

    fn tick(&self) {
        self.with_machine(|state, now| state.machine.tick(now, &mut state.outbox));
    }
}

impl ServerInputRequests for Dispatcher {
    fn respond(&self, key: InputRequestKey, response: Result<Raw, InputRequestError>) {
        self.with_machine(|state, _| {
            state.input_requests.remove(&key);
            state.machine.respond(key, response, &mut state.outbox);
        });
    }

    fn request_id_of(&self, key: InputRequestKey) -> Option<String> {
        self.lock().machine.input_request_id(key).map(|id| id.raw().to_owned())
    }

    fn send_keep_alive(&self, key: InputRequestKey) {
        self.with_machine(|state, _| state.machine.send_input_progress(key, &mut state.outbox));
    }
}

impl MessageReceiver for Dispatcher {
    fn on_message(&self, message: &[u8], origin: Option<CallKey>) {
        self.with_machine(|state, now| {
            state.taps.begin_message(message);
            state.machine.receive(message, origin, now, &mut state.outbox)
        });
    }

    fn on_large_message(&self, message: String, origin: Option<CallKey>) {
        self.with_machine(|state, now| {
            state.taps.begin_message(message.as_bytes());
            state.machine.receive_large(message, origin, now, &mut state.outbox);
        });
    }

    fn on_dropped_start(&self, start: &[u8], reason: DropReason, origin: Option<CallKey>) {
        self.with_machine(|state, _| {
            state.machine.take_dropped_start(start, reason, origin, &mut state.outbox)
        });
    }

    fn on_dropped_end(&self, end: &[u8]) {
        self.with_machine(|state, _| state.machine.take_dropped_end(end, &mut state.outbox));
    }

    fn on_call_failed(&self, call: CallKey, fault: Fault) {
        self.with_machine(|state, _| state.machine.fail_call(call, fault, &mut state.outbox));
    }

    fn on_call_held(&self, call: CallKey, is_held: bool) {
        self.with_machine(|state, now| state.machine.set_call_held(call, is_held, now));
        // The call may be the only one with a deadline.
        self.deadline_moved.notify_one();
    }

    fn on_closed(&self, fault: Fault) {
        self.close_with(CloseReason { fault, session_lost: false, by_us: false });
    }

    fn on_session_lost(&self, fault: Fault) {
        self.refuse_calls(CloseReason { fault, session_lost: true, by_us: false });
    }

    fn is_call_open(&self, call: CallKey) -> bool {
        self.lock().machine.is_open(call)
    }

    fn set_notifications_available(&self, is_listening: bool) {
        self.notifications_available.send_replace(is_listening);
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        if let Some(timer) = self.timer_task.get() {
            timer.abort();
        }
    }
}

/// The timer of a connection.
async fn run_timer(dispatcher: Weak<Dispatcher>, sooner: Arc<Notify>) {
    while let Some(due) = dispatcher.upgrade().map(|dispatcher| dispatcher.next_deadline()) {
        let Some(due) = due else {
            sooner.notified().await;
            continue;
        };
        tokio::select! {
            () = sooner.notified() => {}
            () = sleep_until(due) => {
                if let Some(dispatcher) = dispatcher.upgrade() {
                    dispatcher.tick();
                }
            }
        }
    }
}
