//! What goes back to the client.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use serde_json::json;

use super::calls::{Pending, Purpose};
use super::outbox::{Action, End, Observation, Outbox, Route};
use super::{CallKey, Machine, Now};
use crate::encode::{
    self, Target, input_required, key, relayed_failure, write_error, write_meta, write_relayed,
    write_result,
};
use crate::fault::{Channel, Fault, FaultKind};
use crate::model::{Ask, Content, ToolResult};
use crate::op::{Event, Outcome, Payload};
use crate::revision::{Asking, Elicitation, Rules};
use crate::wire::{Fields, Id, Raw, quote};

/// Where an answer goes and what it tells.
struct Fate {
    route: Route,
    batch: Option<u64>,
    fault: Option<FaultKind>,
}

impl Machine {
    /// Reports what came of a call; one that nobody waits for any more is dropped.
    pub fn finish(&mut self, call: CallKey, outcome: Outcome, now: Now, out: &mut Outbox) {
        self.withdraw_asks(call, "the call is over", out);
        let Some(pending) = self.calls.remove(call) else { return };
        let failed = match &outcome {
            Outcome::Fail(fault) => Some(fault.kind),
            _ => None,
        };
        let took = now.saturating_sub(pending.started);
        self.observe_answer(&pending.id, pending.method, took, failed, out);
        match (outcome, &pending.purpose) {
            (Outcome::Complete(Payload::Listening(filter)), Purpose::Listen) => {
                self.start_listening(call, pending, filter, out);
            }
            (Outcome::Complete(payload), _) => {
                match self.untellable_failure(&payload, pending.rules) {
                    Some(fault) => self.finish_failed(call, &pending, &fault, out),
                    None => self.finish_complete(call, &pending, payload, out),
                }
            }
            (Outcome::NeedInput { asks, state }, _) => {
                self.finish_asking(call, &pending, &asks, state.as_deref(), out);
            }
            (Outcome::Detach(_), _) => {
                let fault = Fault::new(FaultKind::Internal, "a call was not made a task");
                self.finish_failed(call, &pending, &fault, out);
            }
            (Outcome::Fail(fault), _) => self.finish_failed(call, &pending, &fault, out),
        }
    }

    /// Tells what happens while a call runs, to a client that wants to know.
    pub fn event(&mut self, call: CallKey, event: &Event, now: Now, out: &mut Outbox) {
        let idle = self.profile.limits.call_idle;
        let Some(pending) = self.calls.get_mut(call) else { return };
        match event {
            Event::Progress { progress, total, message } => {
                pending.idle_end = now + idle;
                // Values that do not increase are forbidden (every revision, progress).
                let Some(token) = &pending.progress_token else { return };
                if progress.is_nan() || *progress <= pending.last_progress {
                    return;
                }
                pending.last_progress = *progress;
                out.frame(Route::Call(call), |bytes| {
                    write_progress(bytes, token, *progress, *total, message.as_deref());
                });
            }
            Event::Log { level, logger, data } => {
                if pending.log.is_some_and(|least| *level >= least) {
                    out.frame(Route::Call(call), |bytes| {
                        write_log(bytes, level.name(), logger.as_deref(), data);
                    });
                }
            }
            // Only where visits have names is there something to tell.
            Event::Visited(id) => {
                if pending.rules.elicitation == Elicitation::FormAndNamedUrl {
                    out.frame(Route::Call(call), |bytes| write_visited(bytes, id));
                }
            }
        }
    }

    /// Sends a log message that belongs to no call, to a session that wants messages of this level. Clients of the
    /// stateless era get messages only in answers to their requests (2026-07-28 server/utilities/logging).
    pub fn log(&mut self, event: &Event, out: &mut Outbox) {
        let Event::Log { level, logger, data } = event else { return };
        if self.session_log().is_some_and(|least| *level >= least) {
            out.frame(Route::Session, |bytes| {
                write_log(bytes, level.name(), logger.as_deref(), data);
            });
        }
    }

    /// Ends what has taken too long.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        self.expire_asks(now, out);
        for key in self.calls.expired(now) {
            self.give_up(key, "timeout", "the request timed out", now, out);
        }
    }

    /// Stops a call and tells the client so.
    pub(super) fn give_up(
        &mut self,
        key: CallKey,
        reason: &str,
        why: &str,
        now: Now,
        out: &mut Outbox,
    ) {
        let data = Raw::of(&json!({"reason": reason}));
        let fault = Fault::new(FaultKind::Timeout, why).with_data(data);
        out.act(Action::Cancel(key, why.into()));
        self.finish(key, Outcome::Fail(fault), now, out);
    }

    /// Forgets a call that the client cancelled: it gets no answer.
    pub(super) fn drop_call(&mut self, call: CallKey, reason: &str, out: &mut Outbox) {
        self.withdraw_asks(call, "the call was cancelled", out);
        let Some(pending) = self.calls.remove(call) else { return };
        out.act(Action::Cancel(call, reason.into()));
        self.observe(out, || Observation::Done {
            method: pending.method.to_string(),
            id: pending.id.raw().to_string(),
            took: Duration::ZERO,
            end: End::Cancelled,
        });
        if let Some(batch) = pending.batch {
            self.settle_batch(batch, Route::Call(call), out);
        }
    }

    /// Refuses a message as a whole.
    pub(super) fn refuse(
        &mut self,
        id: Option<&Id>,
        fault: &Fault,
        batch: Option<u64>,
        out: &mut Outbox,
    ) {
        let rules = self.session.rules;
        self.observe(out, || Observation::Refused { kind: fault.kind });
        let fate = Fate { route: Route::Reply, batch, fault: Some(fault.kind) };
        self.send(fate, out, |machine, bytes| {
            write_error(bytes, id, fault, &machine.profile.dialect, rules);
        });
    }

    /// Refuses a message that a transport's own rules forbid, in the words of these rules.
    pub fn refuse_scanned(
        &mut self,
        fields: Option<&Fields<'_>>,
        fault: &Fault,
        rules: &'static Rules,
        out: &mut Outbox,
    ) {
        let id = fields.and_then(|fields| fields.id);
        let id = id.and_then(|raw| self.profile.dialect.id(raw).ok());
        self.observe(out, || Observation::Refused { kind: fault.kind });
        let fate = Fate { route: Route::Reply, batch: None, fault: Some(fault.kind) };
        self.send(fate, out, |machine, bytes| {
            write_error(bytes, id.as_ref(), fault, &machine.profile.dialect, rules);
        });
    }

    /// Notes that a request was answered.
    pub(super) fn observe_answer(
        &self,
        id: &Id,
        method: &str,
        took: Duration,
        failed: Option<FaultKind>,
        out: &mut Outbox,
    ) {
        self.observe(out, || Observation::Done {
            method: method.to_string(),
            id: id.raw().to_string(),
            took,
            end: failed.map_or(End::Success, End::Error),
        });
    }

    /// Answers a request with a fault before any call was started.
    pub(super) fn answer_fault(
        &mut self,
        id: &Id,
        fault: &Fault,
        rules: &'static Rules,
        batch: Option<u64>,
        out: &mut Outbox,
    ) {
        let fate = Fate { route: Route::Reply, batch, fault: Some(fault.kind) };
        self.send(fate, out, |machine, bytes| {
            write_error(bytes, Some(id), fault, &machine.profile.dialect, rules);
        });
    }

    /// Answers a request at once.
    pub(super) fn answer_payload(
        &mut self,
        id: &Id,
        payload: &Payload,
        rules: &'static Rules,
        batch: Option<u64>,
        out: &mut Outbox,
    ) {
        let fate = Fate { route: Route::Reply, batch, fault: None };
        self.send(fate, out, |machine, bytes| {
            encode::response(bytes, id, |bytes| {
                write_result(bytes, payload, &machine.target(rules))
            });
        });
    }

    /// The failure that a result tells of, where the dialect tells of failures by errors.
    fn untellable_failure(&self, payload: &Payload, rules: &'static Rules) -> Option<Fault> {
        let row = self.profile.dialect.error(FaultKind::ToolFailed, rules);
        if matches!(row.channel, Channel::ToolResult { .. }) {
            return None;
        }
        let told = match payload {
            Payload::Relayed(relayed) => relayed_failure(relayed),
            Payload::Tool(result) if result.is_error => Some(texts(&result.content)),
            _ => None,
        };
        told.map(|detail| Fault::new(FaultKind::ToolFailed, detail))
    }

    fn finish_complete(
        &mut self,
        call: CallKey,
        pending: &Pending,
        payload: Payload,
        out: &mut Outbox,
    ) {
        let released = match &pending.purpose {
            // Once is enough for a session, however often it asks.
            Purpose::Watch(uri) => (!self.session.watch(uri)).then_some(uri),
            Purpose::Unwatch(uri) => self.session.unwatch(uri).then_some(uri),
            _ => None,
        };
        out.release(released.into_iter().cloned().collect());
        if let Payload::Page(page) = &payload
            && pending.batch.is_none()
            && page.items.is_joined_for(pending.rules)
        {
            // All of it is ours, and it may be long.
            return out.answer_line(Route::Call(call), |bytes| {
                self.write_answer(bytes, pending, payload);
            });
        }
        let created = matches!(payload, Payload::TaskCreated(_)).then(|| payload.clone());
        self.send_for(call, pending, None, out, |machine, bytes| {
            machine.write_answer(bytes, pending, payload);
        });
        if let Some(created) = created {
            self.follow(&created, pending.rules, out);
        }
    }

    fn write_answer(&self, bytes: &mut Vec<u8>, pending: &Pending, payload: Payload) {
        let related_task = pending.related_task();
        let target = Target { related_task, ..self.target(pending.rules) };
        encode::response(bytes, &pending.id, |bytes| match payload {
            Payload::Relayed(relayed) => write_relayed(bytes, relayed, &target),
            other => write_result(bytes, &other, &target),
        });
    }

    fn finish_asking(
        &mut self,
        call: CallKey,
        pending: &Pending,
        asks: &[Ask],
        state: Option<&str>,
        out: &mut Outbox,
    ) {
        if pending.rules.asking == Asking::Inline {
            let fault = Fault::new(FaultKind::Internal, "a question was left unasked");
            return self.finish_failed(call, pending, &fault, out);
        }
        self.send_for(call, pending, None, out, |machine, bytes| {
            encode::response(bytes, &pending.id, |bytes| {
                bytes.push(b'{');
                input_required(bytes, asks, state, pending.rules);
                write_meta(bytes, None, &machine.target(pending.rules));
                bytes.push(b'}');
            });
        });
    }

    fn finish_failed(&mut self, call: CallKey, pending: &Pending, fault: &Fault, out: &mut Outbox) {
        let row = self.profile.dialect.error(fault.kind, pending.rules);
        let in_result = matches!(row.channel, Channel::ToolResult { .. });
        if in_result && matches!(pending.purpose, Purpose::Tool | Purpose::TaskResult(_)) {
            let result = ToolResult::error(row.message(fault));
            return self.finish_complete(call, pending, Payload::Tool(result), out);
        }
        self.send_for(call, pending, Some(fault.kind), out, |machine, bytes| {
            write_error(bytes, Some(&pending.id), fault, &machine.profile.dialect, pending.rules);
        });
    }

    fn send_for(
        &mut self,
        call: CallKey,
        pending: &Pending,
        fault: Option<FaultKind>,
        out: &mut Outbox,
        write: impl FnOnce(&Self, &mut Vec<u8>),
    ) {
        let route = Route::Call(call);
        self.send(Fate { route, batch: pending.batch, fault }, out, write);
        if let Some(batch) = pending.batch {
            self.settle_batch(batch, route, out);
        }
    }

    fn send(&mut self, fate: Fate, out: &mut Outbox, write: impl FnOnce(&Self, &mut Vec<u8>)) {
        match fate.batch {
            None => out.answer(fate.route, fate.fault, |bytes| write(self, bytes)),
            Some(batch) => {
                let mut answer = Vec::new();
                write(self, &mut answer);
                self.batches.answer(batch, |bytes| bytes.extend_from_slice(&answer));
            }
        }
    }

    /// One wait of a batch is over; the last one sends the answers, on its own route.
    pub(super) fn settle_batch(&mut self, batch: u64, route: Route, out: &mut Outbox) {
        if let Some(answers) = self.batches.settle(batch) {
            out.answer(route, None, |bytes| bytes.extend_from_slice(&answers));
        }
    }

    pub(super) fn target(&self, rules: &'static Rules) -> Target<'_> {
        Target {
            dialect: &self.profile.dialect,
            rules,
            version: &self.session.version,
            identity: self.profile.identity.raw(),
            related_task: None,
        }
    }
}

/// The texts of blocks, joined.
fn texts(blocks: &[Content]) -> String {
    let text = |block: &Content| match block {
        Content::Text { text, .. } => Some(text.clone()),
        _ => None,
    };
    blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn write_progress(
    bytes: &mut Vec<u8>,
    token: &str,
    progress: f64,
    total: Option<f64>,
    message: Option<&str>,
) {
    encode::notification(bytes, "notifications/progress", |bytes| {
        key(bytes, "progressToken");
        bytes.extend_from_slice(token.as_bytes());
        key(bytes, "progress");
        bytes.extend_from_slice(number(progress).as_bytes());
        if let Some(total) = total {
            key(bytes, "total");
            bytes.extend_from_slice(number(total).as_bytes());
        }
        if let Some(message) = message {
            key(bytes, "message");
            quote(bytes, message);
        }
    });
}

fn write_log(bytes: &mut Vec<u8>, level: &str, logger: Option<&str>, data: &Raw) {
    encode::notification(bytes, "notifications/message", |bytes| {
        key(bytes, "level");
        quote(bytes, level);
        if let Some(logger) = logger {
            key(bytes, "logger");
            quote(bytes, logger);
        }
        key(bytes, "data");
        bytes.extend_from_slice(data.as_str().as_bytes());
    });
}

/// That a page has done its part (2025-11-25 client/elicitation, completion notifications).
fn write_visited(bytes: &mut Vec<u8>, id: &str) {
    encode::notification(bytes, "notifications/elicitation/complete", |bytes| {
        key(bytes, "elicitationId");
        quote(bytes, id);
    });
}

/// A number as JSON can say it: infinities have no form there.
fn number(value: f64) -> String {
    let finite = if value.is_finite() { value } else { f64::MAX.copysign(value) };
    format!("{finite}")
}
