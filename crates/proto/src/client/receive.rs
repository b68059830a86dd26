//! Receives and dispatches the server's messages.

use alloc::string::String;
use alloc::sync::Arc;

use super::calls::ExpectedResult;
use super::outbox::{ClientEvent, Outbox, ProtocolViolation};
use super::{CallKey, ConnectionState, Machine};
use crate::fault::{Fault, FaultKind};
use crate::operation::Outcome;
use crate::server::Now;
use crate::wire;
use crate::wire::{Fields, Frame, Object, ResultMembers, unquote};

/// Maximum length of a server's text that is repeated.
pub(super) const MAX_ECHO_CHARS: usize = 128;

/// The origin of a message.
#[derive(Clone, Copy)]
pub(super) struct MessageOrigin {
    /// The call whose channel it came on.
    pub(super) call: Option<CallKey>,
    pub(super) now: Now,
}

impl Machine {
    /// Receives one message, or an array of them. `origin` is the call whose channel it came on, if calls have
    /// channels.
    pub fn receive(&mut self, bytes: &[u8], origin: Option<CallKey>, now: Now, out: &mut Outbox) {
        if self.state == ConnectionState::Closed {
            return;
        }
        let arrival = MessageOrigin { call: origin, now };
        match wire::scan(bytes, &self.profile.limits.scan) {
            Ok(Frame::One(fields)) => self.take_message(&fields, arrival, out),
            // Only one revision has arrays (2025-03-26 basic, batching). They are accepted in every revision.
            Ok(Frame::Batch(elements)) => {
                elements.iter().for_each(|fields| self.take_message(fields, arrival, out));
            }
            Err(error) => self.take_unreadable(bytes, error, arrival, out),
        }
    }

    /// Receives one message, or an array of them, that is too large to be copied. A relayed result shares its text.
    pub fn receive_large(
        &mut self,
        message: String,
        origin: Option<CallKey>,
        now: Now,
        out: &mut Outbox,
    ) {
        let message = Arc::new(message);
        self.shared_message = Some(Arc::clone(&message));
        self.receive(message.as_bytes(), origin, now, out);
        self.shared_message = None;
    }

    pub(super) fn take_message(
        &mut self,
        fields: &Fields<'_>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) {
        if !fields.is_object {
            return self.report_violation(
                ProtocolViolation::NotAMessage("it is not an object".into()),
                out,
            );
        }
        let Some(method) = fields.method else { return self.take_response(fields, arrival, out) };
        let Some(method) = unquote(method).filter(|_| !fields.repeated) else {
            let reason = if fields.repeated {
                "an object has a duplicate key"
            } else {
                "`method` is not a string"
            };
            return self.report_violation(ProtocolViolation::NotAMessage(reason.into()), out);
        };
        let params = fields.params.and_then(Object::new).unwrap_or(Object::EMPTY);
        match fields.id.filter(|id| *id != "null") {
            Some(id) => self.take_input_request(id, &method, params, arrival, out),
            None => self.take_notification(&method, params, arrival, out),
        }
    }

    fn take_response(&mut self, fields: &Fields<'_>, arrival: MessageOrigin, out: &mut Outbox) {
        // Hand-written servers send both members, one of them null.
        let result = fields.result.filter(|_| fields.error.is_none_or(|error| error == "null"));
        let error = fields.error.filter(|error| *error != "null" || result.is_none());
        if result.is_none() && error.is_none() {
            let reason = "it has neither `method` nor `result` nor `error`";
            return self.report_violation(ProtocolViolation::NotAMessage(reason.into()), out);
        }
        let Some(id) = fields.id.filter(|id| *id != "null") else {
            return self.take_response_without_id(error, arrival, out);
        };
        let Some(call) = self.find_call(id) else {
            return self.report_violation(ProtocolViolation::UnknownResponse(shorten(id)), out);
        };
        // A response to a cancelled call, or a second response, is dropped.
        if self.calls.get(call).is_none_or(|pending| !pending.is_sent) {
            return;
        }
        if fields.repeated {
            let detail = "the server's response has an object with a duplicate key";
            return self.finish_call(call, Fault::new(FaultKind::Internal, detail).into(), out);
        }
        match (result, error) {
            (Some(result), _) => self.take_result(call, result, fields.result_members, out),
            (None, Some(error)) => self.take_error(call, error, out),
            (None, None) => {}
        }
    }

    /// The call that has or had this id.
    pub(super) fn find_call(&self, id: &str) -> Option<CallKey> {
        let number = id.parse::<u64>().ok().filter(|number| self.calls.was_minted(*number));
        number.map(CallKey)
    }

    /// Assigns an error without a readable id to the call whose channel it came on, or to the only call that was sent.
    fn take_response_without_id(
        &mut self,
        error: Option<&str>,
        arrival: MessageOrigin,
        out: &mut Outbox,
    ) {
        let opening = || {
            self.calls.single_matching(|pending| {
                pending.is_sent && pending.expected == ExpectedResult::Opening
            })
        };
        let call = arrival.call.filter(|call| self.is_open(*call)).or_else(opening);
        match (call, error) {
            (Some(call), Some(error)) => self.take_error_without_id(call, error, out),
            _ => self.report_violation(
                ProtocolViolation::NotAMessage("a response without `id`".into()),
                out,
            ),
        }
    }

    /// Handles an error without an id. Without a handshake a request may reach a server that
    /// cannot read it, and only such a server omits the id
    /// (2026-07-28 basic, error responses).
    fn take_error_without_id(&mut self, call: CallKey, error: &str, out: &mut Outbox) {
        let unread = self.calls.get(call).filter(|_| !self.rules.has_handshake());
        match unread.map(|pending| self.read_error(pending, error)) {
            Some(Outcome::Fail(fault)) if fault.kind == FaultKind::Foreign => {
                let fault = Fault { kind: FaultKind::InvalidRequest, ..fault };
                self.finish_call(call, fault.into(), out);
            }
            _ => self.take_error(call, error, out),
        }
    }

    fn take_result(
        &mut self,
        call: CallKey,
        result: &str,
        members: ResultMembers,
        out: &mut Outbox,
    ) {
        let Some(pending) = self.calls.get(call) else { return };
        let Some(result) = Object::new(result) else {
            let detail = "the server's result is not an object";
            return self.finish_call(call, Fault::new(FaultKind::Internal, detail).into(), out);
        };
        match pending.expected {
            ExpectedResult::Opening => {
                self.calls.remove(call);
                self.take_negotiation_result(result, out);
            }
            ExpectedResult::Listen => self.end_listener(call, out),
            _ => {
                let outcome = self.read_result(pending, result, members);
                self.finish_call(call, outcome, out);
            }
        }
    }

    /// Ends a listener after its empty result. A listener without an acknowledgement fails.
    fn end_listener(&mut self, call: CallKey, out: &mut Outbox) {
        if self.calls.get(call).is_some_and(|pending| pending.is_listening) {
            self.calls.remove(call);
            return out.push_event(ClientEvent::ListenerEnded(call, None));
        }
        let detail = "the server ended a subscription that it had not acknowledged";
        self.finish_call(call, Fault::new(FaultKind::BackendUnavailable, detail).into(), out);
    }

    fn take_error(&mut self, call: CallKey, error: &str, out: &mut Outbox) {
        let Some(pending) = self.calls.get(call) else { return };
        let outcome = self.read_error(pending, error);
        let outcome = match outcome {
            Outcome::InputRequired { .. } if pending.expected == ExpectedResult::Opening => {
                Fault::new(
                    FaultKind::Internal,
                    "the server sent a request before its first response",
                )
                .into()
            }
            other => other,
        };
        self.finish_call(call, outcome, out);
    }
}

/// A server's text, truncated for a message.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(MAX_ECHO_CHARS).collect()
}
