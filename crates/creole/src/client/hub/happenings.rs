//! What the machine of a connection wants done: news for its calls, frames for its link.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::client::{CallKey, Happening, Outgoing, Refusal, Sending};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::request::Header;
use creole_proto::http::request_headers;
use creole_proto::op::Outcome;
use creole_proto::revision::Rules;
use creole_proto::rising::Rising;
use creole_proto::wire::Raw;
use serde_json::json;

use super::super::calling::{Asked, Desk, News, Reply};
use super::super::connection::Notice;
use super::super::link::Carrier;
use super::turns::Turns;
use super::{Hub, State};
use crate::process::unavailable;

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
                None => asked.reply.answer(Err(Refusal::unsupported("nobody here can be asked"))),
            }
        }
        if later.is_too_noisy {
            let detail = format!("`{}` says too much that is no message", self.name);
            self.ended(unavailable(&self.name, detail, "noise"), false);
        }
    }

    pub(super) fn obey(&self, state: &mut State, now: Duration) -> Later {
        let mut later = Later::default();
        while let Some(happening) = state.outbox.next_happening() {
            self.take(state, happening, &mut later);
        }
        // What is sent can bring the next deadline forward: a request its own one, the rest and the opening any.
        let (mut soonest, mut is_any) = (None, self.opened.borrow().is_none());
        if let Some(link) = self.link.get() {
            let State { machine, outbox, calls, turns, .. } = state;
            for frame in outbox.frames() {
                match frame.sending {
                    Sending::Request(call) => {
                        soonest = soonest.into_iter().chain(machine.deadline_of(call)).min();
                    }
                    Sending::Notification { .. } | Sending::Response => is_any = true,
                }
                let headers = match link.has_headers() {
                    true => headers(&frame, calls, machine.rules()),
                    false => Vec::new(),
                };
                if let Some(carrier) = link.send(frame, headers) {
                    leave(carrier, frame.sending, calls, turns);
                }
            }
        }
        state.outbox.clear_frames();
        let deadline = if is_any { state.machine.deadline() } else { soonest };
        if deadline.is_some_and(|due| state.armed.is_none_or(|armed| due < armed)) {
            self.sooner.notify_one();
        }
        later.is_too_noisy = state.noise.note(state.machine.noise(), now);
        later
    }

    fn take(&self, state: &mut State, happening: Happening, later: &mut Later) {
        match happening {
            Happening::Opened(greeting) => {
                if let Some(link) = self.link.get() {
                    link.opened(&greeting);
                }
                self.opened.send_replace(Some(Ok(Arc::new(greeting))));
            }
            Happening::Refused(fault) => {
                self.opened.send_replace(Some(Err(fault)));
            }
            Happening::Done(call, outcome) => self.done(state, call, outcome),
            Happening::Event(call, event) => {
                if let Some(desk) = state.calls.get_mut(call) {
                    // A caller that does not listen misses some of it.
                    let _ = desk.tell(News::Event(event));
                }
            }
            Happening::Asked { call, question, what, task } => {
                let reply = Reply { key: question, hub: self.own.clone(), is_owed: true };
                self.asked(state, call, Asked { question: what, task, reply }, later);
            }
            Happening::NotOffered { call, what } => {
                if let Some(desk) = call.and_then(|call| state.calls.get_mut(call)) {
                    let _ = desk.tell(News::NotOffered(what));
                }
            }
            Happening::Withdrawn(question) => {
                let owner = state.questions.remove(&question);
                if let Some(desk) = owner.and_then(|call| state.calls.get_mut(call)) {
                    let _ = desk.tell(News::Withdrawn(question));
                }
            }
            // Nobody may be listening.
            Happening::Logged(event) => match &self.on_log {
                Some(on_log) => on_log(event),
                None => _ = self.notices.send(Notice::Logged(event)),
            },
            Happening::Visited(id) => _ = self.notices.send(Notice::Visited(id)),
            Happening::Changed { change, .. } => _ = self.notices.send(Notice::Changed(change)),
            Happening::Ended(call, fault) => {
                if let Some(desk) = state.calls.get_mut(call) {
                    desk.end(fault);
                }
            }
            Happening::Noise(noise) => {
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
                let fault = Fault::new(FaultKind::Timeout, detail).about(&self.name);
                fault.with_data(Raw::of(&data)).into()
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
                let busy = Refusal { code: -32603, message: "too much is waiting".to_owned() };
                state.machine.answer(key, Err(busy), &mut state.outbox);
            }
            Err(_) => {}
        }
    }
}

/// Leaves a request to whoever waits for its answer.
fn leave(carrier: Carrier, sending: Sending, calls: &mut Rising<CallKey, Desk>, turns: &mut Turns) {
    if let Sending::Request(call) = sending
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
fn headers(frame: &Outgoing<'_>, calls: &mut Rising<CallKey, Desk>, rules: &Rules) -> Vec<Header> {
    let desk = match frame.sending {
        Sending::Request(call) => calls.get_mut(call),
        _ => None,
    };
    match desk {
        Some(desk) => desk.headers(frame.text, rules),
        None => request_headers(frame.text, rules, &[]),
    }
}
