//! Input requests to a client of the handshake era, sent as requests of the server
//! (2025-11-25 schema, `ServerRequest`).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::calls::InFlightCall;
use super::outbox::{Action, FrameRoute, InputRequestKey, InputResponse, Outbox};
use super::{CallKey, Machine, Now};
use crate::encode;
use crate::encode::{question_params, write_key};
use crate::lifecycle::HandshakePhase;
use crate::model::InputRequest;
use crate::revision::InputRequestStyle;
use crate::wire::{Fields, Id, Object, Raw, unquote};

/// Maximum number of withdrawn input requests that are remembered, because their responses may be in transit.
const MAX_WITHDRAWN: usize = 64;

/// Maximum number of pending input requests that belong to no call.
const MAX_SESSION_INPUT_REQUESTS: usize = 16;

/// Pending input requests.
#[derive(Debug, Default)]
pub(super) struct InputRequests {
    last: u64,
    /// What the ids of input requests end with.
    id_suffix: String,
    open: BTreeMap<InputRequestKey, OpenInputRequest>,
    withdrawn: VecDeque<Id>,
    /// Input requests that belong to no call and wait until the client confirms the handshake.
    early: Vec<(InputRequestKey, InputRequest)>,
}

#[derive(Debug)]
struct OpenInputRequest {
    id: Id,
    /// The call that it belongs to; `None` for an input request of the session.
    call: Option<CallKey>,
    deadline: Now,
}

impl OpenInputRequest {
    fn route(&self) -> FrameRoute {
        self.call.map_or(FrameRoute::Session, FrameRoute::Call)
    }
}

impl InputRequests {
    pub(super) fn deadline(&self) -> Option<Now> {
        self.open.values().map(|open| open.deadline).min()
    }

    /// Registers a new input request.
    fn mint(&mut self, call: Option<CallKey>, end: Now) -> (InputRequestKey, Id) {
        self.last += 1;
        let id = Id::from_text(&format!("creole-{}{}", self.last, self.id_suffix));
        let ask = InputRequestKey(self.last);
        self.open.insert(ask, OpenInputRequest { id: id.clone(), call, deadline: end });
        (ask, id)
    }

    fn find_by_id(&self, id: &Id) -> Option<InputRequestKey> {
        self.open.iter().find(|(_, open)| open.id == *id).map(|(key, _)| *key)
    }

    /// Remembers a withdrawn input request.
    fn note_withdrawn(&mut self, id: Id) {
        if self.withdrawn.len() >= MAX_WITHDRAWN {
            self.withdrawn.pop_front();
        }
        self.withdrawn.push_back(id);
    }

    fn keys_of_call(&self, call: CallKey) -> Vec<InputRequestKey> {
        self.open.iter().filter(|(_, open)| open.call == Some(call)).map(|(key, _)| *key).collect()
    }

    fn expired_keys(&self, now: Now) -> Vec<InputRequestKey> {
        self.open.iter().filter(|(_, open)| open.deadline <= now).map(|(key, _)| *key).collect()
    }
}

impl Machine {
    /// Ends the ids of input requests with this text. A session that several processes serve has a machine in each, and
    /// an id is used once in a session (2025-11-25 basic, requests).
    pub fn set_input_request_suffix(&mut self, suffix: &str) {
        self.input_requests.id_suffix = suffix.to_string();
    }

    /// The client ended the handshake at another process that serves the session: it sends messages that follow it.
    pub fn confirm_elsewhere(&mut self, out: &mut Outbox) {
        self.session.confirm_elsewhere();
        self.send_early_input_requests(out);
    }

    /// Whether the client has not ended the handshake yet, as far as this process knows.
    pub fn awaits_confirmation(&self) -> bool {
        self.session.phase == HandshakePhase::Initializing
    }

    /// Whether the call that a client cancels with these parameters is running.
    pub fn is_cancellable(&self, params: Option<&str>) -> bool {
        let dialect = &self.profile.dialect;
        let id = params.and_then(Object::new).and_then(|params| params.get("requestId"));
        let id = id.and_then(|raw| dialect.parse_id(raw).ok());
        id.is_some_and(|id| self.calls.find_cancellable(&id).is_some())
    }

    /// Sends an input request on behalf of a call, with the members of this trace context in its `_meta`. The response arrives as [`Action::InputResponse`]. Returns `None`
    /// when the call is over, or in a revision where servers send no requests
    /// (2026-07-28 basic/transports/stdio, receiving messages).
    pub fn request_input(
        &mut self,
        call: CallKey,
        input_request: &InputRequest,
        trace: Option<&Raw>,
        now: Now,
        out: &mut Outbox,
    ) -> Option<InputRequestKey> {
        let inline = |pending: &&mut InFlightCall| {
            pending.rules.input_request_style == InputRequestStyle::Inline
        };
        let pending = self.calls.get_mut(call).filter(inline)?;
        pending.open_input_requests += 1;
        let (ask, id) =
            self.input_requests.mint(Some(call), now + self.profile.limits.input_timeout);
        let params = question_params(input_request, pending.rules, pending.related_task(), trace);
        out.push_frame(FrameRoute::Call(call), |bytes| {
            encode::write_server_request(bytes, &id, input_request.method(), params.as_deref());
        });
        Some(ask)
    }

    /// Sends an input request that belongs to no call. The response arrives as [`Action::InputResponse`]. The request
    /// waits until the client confirms the handshake. Returns `None` without a session, without the client's
    /// capability, and while too many such requests are pending.
    pub fn request_session_input(
        &mut self,
        input_request: &InputRequest,
        now: Now,
        out: &mut Outbox,
    ) -> Option<InputRequestKey> {
        let session = &self.session;
        let is_open =
            matches!(session.phase, HandshakePhase::Initializing | HandshakePhase::Operating);
        let can_answer =
            session.capabilities.as_ref().is_some_and(|client| input_request.is_allowed_by(client));
        let may_request_input = session.rules.input_request_style == InputRequestStyle::Inline
            && input_request.is_supported_by(session.rules);
        let of_session =
            self.input_requests.open.values().filter(|open| open.call.is_none()).count();
        if !is_open || !can_answer || !may_request_input || of_session >= MAX_SESSION_INPUT_REQUESTS
        {
            return None;
        }
        let (ask, id) = self.input_requests.mint(None, now + self.profile.limits.input_timeout);
        match self.session.phase {
            HandshakePhase::Operating => self.send_session_input_request(&id, input_request, out),
            _ => self.input_requests.early.push((ask, input_request.clone())),
        }
        Some(ask)
    }

    /// Sends the input requests that waited until the client confirmed the handshake
    /// (2025-11-25 basic/lifecycle, initialization).
    pub(super) fn send_early_input_requests(&mut self, out: &mut Outbox) {
        for (ask, input_request) in core::mem::take(&mut self.input_requests.early) {
            if let Some(id) = self.input_requests.open.get(&ask).map(|open| open.id.clone()) {
                self.send_session_input_request(&id, &input_request, out);
            }
        }
    }

    fn send_session_input_request(&self, id: &Id, input_request: &InputRequest, out: &mut Outbox) {
        let params = question_params(input_request, self.session.rules, None, None);
        out.push_frame(FrameRoute::Session, |bytes| {
            encode::write_server_request(bytes, id, input_request.method(), params.as_deref());
        });
    }

    /// Whether the message responds to an input request that is pending or was withdrawn recently. In the latter case
    /// the response crossed the withdrawal and is dropped
    /// (2025-11-25 basic/utilities/cancellation, behavior requirements).
    pub fn is_awaited_response(&self, fields: &Fields<'_>) -> bool {
        let id = fields.id.and_then(|raw| Id::parse(raw).ok());
        id.is_some_and(|id| {
            self.input_requests.find_by_id(&id).is_some()
                || self.input_requests.withdrawn.contains(&id)
        })
    }

    /// Handles the client's response to an input request. A response that matches none is dropped.
    pub(super) fn take_input_response(
        &mut self,
        id: &Id,
        answer: Result<&str, &str>,
        now: Now,
        out: &mut Outbox,
    ) {
        self.input_requests.withdrawn.retain(|withdrawn| withdrawn != id);
        if let Some(ask) = self.input_requests.find_by_id(id) {
            self.settle_input_request(
                ask,
                answer.map(Raw::from_validated).map_err(error_text),
                now,
                out,
            );
        }
    }

    /// Fails the input requests whose deadline has passed.
    pub(super) fn expire_input_requests(&mut self, now: Now, out: &mut Outbox) {
        for ask in self.input_requests.expired_keys(now) {
            self.withdraw_input_request(
                ask,
                "the client did not respond to the input request in time",
                out,
            );
            self.settle_input_request(
                ask,
                Err("the client did not respond to the input request in time".into()),
                now,
                out,
            );
        }
    }

    /// Fails all input requests: a client that has closed its side cannot respond.
    pub fn handle_end_of_stream(&mut self, now: Now, out: &mut Outbox) {
        let open: Vec<_> = self.input_requests.open.keys().copied().collect();
        for ask in open {
            self.withdraw_input_request(ask, "the client closed its input", out);
            self.settle_input_request(ask, Err("the client closed its input".into()), now, out);
        }
    }

    /// Withdraws the input requests of a finished call.
    pub(super) fn withdraw_input_requests(
        &mut self,
        call: CallKey,
        reason: &str,
        out: &mut Outbox,
    ) {
        for ask in self.input_requests.keys_of_call(call) {
            self.withdraw_input_request(ask, reason, out);
            self.input_requests.open.remove(&ask);
        }
    }

    fn withdraw_input_request(&mut self, ask: InputRequestKey, reason: &str, out: &mut Outbox) {
        let Some(open) = self.input_requests.open.get(&ask) else { return };
        if self.input_requests.early.iter().any(|(early, _)| *early == ask) {
            return self.input_requests.early.retain(|(early, _)| *early != ask);
        }
        out.push_frame(open.route(), |bytes| {
            encode::write_notification(bytes, "notifications/cancelled", |bytes| {
                write_key(bytes, "requestId");
                bytes.extend_from_slice(open.id.raw().as_bytes());
                write_key(bytes, "reason");
                crate::wire::quote(bytes, reason);
            });
        });
        let id = open.id.clone();
        self.input_requests.note_withdrawn(id);
    }

    fn settle_input_request(
        &mut self,
        ask: InputRequestKey,
        response: InputResponse,
        now: Now,
        out: &mut Outbox,
    ) {
        let Some(open) = self.input_requests.open.remove(&ask) else { return };
        let limits = self.profile.limits;
        if let Some(pending) = open.call.and_then(|call| self.calls.get_mut(call)) {
            pending.open_input_requests -= 1;
            // The time until the client responded does not count against the call.
            pending.restart_deadlines(&limits, now);
        }
        out.push_action(Action::InputResponse(ask, response));
    }
}

/// The message of an error response.
fn error_text(error: &str) -> String {
    let message = Object::new(error).and_then(|error| error.get("message")).and_then(unquote);
    message.unwrap_or("the client refused the input request".into()).to_string()
}
