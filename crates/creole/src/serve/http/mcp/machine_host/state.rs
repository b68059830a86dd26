//! The state of a machine host under its lock: the machine, the streams, the open calls and input requests.

use std::time::Duration;

use bytes::Bytes;
use creole_proto::server::{
    Action, Call, CallKey, FrameRole, FrameRoute, InputRequestKey, InputResponse, Machine, Outbox,
};
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::call::{Canceller, ConnectionId};
use crate::serve::http::mcp::machine_host::{COMMON_STREAM, StreamKey};
use crate::serve::http::mcp::stream::{ResponseStream, StreamEvent};
use crate::server::Service;
use crate::telemetry;

/// How long a stream is kept after its response was written, for a client that did not receive it.
const STREAM_RETENTION: Duration = Duration::from_secs(60);

/// Maximum number of streams that are kept after their responses.
const MAX_KEPT_STREAMS: usize = 32;

/// Maximum size of all streams that are kept after their responses.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;

/// The state under the lock.
pub(crate) struct MachineHostState {
    pub(crate) machine: Machine,
    pub(crate) outbox: Outbox,
    /// The stream of messages that belong to no request. It is inline, because a stateless request has no other.
    pub(crate) common: ResponseStream,
    pub(crate) streams: Vec<(StreamKey, ResponseStream)>,
    pub(crate) last_stream: StreamKey,
    pub(crate) calls: Vec<OpenCall>,
    pub(crate) input_requests: Vec<(InputRequestKey, oneshot::Sender<InputResponse>)>,
    /// Changes whenever the client reports changed roots; allocated when it is first needed.
    pub(crate) roots: Option<Box<watch::Sender<()>>>,
    /// Whether whole messages are logged.
    pub(crate) logs_payloads: bool,
}

/// A call without its response.
pub(crate) struct OpenCall {
    pub(crate) key: CallKey,
    stream: StreamKey,
    pub(crate) canceller: Option<Canceller>,
    pub(crate) task: Option<AbortHandle>,
}

impl MachineHostState {
    pub(crate) fn stream(&mut self, key: StreamKey) -> Option<&mut ResponseStream> {
        if key == COMMON_STREAM {
            return Some(&mut self.common);
        }
        self.streams.iter_mut().find(|(found, _)| *found == key).map(|(_, stream)| stream)
    }

    /// A call that has neither its response nor been cancelled.
    pub(crate) fn call_mut(&mut self, key: CallKey) -> Option<&mut OpenCall> {
        self.calls.iter_mut().find(|open| open.key == key)
    }

    pub(crate) fn has_room(&mut self, call: CallKey) -> bool {
        let key = self.stream_of(call);
        self.stream(key).is_none_or(|stream| stream.has_room())
    }

    pub(crate) fn stream_of(&self, call: CallKey) -> StreamKey {
        let open = self.calls.iter().find(|open| open.key == call);
        open.map_or(COMMON_STREAM, |open| open.stream)
    }

    /// Performs the machine's actions; returns the calls to be started.
    pub(crate) fn perform_actions(
        &mut self,
        service: &Service,
        id: ConnectionId,
        current: StreamKey,
    ) -> Vec<Call> {
        let mut started = Vec::new();
        while let Some(action) = self.outbox.next_action() {
            match action {
                Action::Start(call) => {
                    let key = call.key;
                    // Mostly there is one call.
                    self.calls.reserve_exact(1);
                    self.calls.push(OpenCall { key, stream: current, canceller: None, task: None });
                    started.reserve_exact(1);
                    started.push(call);
                }
                Action::Cancel(call, reason) => self.cancel_call(call, &reason),
                Action::InputResponse(ask, answer) => self.deliver_input_response(ask, answer),
                Action::ReleaseSubscriptions(uris) => {
                    uris.iter().for_each(|uri| service.registry().subscription_ended(uri, id));
                }
                Action::RootsChanged => {
                    if let Some(roots) = &self.roots {
                        roots.send_replace(());
                    }
                }
                Action::Observe(observation) => telemetry::record_observation(&observation),
            }
        }
        // The capacity is not needed until the next message.
        self.outbox.release_capacity();
        self.distribute(current);
        started
    }

    /// Cancels a call. Its response, if it gets one, is among the frames; without one its stream ends.
    fn cancel_call(&mut self, call: CallKey, reason: &str) {
        let Some(place) = self.calls.iter().position(|open| open.key == call) else { return };
        let key = self.calls[place].stream;
        self.distribute(key);
        let open = self.calls.swap_remove(place);
        let is_last = !self.calls.iter().any(|other| other.stream == key);
        open.stop_with_reason(reason);
        if let Some(stream) = self.stream(key).filter(|_| is_last && key != COMMON_STREAM) {
            stream.end();
        }
    }

    fn deliver_input_response(&mut self, ask: InputRequestKey, answer: InputResponse) {
        if let Some(place) = self.input_requests.iter().position(|(key, _)| *key == ask) {
            // A handler that stopped waiting is not an error.
            _ = self.input_requests.swap_remove(place).1.send(answer);
        }
    }

    /// Moves the frames to their streams.
    fn distribute(&mut self, current: StreamKey) {
        if let Some((route, role)) = self.only_frame() {
            // The common case: one response, which is not copied.
            let mut text = self.outbox.take_bytes();
            text.pop();
            return self.deliver(route, current, StreamEvent { role, text: text.into() });
        }
        let all: Vec<_> = self
            .outbox
            .frames()
            .map(|frame| {
                let text = Bytes::copy_from_slice(frame.text);
                (frame.route, StreamEvent { role: frame.role, text })
            })
            .collect();
        self.outbox.clear_frames();
        for (route, event) in all {
            self.deliver(route, current, event);
        }
    }

    fn only_frame(&self) -> Option<(FrameRoute, FrameRole)> {
        let mut frames = self.outbox.frames();
        let first = frames.next()?;
        frames.next().is_none().then_some((first.route, first.role))
    }

    fn deliver(&mut self, route: FrameRoute, current: StreamKey, event: StreamEvent) {
        if self.logs_payloads {
            telemetry::log_payload("sent", &event.text);
        }
        let key = match route {
            FrameRoute::Reply => current,
            FrameRoute::Call(call) => self.stream_of(call),
            FrameRoute::Session => COMMON_STREAM,
        };
        if let Some(stream) = self.stream(key) {
            stream.push(event);
        }
    }

    /// Frees the capacity that calls needed: most sessions are idle most of the time.
    pub(crate) fn shrink(&mut self) {
        self.outbox = Outbox::default();
        self.calls = Vec::new();
        self.input_requests = Vec::new();
    }

    /// Drops streams whose responses are old, and the oldest ones when there are many.
    pub(crate) fn forget_streams(&mut self) {
        let now = Instant::now();
        let is_old = |stream: &ResponseStream| {
            stream.over_since().is_some_and(|since| since + STREAM_RETENTION <= now)
        };
        self.streams.retain(|(_, stream)| !is_old(stream));
        let is_over = |(_, stream): &(StreamKey, ResponseStream)| stream.over_since().is_some();
        loop {
            let over = self.streams.iter().filter(|entry| is_over(entry));
            let (count, bytes) =
                over.fold((0, 0), |(count, bytes), (_, stream)| (count + 1, bytes + stream.size()));
            if count < MAX_KEPT_STREAMS && bytes <= MAX_KEPT_BYTES {
                return;
            }
            let Some(oldest) = self.streams.iter().position(is_over) else { return };
            self.streams.remove(oldest);
        }
    }
}

impl OpenCall {
    fn stop_with_reason(self, reason: &str) {
        if let Some(canceller) = &self.canceller {
            canceller.cancel_with_reason(reason);
        }
        self.stop();
    }

    pub(crate) fn stop(self) {
        if let Some(canceller) = self.canceller {
            canceller.cancel();
        }
        if let Some(task) = self.task {
            task.abort();
        }
    }
}
