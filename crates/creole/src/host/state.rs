//! The state of a host under its lock: the machine, the open calls and input requests, and where messages go.

use std::sync::Arc;

use creole_proto::server::{
    Action, Call, CallKey, FrameRole, FrameRoute, InputRequestKey, InputResponse, Machine,
    Observation, Outbox, OutgoingFrame,
};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::call::ConnectionId;
use crate::host::{COMMON_STREAM, FrameSink, OpenCalls, RequestCaller, StreamKey};
use crate::principal::Principal;
use crate::server::{MeasuredCalls, Service};
use crate::telemetry::facts::RequestFacts;
use crate::telemetry::frames::FrameDirection;
use crate::telemetry::record::ReportHold;
use crate::telemetry::request_log;
use crate::telemetry::trace::TraceContext;

/// The state under the lock.
pub(crate) struct HostState<S> {
    pub(crate) machine: Machine,
    pub(crate) outbox: Outbox,
    pub(crate) sink: S,
    pub(super) calls: OpenCalls,
    input_requests: Vec<(InputRequestKey, oneshot::Sender<InputResponse>)>,
    /// Changes whenever the client reports changed roots; allocated when it is first needed.
    roots: Option<Box<watch::Sender<()>>>,
    /// Whether a call waits until the client has read something.
    pub(super) awaits_room: bool,
    /// The records of calls whose readers want the messages of the responses.
    pub(super) holds: Vec<(CallKey, ReportHold)>,
    /// The calls that are measured.
    pub(super) measured: MeasuredCalls,
    /// The message that is being received, if a reader of the telemetry may want messages.
    pub(crate) received: Option<Arc<str>>,
}

/// What the machine's actions concern.
#[derive(Clone, Copy)]
pub(super) struct ActionContext<'a> {
    pub(super) service: &'a Service,
    pub(super) id: ConnectionId,
    pub(super) principal: &'a Principal,
    pub(super) caller: Option<RequestCaller<'a>>,
}

impl<S> HostState<S> {
    pub(super) fn new(machine: Machine, sink: S, clock: Instant) -> Self {
        Self {
            machine,
            outbox: Outbox::default(),
            sink,
            calls: OpenCalls::default(),
            input_requests: Vec::new(),
            roots: None,
            awaits_room: false,
            holds: Vec::new(),
            measured: MeasuredCalls::new(clock),
            received: None,
        }
    }
}

impl<S: FrameSink> HostState<S> {
    /// Performs the machine's actions up to the next start of a call.
    #[inline]
    pub(super) fn perform_until_start(&mut self, context: ActionContext<'_>) -> Option<Call> {
        let ActionContext { service, id, .. } = context;
        while let Some(action) = self.outbox.next_action() {
            match action {
                Action::Start(call) => return Some(call),
                Action::Cancel(call, reason) => self.cancel_call(call, &reason),
                Action::InputResponse(request, response) => {
                    self.deliver_input_response(request, response);
                }
                Action::ReleaseSubscriptions(uris) => {
                    uris.iter().for_each(|uri| service.registry().subscription_ended(uri, id));
                }
                Action::RootsChanged => {
                    if let Some(roots) = &self.roots {
                        roots.send_replace(());
                    }
                }
                Action::Observe(observation) => self.observe(&observation, context),
            }
        }
        if S::FREES_BUFFERS {
            // The capacity is not needed until the next message.
            self.outbox.release_capacity();
        }
        None
    }

    /// Reports an observation to the log and to the telemetry.
    #[cold]
    fn observe(&self, observation: &Observation, context: ActionContext<'_>) {
        let ActionContext { service, principal, caller, .. } = context;
        if self.machine.is_observed() {
            request_log::record_observation(observation);
        }
        let core = service.current().load();
        core.telemetry.observe(observation, principal, || self.request_facts(service, caller));
    }

    /// What the transport knows of the request that is being received.
    pub(super) fn request_facts(
        &self,
        service: &Service,
        caller: Option<RequestCaller<'_>>,
    ) -> RequestFacts {
        match caller.and_then(|caller| caller.source) {
            Some(source) => source.facts(service.modes()),
            // A message that the transport itself rejects has no caller.
            None => RequestFacts {
                transport: S::TRANSPORT,
                frame: self.received.clone(),
                ..RequestFacts::default()
            },
        }
    }

    /// Moves the frames to where they go.
    pub(super) fn take_frames(&mut self, current: StreamKey) {
        self.sink.take_frames(&mut self.outbox, &self.calls, current);
    }

    /// Cancels a call. Its response, if it gets one, is among the frames; without one its stream ends.
    fn cancel_call(&mut self, call: CallKey, reason: &str) {
        self.record_abort(call);
        self.take_frames(self.calls.stream_of(call));
        let Some(stream) = self.calls.cancel(call, reason) else { return };
        if stream != COMMON_STREAM && !self.calls.has_stream(stream) {
            self.sink.end_stream(stream);
        }
    }

    /// Tells the telemetry what the client gets for a call that is cancelled, if it gets a response.
    fn record_abort(&mut self, call: CallKey) {
        let Some(open) = self.calls.get(call) else { return };
        let is_response = |frame: &OutgoingFrame<'_>| frame.route == FrameRoute::Call(call);
        if let Some(FrameRole::Response(Some(kind))) =
            self.outbox.frames().filter(is_response).last().map(|frame| frame.role)
        {
            open.canceller.set_abort_fault(kind);
        }
        self.measured.abort(&open.canceller, call);
        if let Some(hold) = self.take_hold(call) {
            hold.add_response(call, &self.outbox);
        }
    }

    /// Cancels all calls.
    pub(super) fn stop_calls(&mut self) {
        self.calls.stop_all(&mut self.measured);
        self.holds.clear();
    }

    /// The span of a call, if the call is sampled.
    pub(super) fn span_of(&self, call: CallKey) -> Option<TraceContext> {
        self.calls.get(call)?.canceller.span()
    }

    /// Takes the hold on the record of a call, if there is one.
    pub(super) fn take_hold(&mut self, call: CallKey) -> Option<ResponseHold> {
        let index = self.holds.iter().position(|(key, _)| *key == call)?;
        Some(ResponseHold(self.holds.swap_remove(index).1))
    }

    fn deliver_input_response(&mut self, request: InputRequestKey, response: InputResponse) {
        if let Some(index) = self.input_requests.iter().position(|(key, _)| *key == request) {
            // A handler that stopped waiting is not an error.
            _ = self.input_requests.swap_remove(index).1.send(response);
        }
    }

    /// Registers an open input request. Removes those of finished calls, which no longer wait for a response.
    pub(super) fn await_input(
        &mut self,
        request: InputRequestKey,
        waiting: oneshot::Sender<InputResponse>,
    ) {
        self.input_requests.retain(|(_, waiting)| !waiting.is_closed());
        self.input_requests.push((request, waiting));
    }

    pub(super) fn watch_roots(&mut self) -> watch::Receiver<()> {
        self.roots.get_or_insert_with(|| Box::new(watch::Sender::new(()))).subscribe()
    }

    pub(super) fn has_room(&self, call: CallKey) -> bool {
        self.sink.has_room(&self.outbox, self.calls.stream_of(call))
    }

    /// Frees the capacity that calls needed.
    pub(super) fn free_buffers(&mut self) {
        self.outbox = Outbox::default();
        self.calls = OpenCalls::default();
        self.input_requests = Vec::new();
        self.holds = Vec::new();
        self.measured.free_capacity();
    }
}

/// Lets the record of a call wait for the message of its response, which a reader wants.
pub(super) struct ResponseHold(ReportHold);

impl ResponseHold {
    /// Keeps the response to the call, which is among the frames. Dropping the hold then reports the end of the call.
    pub(super) fn add_response(self, call: CallKey, outbox: &Outbox) {
        let is_response = |frame: &OutgoingFrame<'_>| {
            frame.route == FrameRoute::Call(call) && matches!(frame.role, FrameRole::Response(_))
        };
        if let Some(frame) = outbox.frames().filter(is_response).last() {
            self.0.record().add_frame(FrameDirection::ClientOut, None, frame.text);
        }
    }
}
