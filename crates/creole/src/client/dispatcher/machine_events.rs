//! Processes the events of a connection's machine: steps for its calls, frames for its transport.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::client::{CallKey, ClientEvent, FrameKind, InputRequestError, OutgoingFrame};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::request_headers;
use creole_proto::http::request_headers::HeaderField;
use creole_proto::monotonic_map::MonotonicMap;
use creole_proto::operation::Outcome;
use creole_proto::revision::Rules;
use creole_proto::wire::Raw;
use serde_json::json;

use super::super::call_slot::{CallEvent, CallSlot, InputResponder, ServerInputRequest};
use super::super::connection_setup::ServerNotification;
use super::super::transport::{Exchange, MessageReceiver};
use super::{Dispatcher, DispatcherState};
use crate::process::unavailable_fault;

/// Work that is left until the state is unlocked.
#[derive(Default)]
pub(super) struct DeferredWork {
    input_requests: Vec<ServerInputRequest>,
    has_too_many_violations: bool,
}

impl Dispatcher {
    /// Work that must not run while the state is locked: it calls other code, which may call back.
    pub(super) fn run_deferred(&self, later: DeferredWork) {
        for input_request in later.input_requests {
            match &self.on_input_request {
                Some(on_input_request) => on_input_request(input_request),
                None => input_request.responder.respond(Err(InputRequestError::unsupported(
                    "the client does not support input requests",
                ))),
            }
        }
        if later.has_too_many_violations {
            let detail = format!(
                "`{}` sent too many invalid messages; the connection was closed",
                self.name
            );
            self.on_closed(unavailable_fault(&self.name, detail, "noise"));
        }
    }

    pub(super) fn perform_actions(
        &self,
        state: &mut DispatcherState,
        now: Duration,
    ) -> DeferredWork {
        let mut later = DeferredWork::default();
        while let Some(event) = state.outbox.next_event() {
            self.handle_event(state, event, &mut later);
        }
        state.taps.end_message();
        // A frame can move the next deadline forward: a request its own one, any other frame and the opening any.
        let (mut soonest, mut is_any) = (None, self.opened.borrow().is_none());
        if let Some(link) = self.transport.get() {
            let DispatcherState { machine, outbox, calls, taps, .. } = state;
            for frame in outbox.frames() {
                match frame.kind {
                    FrameKind::Request(call) => {
                        taps.keep_sent(call, frame.text);
                        soonest = soonest.into_iter().chain(machine.deadline_of(call)).min();
                    }
                    FrameKind::Notification { .. } | FrameKind::Response => is_any = true,
                }
                let headers = match link.has_headers() {
                    true => frame_headers(&frame, calls, machine.rules()),
                    false => Vec::new(),
                };
                if let Some(exchange) = link.send(frame, headers) {
                    assign_exchange(exchange, frame.kind, calls);
                }
            }
        }
        state.outbox.clear_frames();
        let deadline = if is_any { state.machine.deadline() } else { soonest };
        if deadline.is_some_and(|due| state.timer_deadline.is_none_or(|armed| due < armed)) {
            self.deadline_moved.notify_one();
        }
        later.has_too_many_violations =
            state.violations.record_total(state.machine.violation_count(), now);
        later
    }

    fn handle_event(
        &self,
        state: &mut DispatcherState,
        received: ClientEvent,
        later: &mut DeferredWork,
    ) {
        match received {
            ClientEvent::Opened(greeting) => {
                if let Some(link) = self.transport.get() {
                    link.on_opened(&greeting);
                }
                self.opened.send_replace(Some(Ok(Arc::new(greeting))));
            }
            ClientEvent::OpenFailed(fault) => {
                self.opened.send_replace(Some(Err(fault)));
            }
            ClientEvent::CallDone(call, outcome) => {
                state.taps.keep_received(call);
                self.finish_call(state, call, outcome);
            }
            ClientEvent::CallEvent(call, event) => {
                state.taps.keep_received(call);
                if let Some(slot) = state.calls.get_mut(call) {
                    // A caller that does not poll misses some events.
                    let _ = slot.push_event(CallEvent::Event(event));
                }
            }
            ClientEvent::InputRequested { call, key, request: input_request, task } => {
                call.into_iter().for_each(|call| state.taps.keep_received(call));
                let responder = InputResponder { key, requests: Some(self.weak_self.clone()) };
                self.deliver_input_request(
                    state,
                    call,
                    ServerInputRequest { request: input_request, task, responder },
                    later,
                );
            }
            ClientEvent::InputNotOffered { call, request: input_request } => {
                if let Some(slot) = call.and_then(|call| state.calls.get_mut(call)) {
                    let _ = slot.push_event(CallEvent::InputNotOffered(input_request));
                }
            }
            ClientEvent::InputWithdrawn(key) => {
                let owner = state.input_requests.remove(&key);
                if let Some(slot) = owner.and_then(|call| state.calls.get_mut(call)) {
                    let _ = slot.push_event(CallEvent::InputWithdrawn(key));
                }
            }
            // There may be no receiver.
            ClientEvent::UnattributedLog(event) => match &self.on_log {
                Some(on_log) => on_log(event),
                None => _ = self.notifications.send(ServerNotification::Log(event)),
            },
            ClientEvent::ElicitationCompleted(id) => {
                _ = self.notifications.send(ServerNotification::ElicitationComplete(id))
            }
            ClientEvent::Changed { change, .. } => {
                _ = self.notifications.send(ServerNotification::Changed(change))
            }
            ClientEvent::ListenerEnded(call, fault) => {
                if let Some(slot) = state.calls.get_mut(call) {
                    slot.end(fault);
                }
            }
            ClientEvent::Violation(noise) => {
                tracing::debug!(upstream = %self.name, "protocol violation: {noise}");
                if let Some(on_violation) = &self.on_violation {
                    on_violation(&noise);
                }
            }
        }
    }

    fn finish_call(&self, state: &mut DispatcherState, call: CallKey, outcome: Outcome) {
        let is_over = !state.machine.is_open(call);
        if let Some(slot) = state.calls.get_mut(call) {
            slot.finish(self.with_server_name(outcome));
            if is_over {
                slot.end(None);
            }
        }
        if is_over {
            state.input_requests.retain(|_, owner| *owner != call);
            if let Some(link) = self.transport.get() {
                link.on_call_done(call);
            }
        }
    }

    /// The same outcome; a fault for lack of a response names the server.
    fn with_server_name(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Fail(fault) if fault.kind == FaultKind::Timeout => {
                let detail = format!("`{}` did not respond in time", self.name);
                let data = json!({"reason": "timeout", "upstream": &*self.name});
                let fault = Fault::new(FaultKind::Timeout, detail).with_subject(&self.name);
                fault.with_data(Raw::from_value(&data)).into()
            }
            other => other,
        }
    }

    fn deliver_input_request(
        &self,
        state: &mut DispatcherState,
        call: Option<CallKey>,
        input_request: ServerInputRequest,
        later: &mut DeferredWork,
    ) {
        let key = input_request.responder.key;
        let desk = call.and_then(|call| Some((call, state.calls.get_mut(call)?)));
        let Some((call, slot)) = desk else {
            later.input_requests.push(input_request);
            return;
        };
        match slot.push_event(CallEvent::InputRequested(input_request)) {
            Ok(()) => _ = state.input_requests.insert(key, call),
            Err(CallEvent::InputRequested(mut input_request)) => {
                // Its drop would take the lock that is held.
                input_request.responder.requests = None;
                let busy = InputRequestError {
                    code: -32603,
                    message: "too many events are queued for the call".to_owned(),
                };
                state.machine.respond(key, Err(busy), &mut state.outbox);
            }
            Err(_) => {}
        }
    }
}

/// Passes the exchange of a request to the call that waits for its response.
fn assign_exchange(
    exchange: Exchange,
    sending: FrameKind,
    calls: &mut MonotonicMap<CallKey, CallSlot>,
) {
    if let FrameKind::Request(call) = sending
        && let Some(slot) = calls.get_mut(call)
    {
        slot.set_exchange(exchange);
    } else {
        // No call waits: it is the opening request.
        tokio::spawn(exchange);
    }
}

/// The headers of a frame.
fn frame_headers(
    frame: &OutgoingFrame<'_>,
    calls: &mut MonotonicMap<CallKey, CallSlot>,
    rules: &Rules,
) -> Vec<HeaderField> {
    let slot = match frame.kind {
        FrameKind::Request(call) => calls.get_mut(call),
        _ => None,
    };
    match slot {
        Some(slot) => slot.headers(frame.text, rules),
        None => request_headers(frame.text, rules, &[]),
    }
}
