//! What the machine of a connection wants done: news for its calls, frames for its link.

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

use super::super::calling::{Asked, Desk, News, Reply};
use super::super::connection::Notice;
use super::super::link::Carrier;
use super::turns::Turns;
use super::{Hub, State};
use crate::process::unavailable_fault;

/// What is left to do once the state is free again.
#[derive(Default)]
pub(super) struct Later {
    asked: Vec<Asked>,
    is_too_noisy: bool,
}

impl Hub {
    /// What must not be done while the state is held: others are called, who may call back.
    pub(super) fn finish(&self, later: Later) {
        for asked in later.asked {
            match &self.on_question {
                Some(on_question) => on_question(asked),
                None => asked
                    .reply
                    .answer(Err(InputRequestError::unsupported("nobody here can be asked"))),
            }
        }
        if later.is_too_noisy {
            let detail = format!("`{}` says too much that is no message", self.name);
            self.ended(unavailable_fault(&self.name, detail, "noise"), false);
        }
    }

    pub(super) fn obey(&self, state: &mut State, now: Duration) -> Later {
        let mut later = Later::default();
        while let Some(happening) = state.outbox.next_event() {
            self.take(state, happening, &mut later);
        }
        // What is sent can bring the next deadline forward: a request its own one, the rest and the opening any.
        let (mut soonest, mut is_any) = (None, self.opened.borrow().is_none());
        if let Some(link) = self.link.get() {
            let State { machine, outbox, calls, turns, .. } = state;
            for frame in outbox.frames() {
                match frame.kind {
                    FrameKind::Request(call) => {
                        soonest = soonest.into_iter().chain(machine.deadline_of(call)).min();
                    }
                    FrameKind::Notification { .. } | FrameKind::Response => is_any = true,
                }
                let headers = match link.has_headers() {
                    true => headers(&frame, calls, machine.rules()),
                    false => Vec::new(),
                };
                if let Some(carrier) = link.send(frame, headers) {
                    leave(carrier, frame.kind, calls, turns);
                }
            }
        }
        state.outbox.clear_frames();
        let deadline = if is_any { state.machine.deadline() } else { soonest };
        if deadline.is_some_and(|due| state.armed.is_none_or(|armed| due < armed)) {
            self.sooner.notify_one();
        }
        later.is_too_noisy = state.noise.note(state.machine.violation_count(), now);
        later
    }

    fn take(&self, state: &mut State, happening: ClientEvent, later: &mut Later) {
        match happening {
            ClientEvent::Opened(greeting) => {
                if let Some(link) = self.link.get() {
                    link.opened(&greeting);
                }
                self.opened.send_replace(Some(Ok(Arc::new(greeting))));
            }
            ClientEvent::OpenFailed(fault) => {
                self.opened.send_replace(Some(Err(fault)));
            }
            ClientEvent::CallDone(call, outcome) => self.done(state, call, outcome),
            ClientEvent::CallEvent(call, event) => {
                if let Some(desk) = state.calls.get_mut(call) {
                    // A caller that does not listen misses some of it.
                    let _ = desk.tell(News::Event(event));
                }
            }
            ClientEvent::InputRequested { call, key: question, request: what, task } => {
                let reply = Reply { key: question, hub: self.own.clone(), is_owed: true };
                self.asked(state, call, Asked { question: what, task, reply }, later);
            }
            ClientEvent::InputNotOffered { call, request: what } => {
                if let Some(desk) = call.and_then(|call| state.calls.get_mut(call)) {
                    let _ = desk.tell(News::NotOffered(what));
                }
            }
            ClientEvent::InputWithdrawn(question) => {
                let owner = state.questions.remove(&question);
                if let Some(desk) = owner.and_then(|call| state.calls.get_mut(call)) {
                    let _ = desk.tell(News::Withdrawn(question));
                }
            }
            // Nobody may be listening.
            ClientEvent::UnattributedLog(event) => match &self.on_log {
                Some(on_log) => on_log(event),
                None => _ = self.notices.send(Notice::Logged(event)),
            },
            ClientEvent::ElicitationCompleted(id) => _ = self.notices.send(Notice::Visited(id)),
            ClientEvent::Changed { change, .. } => _ = self.notices.send(Notice::Changed(change)),
            ClientEvent::ListenerEnded(call, fault) => {
                if let Some(desk) = state.calls.get_mut(call) {
                    desk.end(fault);
                }
            }
            ClientEvent::Violation(noise) => {
                tracing::debug!(upstream = %self.name, "dropped: {noise}");
            }
        }
    }

    fn done(&self, state: &mut State, call: CallKey, outcome: Outcome) {
        let is_over = !state.machine.is_open(call);
        if let Some(desk) = state.calls.get_mut(call) {
            desk.finish(self.named(outcome));
            if is_over {
                desk.end(None);
            }
        }
        if is_over {
            state.questions.retain(|_, owner| *owner != call);
            if let Some(link) = self.link.get() {
                link.done(call);
            }
        }
    }

    /// The same outcome; what failed for want of an answer names whose answer it was.
    fn named(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Fail(fault) if fault.kind == FaultKind::Timeout => {
                let detail = format!("`{}` did not answer in time", self.name);
                let data = json!({"reason": "timeout", "upstream": &*self.name});
                let fault = Fault::new(FaultKind::Timeout, detail).with_subject(&self.name);
                fault.with_data(Raw::from_value(&data)).into()
            }
            other => other,
        }
    }

    fn asked(&self, state: &mut State, call: Option<CallKey>, asked: Asked, later: &mut Later) {
        let key = asked.reply.key;
        let desk = call.and_then(|call| Some((call, state.calls.get_mut(call)?)));
        let Some((call, desk)) = desk else {
            later.asked.push(asked);
            return;
        };
        match desk.tell(News::Asked(asked)) {
            Ok(()) => _ = state.questions.insert(key, call),
            Err(News::Asked(mut asked)) => {
                // Its drop would take the lock that is held.
                asked.reply.is_owed = false;
                let busy =
                    InputRequestError { code: -32603, message: "too much is waiting".to_owned() };
                state.machine.respond(key, Err(busy), &mut state.outbox);
            }
            Err(_) => {}
        }
    }
}

/// Leaves a request to whoever waits for its answer.
fn leave(
    carrier: Carrier,
    sending: FrameKind,
    calls: &mut MonotonicMap<CallKey, Desk>,
    turns: &mut Turns,
) {
    if let FrameKind::Request(call) = sending
        && let Some(desk) = calls.get_mut(call)
    {
        desk.carry(carrier, turns.are_taken);
        if turns.are_taken {
            turns.hold(call);
        }
    } else {
        // Nobody does: it opens the conversation.
        tokio::spawn(carrier);
    }
}

/// The headers of a frame.
fn headers(
    frame: &OutgoingFrame<'_>,
    calls: &mut MonotonicMap<CallKey, Desk>,
    rules: &Rules,
) -> Vec<HeaderField> {
    let desk = match frame.kind {
        FrameKind::Request(call) => calls.get_mut(call),
        _ => None,
    };
    match desk {
        Some(desk) => desk.headers(frame.text, rules),
        None => request_headers(frame.text, rules, &[]),
    }
}
