//! The state of a host under its lock: the machine, the open calls and input requests, and where messages go.

use creole_proto::server::{
    Action, Call, CallKey, InputRequestKey, InputResponse, Machine, Outbox,
};
use tokio::sync::{oneshot, watch};

use crate::call::ConnectionId;
use crate::host::{COMMON_STREAM, FrameSink, OpenCalls, StreamKey};
use crate::server::Service;
use crate::telemetry::request_log;

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
}

impl<S> HostState<S> {
    pub(super) fn new(machine: Machine, sink: S) -> Self {
        Self {
            machine,
            outbox: Outbox::default(),
            sink,
            calls: OpenCalls::default(),
            input_requests: Vec::new(),
            roots: None,
            awaits_room: false,
        }
    }
}

impl<S: FrameSink> HostState<S> {
    /// Performs the machine's actions up to the next start of a call.
    #[inline]
    pub(super) fn perform_until_start(
        &mut self,
        service: &Service,
        id: ConnectionId,
    ) -> Option<Call> {
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
                Action::Observe(observation) => request_log::record_observation(&observation),
            }
        }
        if S::FREES_BUFFERS {
            // The capacity is not needed until the next message.
            self.outbox.release_capacity();
        }
        None
    }

    /// Moves the frames to where they go.
    pub(super) fn take_frames(&mut self, current: StreamKey) {
        self.sink.take_frames(&mut self.outbox, &self.calls, current);
    }

    /// Cancels a call. Its response, if it gets one, is among the frames; without one its stream ends.
    fn cancel_call(&mut self, call: CallKey, reason: &str) {
        self.take_frames(self.calls.stream_of(call));
        let Some(stream) = self.calls.cancel(call, reason) else { return };
        if stream != COMMON_STREAM && !self.calls.has_stream(stream) {
            self.sink.end_stream(stream);
        }
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
    }
}
