//! Writes responses and events for the client.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;
use serde_json::json;

use super::calls::{CallPurpose, InFlightCall};
use super::outbox::{Action, FrameRoute, Observation, Outbox, RequestEnd};
use super::{CallKey, Machine, Now};
use crate::encode;
use crate::encode::{
    ResultTarget, relayed_failure, write_error, write_input_required, write_key, write_meta,
    write_relayed, write_result,
};
use crate::fault::{ErrorChannel, Fault, FaultKind};
use crate::model::{Content, KeyedInputRequest, ToolResult};
use crate::operation::{Event, Outcome, Payload};
use crate::revision::{ElicitationSupport, InputRequestStyle, Rules};
use crate::wire::{Fields, Id, Raw, quote};

/// The destination of a response and the fault it carries.
struct ResponseTarget {
    route: FrameRoute,
    batch: Option<u64>,
    fault: Option<FaultKind>,
}

impl Machine {
    /// Sends the outcome of a call. The outcome of a cancelled call is dropped.
    pub fn finish(&mut self, call: CallKey, outcome: Outcome, now: Now, out: &mut Outbox) {
        self.withdraw_input_requests(call, "the call has ended", out);
        let Some(pending) = self.calls.remove(call) else { return };
        let failed = match &outcome {
            Outcome::Fail(fault) => Some(fault.kind),
            _ => None,
        };
        let took = now.saturating_sub(pending.started);
        self.observe_response(&pending.id, pending.method, took, failed, out);
        match (outcome, &pending.purpose) {
            (Outcome::Complete(Payload::Listening(filter)), CallPurpose::Listen) => {
                self.start_listening(call, pending, filter, out);
            }
            (Outcome::Complete(payload), _) => {
                match self.failure_as_fault(&payload, pending.rules) {
                    Some(fault) => self.finish_failed(call, &pending, &fault, out),
                    None => self.finish_complete(call, &pending, payload, out),
                }
            }
            (Outcome::InputRequired { requests: input_requests, request_state: state }, _) => {
                self.finish_input_required(call, &pending, &input_requests, state.as_deref(), out);
            }
            (Outcome::Detach(_), _) => {
                let fault = Fault::new(FaultKind::Internal, "the call did not become a task");
                self.finish_failed(call, &pending, &fault, out);
            }
            (Outcome::Fail(fault), _) => self.finish_failed(call, &pending, &fault, out),
        }
    }

    /// Sends an event of a running call, if the client requested it.
    pub fn send_event(&mut self, call: CallKey, event: &Event, now: Now, out: &mut Outbox) {
        let idle = self.profile.limits.call_idle_timeout;
        let Some(pending) = self.calls.get_mut(call) else { return };
        match event {
            Event::Progress { progress, total, message } => {
                pending.idle_deadline = now + idle;
                // Progress values must increase (every revision, progress).
                let Some(token) = &pending.progress_token else { return };
                if progress.is_nan() || *progress <= pending.last_progress {
                    return;
                }
                pending.last_progress = *progress;
                out.push_frame(FrameRoute::Call(call), |bytes| {
                    write_progress(bytes, token, *progress, *total, message.as_deref());
                });
            }
            Event::Log { level, logger, data } => {
                if pending.log.is_some_and(|min_level| *level >= min_level) {
                    out.push_frame(FrameRoute::Call(call), |bytes| {
                        write_log(bytes, level.name(), logger.as_deref(), data);
                    });
                }
            }
            // The notification exists only where URL elicitations have ids
            // (2025-11-25 schema, `ElicitationCompleteNotification`).
            Event::ElicitationCompleted(id) => {
                if pending.rules.elicitation == ElicitationSupport::FormAndNamedUrl {
                    out.push_frame(FrameRoute::Call(call), |bytes| {
                        write_elicitation_complete(bytes, id)
                    });
                }
            }
        }
    }

    /// Sends a log message that belongs to no call, if the session requested this level. Clients of the stateless era
    /// get log messages only for their requests (2026-07-28 server/utilities/logging, per-request log level).
    pub fn send_session_log(&mut self, event: &Event, out: &mut Outbox) {
        let Event::Log { level, logger, data } = event else { return };
        if self.session_log_level().is_some_and(|min_level| *level >= min_level) {
            out.push_frame(FrameRoute::Session, |bytes| {
                write_log(bytes, level.name(), logger.as_deref(), data);
            });
        }
    }

    /// Fails the calls and input requests whose deadline has passed.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        self.expire_input_requests(now, out);
        for key in self.calls.expired_keys(now) {
            self.abort_call(key, "timeout", "the request timed out", now, out);
        }
    }

    /// Cancels a call and sends an error to the client.
    pub(super) fn abort_call(
        &mut self,
        key: CallKey,
        reason: &str,
        cause: &str,
        now: Now,
        out: &mut Outbox,
    ) {
        let data = Raw::from_value(&json!({"reason": reason}));
        let fault = Fault::new(FaultKind::Timeout, cause).with_data(data);
        out.push_action(Action::Cancel(key, cause.into()));
        self.finish(key, Outcome::Fail(fault), now, out);
    }

    /// Removes a call that the client cancelled. It gets no response
    /// (2025-11-25 basic/utilities/cancellation, behavior requirements).
    pub(super) fn drop_call(&mut self, call: CallKey, reason: &str, out: &mut Outbox) {
        self.withdraw_input_requests(call, "the call was cancelled", out);
        let Some(pending) = self.calls.remove(call) else { return };
        out.push_action(Action::Cancel(call, reason.into()));
        self.observe(out, || Observation::Done {
            method: pending.method.to_string(),
            id: pending.id.raw().to_string(),
            duration: Duration::ZERO,
            end: RequestEnd::Cancelled,
        });
        if let Some(batch) = pending.batch {
            self.settle_batch(batch, FrameRoute::Call(call), out);
        }
    }

    /// Rejects a message as a whole.
    pub(super) fn reject_message(
        &mut self,
        id: Option<&Id>,
        fault: &Fault,
        batch: Option<u64>,
        out: &mut Outbox,
    ) {
        let rules = self.session.rules;
        self.observe_refusal(fault.kind, rules, out);
        let target = ResponseTarget { route: FrameRoute::Reply, batch, fault: Some(fault.kind) };
        self.send_response(target, out, |machine, bytes| {
            write_error(bytes, id, fault, &machine.profile.dialect, rules);
        });
    }

    /// Rejects a message that the rules of a transport forbid, with the error encoding of these rules.
    pub fn reject_scanned(
        &mut self,
        fields: Option<&Fields<'_>>,
        fault: &Fault,
        rules: &'static Rules,
        out: &mut Outbox,
    ) {
        let id = fields.and_then(|fields| fields.id);
        let id = id.and_then(|raw| self.profile.dialect.parse_id(raw).ok());
        self.observe_refusal(fault.kind, rules, out);
        let target =
            ResponseTarget { route: FrameRoute::Reply, batch: None, fault: Some(fault.kind) };
        self.send_response(target, out, |machine, bytes| {
            write_error(bytes, id.as_ref(), fault, &machine.profile.dialect, rules);
        });
    }

    /// Reports to observers that a request got its response.
    pub(super) fn observe_response(
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
            duration: took,
            end: failed.map_or(RequestEnd::Success, RequestEnd::Error),
        });
    }

    /// Responds to a request with a fault before a call is started.
    pub(super) fn respond_fault(
        &mut self,
        id: &Id,
        fault: &Fault,
        rules: &'static Rules,
        batch: Option<u64>,
        out: &mut Outbox,
    ) {
        let target = ResponseTarget { route: FrameRoute::Reply, batch, fault: Some(fault.kind) };
        self.send_response(target, out, |machine, bytes| {
            write_error(bytes, Some(id), fault, &machine.profile.dialect, rules);
        });
    }

    /// Responds to a request immediately.
    pub(super) fn respond_payload(
        &mut self,
        id: &Id,
        payload: &Payload,
        rules: &'static Rules,
        batch: Option<u64>,
        out: &mut Outbox,
    ) {
        let target = ResponseTarget { route: FrameRoute::Reply, batch, fault: None };
        self.send_response(target, out, |machine, bytes| {
            encode::write_response(bytes, id, |bytes| {
                write_result(bytes, payload, &machine.result_target(rules))
            });
        });
    }

    /// Converts the failure in a result to a fault, for dialects that report tool failures as errors.
    fn failure_as_fault(&self, payload: &Payload, rules: &'static Rules) -> Option<Fault> {
        let row = self.profile.dialect.error_row(FaultKind::ToolFailed, rules);
        if matches!(row.channel, ErrorChannel::ToolResult { .. }) {
            return None;
        }
        let message = match payload {
            Payload::Relayed(relayed) => relayed_failure(relayed),
            Payload::Tool(result) if result.is_error => Some(join_texts(&result.content)),
            _ => None,
        };
        message.map(|detail| Fault::new(FaultKind::ToolFailed, detail))
    }

    fn finish_complete(
        &mut self,
        call: CallKey,
        pending: &InFlightCall,
        payload: Payload,
        out: &mut Outbox,
    ) {
        let released = match &pending.purpose {
            // A session holds one subscription per resource. A repeated one is released.
            CallPurpose::Subscribe(uri) => (!self.session.subscribe(uri)).then_some(uri),
            CallPurpose::Unsubscribe(uri) => self.session.unsubscribe(uri).then_some(uri),
            _ => None,
        };
        out.release_subscriptions(released.into_iter().cloned().collect());
        if let Payload::Page(page) = &payload
            && pending.batch.is_none()
            && page.items.is_joined_for(pending.rules)
        {
            // The page was encoded by this program, so it has no line ends and is not searched for them.
            return out.push_response_line(FrameRoute::Call(call), |bytes| {
                self.write_call_response(bytes, pending, payload);
            });
        }
        let created = matches!(payload, Payload::TaskCreated(_)).then(|| payload.clone());
        self.send_call_response(call, pending, None, out, |machine, bytes| {
            machine.write_call_response(bytes, pending, payload);
        });
        if let Some(created) = created {
            self.follow_task(&created, pending.rules, out);
        }
    }

    fn write_call_response(&self, bytes: &mut Vec<u8>, pending: &InFlightCall, payload: Payload) {
        let related_task = pending.related_task();
        let target = ResultTarget { related_task, ..self.result_target(pending.rules) };
        encode::write_response(bytes, &pending.id, |bytes| match payload {
            Payload::Relayed(relayed) => write_relayed(bytes, relayed, &target),
            other => write_result(bytes, &other, &target),
        });
    }

    fn finish_input_required(
        &mut self,
        call: CallKey,
        pending: &InFlightCall,
        input_requests: &[KeyedInputRequest],
        state: Option<&str>,
        out: &mut Outbox,
    ) {
        if pending.rules.input_request_style == InputRequestStyle::Inline {
            let fault = Fault::new(FaultKind::Internal, "an input request was not sent");
            return self.finish_failed(call, pending, &fault, out);
        }
        self.send_call_response(call, pending, None, out, |machine, bytes| {
            encode::write_response(bytes, &pending.id, |bytes| {
                bytes.push(b'{');
                write_input_required(bytes, input_requests, state, pending.rules);
                write_meta(bytes, None, &machine.result_target(pending.rules));
                bytes.push(b'}');
            });
        });
    }

    fn finish_failed(
        &mut self,
        call: CallKey,
        pending: &InFlightCall,
        fault: &Fault,
        out: &mut Outbox,
    ) {
        let row = self.profile.dialect.error_row(fault.kind, pending.rules);
        let in_result = matches!(row.channel, ErrorChannel::ToolResult { .. });
        if in_result && matches!(pending.purpose, CallPurpose::Tool | CallPurpose::TaskResult(_)) {
            let result = ToolResult::error(row.format_message(fault));
            return self.finish_complete(call, pending, Payload::Tool(result), out);
        }
        self.send_call_response(call, pending, Some(fault.kind), out, |machine, bytes| {
            write_error(bytes, Some(&pending.id), fault, &machine.profile.dialect, pending.rules);
        });
    }

    fn send_call_response(
        &mut self,
        call: CallKey,
        pending: &InFlightCall,
        fault: Option<FaultKind>,
        out: &mut Outbox,
        write: impl FnOnce(&Self, &mut Vec<u8>),
    ) {
        let route = FrameRoute::Call(call);
        self.send_response(ResponseTarget { route, batch: pending.batch, fault }, out, write);
        if let Some(batch) = pending.batch {
            self.settle_batch(batch, route, out);
        }
    }

    fn send_response(
        &mut self,
        target: ResponseTarget,
        out: &mut Outbox,
        write: impl FnOnce(&Self, &mut Vec<u8>),
    ) {
        match target.batch {
            None => out.push_response(target.route, target.fault, |bytes| write(self, bytes)),
            Some(batch) => {
                let mut response = Vec::new();
                write(self, &mut response);
                self.batches.add_response(batch, |bytes| bytes.extend_from_slice(&response));
            }
        }
    }

    /// Ends one request of a batch. The last one sends the responses, on its own route.
    pub(super) fn settle_batch(&mut self, batch: u64, route: FrameRoute, out: &mut Outbox) {
        if let Some(answers) = self.batches.finish_request(batch) {
            out.push_response(route, None, |bytes| bytes.extend_from_slice(&answers));
        }
    }

    pub(super) fn result_target(&self, rules: &'static Rules) -> ResultTarget<'_> {
        ResultTarget {
            dialect: &self.profile.dialect,
            rules,
            version: &self.session.version,
            identity: self.profile.identity.raw(),
            related_task: None,
        }
    }
}

/// The texts of the blocks, joined.
fn join_texts(blocks: &[Content]) -> String {
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
    encode::write_notification(bytes, "notifications/progress", |bytes| {
        write_key(bytes, "progressToken");
        bytes.extend_from_slice(token.as_bytes());
        write_key(bytes, "progress");
        bytes.extend_from_slice(format_number(progress).as_bytes());
        if let Some(total) = total {
            write_key(bytes, "total");
            bytes.extend_from_slice(format_number(total).as_bytes());
        }
        if let Some(message) = message {
            write_key(bytes, "message");
            quote(bytes, message);
        }
    });
}

fn write_log(bytes: &mut Vec<u8>, level: &str, logger: Option<&str>, data: &Raw) {
    encode::write_notification(bytes, "notifications/message", |bytes| {
        write_key(bytes, "level");
        quote(bytes, level);
        if let Some(logger) = logger {
            write_key(bytes, "logger");
            quote(bytes, logger);
        }
        write_key(bytes, "data");
        bytes.extend_from_slice(data.as_str().as_bytes());
    });
}

/// Writes the notification that a URL elicitation is complete
/// (2025-11-25 client/elicitation, completion notifications for URL mode elicitation).
fn write_elicitation_complete(bytes: &mut Vec<u8>, id: &str) {
    encode::write_notification(bytes, "notifications/elicitation/complete", |bytes| {
        write_key(bytes, "elicitationId");
        quote(bytes, id);
    });
}

/// A number in JSON, which has no infinities (RFC 8259, 6).
fn format_number(value: f64) -> String {
    let finite = if value.is_finite() { value } else { f64::MAX.copysign(value) };
    format!("{finite}")
}
