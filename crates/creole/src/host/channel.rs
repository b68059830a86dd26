//! The channel from the calls of a host to their client.

use std::time::Duration;

use creole_proto::model::InputRequest;
use creole_proto::operation::Event;
use creole_proto::server::{CallKey, InputRequestKey, InputResponse, Machine, Outbox};
use creole_proto::wire::Raw;
use tokio::sync::{oneshot, watch};

use crate::call::ClientChannel;
use crate::chain::BoxFuture;
use crate::host::{COMMON_STREAM, FrameSink, HostState, MachineHost};

impl<S: FrameSink> ClientChannel for MachineHost<S> {
    fn send_event(&self, call: CallKey, event: Event) -> BoxFuture<'_, ()> {
        Box::pin(self.drive_when_room(call, move |state, now| {
            self.drive_locked(state, now, COMMON_STREAM, |machine, now, out| {
                machine.send_event(call, &event, now, out);
            });
        }))
    }

    fn request_input(
        &self,
        call: CallKey,
        input_request: InputRequest,
        trace: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(async move {
            let waiting = self.send_input_request(&mut self.lock(), |machine, now, out| {
                machine.request_input(call, &input_request, trace.as_ref(), now, out)
            });
            waiting.await.unwrap_or_else(|_| Err("the connection is closed".to_owned()))
        })
    }

    fn request_session_input(
        &self,
        input_request: InputRequest,
    ) -> oneshot::Receiver<InputResponse> {
        let mut state = self.lock();
        if !state.sink.takes_session_message(&state.outbox) {
            return oneshot::channel().1;
        }
        self.send_input_request(&mut state, |machine, now, out| {
            machine.request_session_input(&input_request, now, out)
        })
    }

    fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        Some(self.lock().watch_roots())
    }

    fn send_log(&self, event: Event) {
        let now = self.now();
        let mut state = self.lock();
        if state.sink.takes_session_message(&state.outbox) {
            self.drive_locked(&mut state, now, COMMON_STREAM, |machine, _, out| {
                machine.send_session_log(&event, out);
            });
            state.sink.wake_writer();
        }
    }

    fn release_connection(&self, call: CallKey, retry: Duration) {
        let mut state = self.lock();
        let stream = state.calls.stream_of(call);
        if stream != COMMON_STREAM {
            state.sink.release_stream(stream, retry);
        }
    }
}

impl<S: FrameSink> MachineHost<S> {
    /// Sends an input request to the client; the input response arrives later.
    fn send_input_request(
        &self,
        state: &mut HostState<S>,
        ask: impl FnOnce(&mut Machine, Duration, &mut Outbox) -> Option<InputRequestKey>,
    ) -> oneshot::Receiver<InputResponse> {
        let (sender, waiting) = oneshot::channel();
        if let Some(request) = ask(&mut state.machine, self.now(), &mut state.outbox) {
            state.await_input(request, sender);
        }
        self.perform_other_actions(state, COMMON_STREAM);
        state.sink.wake_writer();
        waiting
    }
}
