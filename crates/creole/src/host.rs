//! Hosts a protocol machine for every transport: performs its actions, and starts, polls and cancels its calls.
//!
//! A transport passes messages in, and implements [`FrameSink`], which says where messages go. The machine is behind a
//! lock. The code of a handler never runs under that lock: a handler that computes delays neither the other messages of
//! its connection nor their deadlines, as long as the transport has another thread for them.
//!
//! A call is registered with its canceller before its first poll, so a cancellation can never miss it.

mod caller;
mod calls;
mod channel;
#[cfg(feature = "http")]
mod resubscribe;
mod state;
#[cfg(all(test, feature = "http"))]
mod tests;

pub(crate) use caller::RequestCaller;
pub(crate) use calls::{HostedCall, OpenCalls, StartedCalls};
#[cfg(feature = "http")]
pub(crate) use resubscribe::resubscribe;
use state::ActionContext;
pub(crate) use state::HostState;

use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use creole_proto::fault::FaultKind;
use creole_proto::operation::{Operation, Outcome};
use creole_proto::server::{Call, CallKey, Machine, Outbox};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::call::{CallTelemetry, ClientChannel, ConnectionId, Origin};
use crate::registry::Announcement;
use crate::server::{LateCall, Service, ServiceCore};
use crate::sync::Mutex;
use crate::telemetry::Modes;
use crate::telemetry::facts::{RequestFacts, Transport, Via};
use crate::telemetry::record::CallRecord;
use crate::telemetry::trace::CurrentSpan;
use calls::OpenCall;

/// The key of a stream within its host.
pub(crate) type StreamKey = u64;

/// The stream of messages that belong to no request. A transport with one stream has only this one.
pub(crate) const COMMON_STREAM: StreamKey = 0;

/// Where the messages of a host go. It is a part of the host's state, under its lock.
pub(crate) trait FrameSink: Send + 'static {
    /// Whether most hosts of this transport are idle, so that a host frees its buffers when it has nothing to do.
    const FREES_BUFFERS: bool;

    /// Whether calls have streams of their own. A call then stays registered as long as its listener, so that the
    /// notifications find their stream.
    const HAS_STREAMS: bool;

    /// The transport, for the telemetry.
    const TRANSPORT: Transport;

    /// Takes the frames out of the outbox, or leaves them there for a later write. Frames without a call belong to the
    /// stream `current`.
    fn take_frames(&mut self, outbox: &mut Outbox, calls: &OpenCalls, current: StreamKey);

    /// Whether more may be written to a stream before the client has read what is queued.
    fn has_room(&self, outbox: &Outbox, stream: StreamKey) -> bool;

    /// Whether a message that belongs to no call is sent now. A slow client misses it otherwise.
    fn takes_session_message(&self, _outbox: &Outbox) -> bool {
        true
    }

    /// Ends a stream whose last call was cancelled.
    fn end_stream(&mut self, _stream: StreamKey) {}

    /// Asks the reader of a stream to reconnect later.
    fn release_stream(&mut self, _stream: StreamKey, _retry: Duration) {}

    /// A running call may have produced frames, and nothing else will write them.
    fn wake_writer(&self) {}
}

/// A machine and its calls.
pub(crate) struct MachineHost<S> {
    service: Service,
    origin: Origin,
    started: Instant,
    state: Mutex<HostState<S>>,
    /// Signals that a client has read something.
    room: Notify,
}

impl<S: FrameSink> MachineHost<S> {
    /// A host of this machine.
    pub(crate) fn new(service: Service, origin: Origin, machine: Machine, sink: S) -> Arc<Self> {
        let started = Instant::now();
        Arc::new(Self {
            service,
            origin,
            started,
            state: Mutex::new(HostState::new(machine, sink, started)),
            room: Notify::new(),
        })
    }

    /// The id of its connection.
    fn id(&self) -> ConnectionId {
        ConnectionId::of(self)
    }

    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// When it started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The time of the machine's clock.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HostState<S>> {
        // Every change is complete before anything can panic.
        self.state.lock()
    }

    /// Passes a message to the machine. The returned calls are registered; each needs its
    /// [first poll](Self::first_poll). Responses without a call go to `stream`. `caller` is the principal of this
    /// request, if it may differ from that of the connection.
    pub(crate) fn receive(
        self: &Arc<Self>,
        now: Duration,
        stream: StreamKey,
        caller: Option<RequestCaller<'_>>,
        act: impl FnOnce(&mut Machine, Duration, &mut Outbox),
    ) -> StartedCalls {
        let mut state = self.lock();
        let HostState { machine, outbox, .. } = &mut *state;
        act(machine, now, outbox);
        self.perform_actions(&mut state, now, stream, caller)
    }

    /// Performs the actions of a received message.
    pub(crate) fn perform_actions(
        self: &Arc<Self>,
        state: &mut HostState<S>,
        now: Duration,
        stream: StreamKey,
        caller: Option<RequestCaller<'_>>,
    ) -> StartedCalls {
        let mut started = StartedCalls::default();
        while let Some(call) = state.perform_until_start(self.action_context(caller)) {
            let rules = call.caller.rules;
            let denial = caller.and_then(|caller| caller.find_denial(&call));
            let call = self.register_call(state, call, now, stream, caller);
            if let Some(denial) = denial {
                call.canceller.set_abort_fault(FaultKind::InsufficientScope);
                started.deny(denial, rules);
            }
            started.push(call);
        }
        state.received = None;
        state.take_frames(stream);
        started
    }

    /// Makes the future of a call, which runs nothing until it is polled, and registers its canceller.
    fn register_call(
        self: &Arc<Self>,
        state: &mut HostState<S>,
        call: Call,
        now: Duration,
        stream: StreamKey,
        caller: Option<RequestCaller<'_>>,
    ) -> HostedCall {
        let (key, is_listener) = (call.key, matches!(call.operation, Operation::Listen(_)));
        let channel = Arc::clone(self) as Arc<dyn ClientChannel>;
        let origin = match caller {
            Some(caller) => self.origin.of_request(caller.principal, caller.scopes),
            None => self.origin.clone(),
        };
        let core = self.service.current().load_full();
        let telemetry = match self.service.modes().is_empty() {
            true => None,
            false => Some(self.follow_call(&core, state, &call, now, caller)),
        };
        let (future, canceller) = core.start_call(call, channel, origin, telemetry);
        if let Some(hold) = canceller.record().and_then(CallRecord::hold) {
            state.holds.push((key, hold));
        }
        state.calls.push(OpenCall { key, stream, canceller: canceller.clone(), task: None });
        HostedCall { key, future, canceller, is_listener }
    }

    /// Lets the telemetry follow a call that starts.
    #[cold]
    fn follow_call(
        &self,
        core: &ServiceCore,
        state: &mut HostState<S>,
        call: &Call,
        now: Duration,
        caller: Option<RequestCaller<'_>>,
    ) -> Arc<CallTelemetry> {
        let (modes, server) = (self.service.modes(), &core.telemetry);
        state.measured.count(server, call, now, S::TRANSPORT.into());
        if !modes.reads_calls() {
            return server.follow_unrecorded(modes);
        }
        let principal = caller.map_or(&self.origin.principal, |caller| caller.principal);
        // Nothing more is known of most requests through a pipe, and their facts are made when a reader wants them.
        let has_facts = caller.is_some() || self.origin.via != Via::Mcp;
        let known = has_facts.then(|| self.facts_of(state, call.key, caller));
        let make_facts = || self.facts_of(state, call.key, caller);
        let telemetry = server.follow_call(modes, call, principal, known.as_ref(), make_facts);
        if modes.contains(Modes::LATE)
            && telemetry.record.is_none()
            && let Some((method, id)) = state.machine.request_of(call.key)
        {
            let late = LateCall::new((method, id.shared_raw()), call.operation.target(), known);
            state.measured.keep_late(server, call.key, now, late);
        }
        telemetry
    }

    /// What the telemetry knows of the request of a call.
    fn facts_of(
        &self,
        state: &HostState<S>,
        key: CallKey,
        caller: Option<RequestCaller<'_>>,
    ) -> RequestFacts {
        let mut facts = state.request_facts(&self.service, caller);
        if self.origin.via != Via::Mcp {
            facts.via = self.origin.via;
        }
        if let Some((method, id)) = state.machine.request_of(key) {
            facts.method = Some(method);
            let is_recorded = self.service.modes().contains(Modes::RECORDS);
            facts.request_id = is_recorded.then(|| id.shared_raw());
        }
        facts
    }

    fn action_context<'a>(&'a self, caller: Option<RequestCaller<'a>>) -> ActionContext<'a> {
        let principal = caller.map_or(&self.origin.principal, |caller| caller.principal);
        ActionContext { service: &self.service, id: self.id(), principal, caller }
    }

    /// Gives input to the machine that starts no call, and performs its actions.
    pub(crate) fn drive(
        &self,
        stream: StreamKey,
        act: impl FnOnce(&mut Machine, Duration, &mut Outbox),
    ) {
        let now = self.now();
        self.drive_locked(&mut self.lock(), now, stream, act);
    }

    /// The same, for an owner of the lock.
    pub(crate) fn drive_locked(
        &self,
        state: &mut HostState<S>,
        now: Duration,
        stream: StreamKey,
        act: impl FnOnce(&mut Machine, Duration, &mut Outbox),
    ) {
        act(&mut state.machine, now, &mut state.outbox);
        self.perform_other_actions(state, stream);
    }

    /// Performs the actions of an input that starts no call.
    fn perform_other_actions(&self, state: &mut HostState<S>, stream: StreamKey) {
        let started = state.perform_until_start(self.action_context(None));
        debug_assert!(started.is_none(), "only a received message starts calls");
        state.take_frames(stream);
    }

    /// Polls a call for the first time, without the lock. Most calls finish here; the others are returned. If the same
    /// task continues them, it need not poll them before it is woken. A call that was cancelled is not polled.
    pub(crate) fn first_poll(
        &self,
        mut call: HostedCall,
        context: &mut Context<'_>,
    ) -> Option<HostedCall> {
        match call.poll(context)? {
            Poll::Ready(outcome) => {
                self.finish_call(call.key, outcome);
                None
            }
            Poll::Pending => (!call.canceller.is_cancelled()).then_some(call),
        }
    }

    /// Reports the outcome of a call.
    pub(crate) fn finish_call(&self, key: CallKey, outcome: Outcome) {
        let now = self.now();
        self.finish_locked(&mut self.lock(), now, key, outcome);
    }

    /// The same, for an owner of the lock.
    pub(crate) fn finish_locked(
        &self,
        state: &mut HostState<S>,
        now: Duration,
        key: CallKey,
        outcome: Outcome,
    ) {
        if !state.measured.is_empty()
            && let Some(open) = state.calls.get(key)
        {
            state.measured.end(&open.canceller, key, &outcome, now);
        }
        if state.machine.is_observed() || !state.holds.is_empty() {
            self.finish_observed(state, now, key, outcome);
        } else {
            self.drive_locked(state, now, COMMON_STREAM, |machine, now, outbox| {
                machine.finish(key, outcome, now, outbox);
            });
        }
        if !S::HAS_STREAMS || !state.machine.is_open(key) {
            state.calls.remove(key);
        }
        if S::FREES_BUFFERS && state.calls.is_empty() {
            state.free_buffers();
        }
    }

    /// Gives the outcome of a call to the machine. The log's event about the response names the trace of the call, and
    /// a record may wait for the message of the response.
    #[cold]
    fn finish_observed(
        &self,
        state: &mut HostState<S>,
        now: Duration,
        key: CallKey,
        outcome: Outcome,
    ) {
        let hold = state.take_hold(key);
        let _span = state.span_of(key).map(CurrentSpan::enter);
        self.drive_locked(state, now, COMMON_STREAM, |machine, now, outbox| {
            machine.finish(key, outcome, now, outbox);
            if let Some(hold) = hold {
                hold.add_response(key, outbox);
            }
        });
    }

    /// Runs a call to its end in a task. The transport enforces the deadlines.
    pub(crate) fn spawn_call(self: &Arc<Self>, call: HostedCall) {
        let (host, key) = (Arc::clone(self), call.key);
        let task = tokio::spawn(async move {
            let outcome = call.future.await;
            // The outcome waits like any other message of the call.
            host.drive_when_room(key, |state, now| host.finish_locked(state, now, key, outcome))
                .await;
        });
        self.set_task(key, task.abort_handle());
    }

    /// Sets the task that runs a call, to be aborted with it: at once if the call ended since the task was spawned.
    pub(crate) fn set_task(&self, key: CallKey, task: AbortHandle) {
        match self.lock().calls.get_mut(key) {
            Some(open) => open.task = Some(task),
            None => task.abort(),
        }
    }

    /// Waits until the client of a call has read enough, then acts under the same lock.
    async fn drive_when_room(&self, call: CallKey, act: impl FnOnce(&mut HostState<S>, Duration)) {
        loop {
            {
                let mut state = self.lock();
                if state.has_room(call) {
                    act(&mut state, self.now());
                    return state.sink.wake_writer();
                }
            }
            self.wait_for_room(call).await;
        }
    }

    async fn wait_for_room(&self, call: CallKey) {
        let mut room = std::pin::pin!(self.room.notified());
        // Registered before the state is read, so that a signal in between is not missed.
        room.as_mut().enable();
        {
            let mut state = self.lock();
            if state.has_room(call) {
                return;
            }
            state.awaits_room = true;
        }
        room.await;
    }

    /// The transport has passed on queued messages: wakes the calls that wait for that.
    pub(crate) fn notify_room(&self, state: &mut HostState<S>) {
        if std::mem::take(&mut state.awaits_room) {
            self.room.notify_waiters();
        }
    }

    /// Announces a change, or, with `None` after missed changes, every list as changed: a spurious notification is
    /// harmless, a lost one is not.
    pub(crate) fn announce(&self, announcement: Option<&Announcement>) {
        if announcement.is_some_and(|it| !it.to.includes(&self.origin)) {
            return;
        }
        self.drive(COMMON_STREAM, |machine, _, out| match announcement {
            Some(announcement) => machine.announce(&announcement.change, out),
            None => machine.announce_all_lists(out),
        });
    }

    /// When [`tick`](Self::tick) is next due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().machine.deadline().map(|deadline| self.started + deadline)
    }

    /// Ends calls and input requests whose deadline has passed.
    pub(crate) fn tick(&self) {
        self.drive(COMMON_STREAM, |machine, now, out| machine.tick(now, out));
    }

    /// Whether a call is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !self.lock().calls.is_empty()
    }

    /// Ends the machine: listeners get their final result, calls are cancelled.
    pub(crate) fn close(&self) {
        self.drive(COMMON_STREAM, |machine, now, out| machine.close(now, out));
        self.cancel_calls();
    }

    /// Cancels calls whose client is gone.
    pub(crate) fn cancel_calls(&self) {
        self.lock().stop_calls();
    }
}

impl<S> Drop for MachineHost<S> {
    fn drop(&mut self) {
        let id = ConnectionId::of(self);
        let machine = &self.state.get_mut().machine;
        machine
            .subscribed_uris()
            .for_each(|uri| self.service.registry().subscription_ended(uri, id));
    }
}
