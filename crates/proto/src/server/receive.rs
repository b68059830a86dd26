//! Receives and dispatches the client's messages.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;

use super::calls::{CallPurpose, InFlightCall};
use super::decode::Params;
use super::outbox::{Action, Call, FrameRoute, Observation, Outbox};
use super::{Machine, Now, decode};
use crate::fault::{Fault, FaultKind};
use crate::framing::FramedLine;
use crate::lifecycle::{HandshakePhase, progress_token};
use crate::message::{ClientMessage, RejectedMessage, classify};
use crate::method::Method;
use crate::model::{Level, TaskPreference};
use crate::operation::{Caller, Payload};
use crate::revision::Rules;
use crate::wire::{Fields, Frame, Id, Object, Raw, ScanError, as_object, unquote};
use crate::{lifecycle, wire};

/// Maximum length of a client's text that an error repeats.
const MAX_ECHO_CHARS: usize = 128;

/// The destination of the response to one message.
#[derive(Clone, Copy)]
struct ReplyTo {
    now: Now,
    batch: Option<u64>,
}

impl Machine {
    /// Receives one line of a stream.
    pub fn receive_line(&mut self, line: FramedLine<'_>, now: Now, out: &mut Outbox) {
        match line {
            FramedLine::Complete(frame) => self.receive(frame, now, out),
            FramedLine::TooLong(_) => self.reject_overlong(out),
            FramedLine::TooLongEnd(_) => {}
        }
    }

    /// Receives one frame: a line, or the body of a request.
    pub fn receive(&mut self, frame: &[u8], now: Now, out: &mut Outbox) {
        let scanned = wire::scan(frame, &self.profile.limits.scan);
        self.receive_scanned(scanned.as_ref(), now, out);
    }

    /// Receives one frame that was already scanned with the limits of the profile.
    pub fn receive_scanned(
        &mut self,
        scanned: Result<&Frame<'_>, &ScanError>,
        now: Now,
        out: &mut Outbox,
    ) {
        if self.session.phase == HandshakePhase::Shutdown {
            return;
        }
        match scanned {
            Ok(Frame::One(fields)) => self.take_message(fields, ReplyTo { now, batch: None }, out),
            Ok(Frame::Batch(elements)) => self.take_batch(elements, now, out),
            Err(error) => {
                let kind = match error.kind.is_syntax() {
                    true => FaultKind::Parse,
                    false => FaultKind::InvalidRequest,
                };
                self.reject_message(None, &Fault::new(kind, format!("{error}")), None, out);
            }
        }
    }

    /// Rejects a frame that was too long to be read.
    pub fn reject_overlong(&mut self, out: &mut Outbox) {
        if self.session.phase == HandshakePhase::Shutdown {
            return;
        }
        let max = self.profile.dialect.max_message;
        let detail = format!("the message is longer than {max} bytes");
        self.reject_message(None, &Fault::new(FaultKind::InvalidRequest, detail), None, out);
    }

    fn take_batch(&mut self, elements: &[Fields<'_>], now: Now, out: &mut Outbox) {
        if let Some(detail) = self.batch_error(elements) {
            return self.reject_message(
                None,
                &Fault::new(FaultKind::InvalidRequest, detail),
                None,
                out,
            );
        }
        let batch = self.batches.open();
        let mut ids = Vec::new();
        for fields in elements {
            match self.repeated_id(fields, &mut ids) {
                None => self.take_message(fields, ReplyTo { now, batch: Some(batch) }, out),
                Some(id) => {
                    // Two responses with the same id would be indistinguishable.
                    let detail = "another request of this batch has the same id";
                    let fault = Fault::new(FaultKind::InvalidRequest, detail);
                    self.reject_message(Some(&id), &fault, Some(batch), out);
                }
            }
        }
        self.settle_batch(batch, FrameRoute::Reply, out);
    }

    /// The id of a request, if an earlier request in the same array has the same one.
    fn repeated_id(&self, fields: &Fields<'_>, ids: &mut Vec<Id>) -> Option<Id> {
        let id =
            self.profile.dialect.parse_id(fields.id.filter(|_| fields.method.is_some())?).ok()?;
        if ids.contains(&id) {
            return Some(id);
        }
        ids.push(id);
        None
    }

    fn batch_error(&self, elements: &[Fields<'_>]) -> Option<&'static str> {
        let dialect = &self.profile.dialect;
        let stands_alone = |fields: &Fields<'_>| {
            let method = fields.method.and_then(unquote).unwrap_or_default();
            lifecycle::is_stateless_request(
                &method,
                &fields.param_members,
                self.session.phase,
                dialect,
            )
        };
        if !dialect.accepts_batches(self.session.rules) {
            Some("a batch is not allowed in this protocol version")
        } else if elements.is_empty() {
            Some("the batch is empty")
        } else if elements.iter().any(stands_alone) {
            Some("a request with its own protocol version cannot be part of a batch")
        } else {
            None
        }
    }

    fn take_message(&mut self, fields: &Fields<'_>, reply_to: ReplyTo, out: &mut Outbox) {
        match classify(fields, &self.profile.dialect) {
            Ok(ClientMessage::Request { id, method, params }) => {
                let all = params.unwrap_or(Object::EMPTY);
                let params = Params { all, members: fields.param_members };
                self.take_request(&id, &method, params, reply_to, out);
            }
            Ok(ClientMessage::Notification { method, params }) => {
                self.take_notification(&method, params, out);
            }
            Ok(ClientMessage::Response { id, result: answer }) => {
                self.take_input_response(&id, answer, reply_to.now, out)
            }
            Err(RejectedMessage { fault, id }) => {
                self.reject_message(id.as_ref(), &fault, reply_to.batch, out)
            }
        }
    }

    fn take_request(
        &mut self,
        id: &Id,
        method: &str,
        params: Params<'_>,
        reply_to: ReplyTo,
        out: &mut Outbox,
    ) {
        self.observe(out, || Observation::Received {
            method: shorten(method),
            id: id.raw().to_string(),
        });
        if !self.repeated_ids && (self.calls.is_in_flight(id) || self.listeners.is_open(id)) {
            let fault =
                Fault::new(FaultKind::InvalidRequest, "a request with this id is in flight");
            return self.reject_message(Some(id), &fault, reply_to.batch, out);
        }
        let (phase, dialect) = (self.session.phase, &self.profile.dialect);
        let stateless = lifecycle::is_stateless_request(method, &params.members, phase, dialect);
        let rules = match stateless {
            true => Rules::CANONICAL,
            false => self.session.rules,
        };
        let taken = match stateless {
            true => self.take_stateless(id, method, params, reply_to, out),
            false => self.take_in_session(id, method, params, reply_to, out),
        };
        if let Err(fault) = taken {
            self.respond_fault(id, &fault, rules, reply_to.batch, out);
            self.observe_answer(id, method, params.members.meta, rules, Some(fault.kind), out);
        }
    }

    fn take_stateless(
        &mut self,
        id: &Id,
        method: &str,
        params: Params<'_>,
        reply_to: ReplyTo,
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        let dialect = &self.profile.dialect;
        let refused = lifecycle::handshake_fault(method, &params.members, params.all, dialect);
        if let Some(fault) = refused {
            return Err(fault);
        }
        let (caller, token) = lifecycle::read_caller(&params.members, dialect)?;
        let method = self.method(method, caller.rules)?;
        self.start(id, method, params, caller, token, reply_to, out)
    }

    fn take_in_session(
        &mut self,
        id: &Id,
        method: &str,
        params: Params<'_>,
        reply_to: ReplyTo,
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        let method = self.method(method, self.session.rules)?;
        self.session.check_method(method, &self.profile.dialect)?;
        match method {
            Method::Ping => {}
            Method::SetLevel => self.set_level(params.all)?,
            Method::Initialize if reply_to.batch.is_some() => {
                let detail = "initialize cannot be part of a batch";
                return Err(Fault::new(FaultKind::InvalidRequest, detail));
            }
            Method::Initialize => {
                let watched = self.session.subscribed_uris.iter().cloned().collect();
                self.session.initialize(Some(params.all), &self.profile.dialect)?;
                out.release_subscriptions(watched);
                return self.start_in_session(id, method, params, reply_to, out);
            }
            _ => return self.start_in_session(id, method, params, reply_to, out),
        }
        self.respond_payload(id, &Payload::Empty, self.session.rules, reply_to.batch, out);
        let (rules, meta) = (self.session.rules, params.members.meta);
        self.observe_answer(id, method.name(), meta, rules, None, out);
        Ok(())
    }

    /// Looks up the method of a request. A notification's name is not a method of a request.
    fn method(&self, name: &str, rules: &Rules) -> Result<Method, Fault> {
        let found = self.profile.dialect.method(name, rules);
        found
            .filter(|method| *method < Method::Initialized)
            .ok_or_else(|| Fault::new(FaultKind::MethodNotFound, "").with_subject(&shorten(name)))
    }

    fn set_level(&mut self, params: Object<'_>) -> Result<(), Fault> {
        let name = params.required_string("level")?;
        let unknown = || Fault::new(FaultKind::InvalidParams, "`level` is not a log level");
        self.session.set_level(Level::from_name(&name).ok_or_else(unknown)?);
        Ok(())
    }

    /// The minimum level of log messages for calls of the session. A server that sends log messages must declare the
    /// capability (every revision, logging).
    fn session_call_log_level(&self) -> Option<Level> {
        let dialect = &self.profile.dialect;
        let logs = dialect.method(Method::SetLevel.name(), self.session.rules).is_some()
            && dialect.shows_capability("logging", true);
        logs.then_some(self.session.level)
    }

    /// The same for messages outside of calls, which only an open session receives.
    pub(super) fn session_log_level(&self) -> Option<Level> {
        self.session_call_log_level().filter(|_| self.session.phase == HandshakePhase::Operating)
    }

    fn start_in_session(
        &mut self,
        id: &Id,
        method: Method,
        params: Params<'_>,
        reply_to: ReplyTo,
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        as_object("_meta", params.members.meta)?;
        let token = progress_token(params.members.progress_token)?;
        let dialect = &self.profile.dialect;
        let caller = Caller {
            rules: self.session.rules,
            capabilities: self.session.capabilities.clone().unwrap_or_default(),
            client: self.session.client.clone(),
            log: self.session_call_log_level(),
            progress: token.is_some(),
            input_responses: None,
            extra: None,
            task_preference: match method {
                Method::CallTool if dialect.has_tasks(self.session.rules) => {
                    decode::read_task_preference(params.members.task)?
                }
                _ => TaskPreference::Never,
            },
        };
        self.start(id, method, params, caller, token, reply_to, out)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one request, read in two ways")]
    fn start(
        &mut self,
        id: &Id,
        method: Method,
        params: Params<'_>,
        mut caller: Caller,
        progress_token: Option<String>,
        reply_to: ReplyTo,
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        caller.extra = decode::read_extra_members(method, &params);
        let (operation, purpose) = decode::read_operation(method, params, &self.profile.dialect)?;
        self.check_limits(&purpose)?;
        if let Some(batch) = reply_to.batch {
            self.batches.add_request(batch);
        }
        let limits = self.profile.limits;
        let mut pending = InFlightCall {
            id: id.clone(),
            batch: reply_to.batch,
            rules: caller.rules,
            purpose,
            progress_token,
            last_progress: f64::NEG_INFINITY,
            log: caller.log,
            is_cancellable: method != Method::Initialize,
            method: method.name(),
            started: reply_to.now,
            idle_deadline: reply_to.now,
            total_deadline: reply_to.now,
            open_input_requests: 0,
        };
        pending.restart_deadlines(&limits, reply_to.now);
        let key = self.calls.insert(pending);
        out.push_action(Action::Start(Call { key, operation, caller }));
        Ok(())
    }

    fn check_limits(&self, purpose: &CallPurpose) -> Result<(), Fault> {
        let limits = &self.profile.limits;
        if self.calls.len() >= limits.max_calls {
            let detail = format!(
                "the limit of {} requests in flight is reached; wait for a response",
                limits.max_calls
            );
            return Err(Fault::new(FaultKind::Busy, detail));
        }
        let watching = match purpose {
            CallPurpose::Listen => self.listeners.len(),
            CallPurpose::Subscribe(_) => self.session.subscribed_uris.len(),
            _ => 0,
        };
        if watching >= limits.max_subscriptions {
            let detail = format!(
                "the limit of {} subscriptions is reached; end one of them",
                limits.max_subscriptions
            );
            return Err(Fault::new(FaultKind::Busy, detail));
        }
        Ok(())
    }

    /// Handles a notification. Notifications never get a response (JSON-RPC 2.0, section 4.1).
    fn take_notification(&mut self, name: &str, params: Option<Object<'_>>, out: &mut Outbox) {
        let method = self.profile.dialect.method(name, self.session.rules);
        if self.has_observers() {
            let meta = params.and_then(|params| params.get("_meta")).map(Raw::from_validated);
            let (method, rules) = (method.map(Method::name), self.session.rules);
            out.push_action(Action::Observe(Observation::Notified { method, rules, meta }));
        }
        match method {
            Some(Method::Initialized) => {
                self.session.confirm();
                self.send_early_input_requests(out);
            }
            Some(Method::RootsChanged) if self.session.phase == HandshakePhase::Operating => {
                out.push_action(Action::RootsChanged);
            }
            Some(Method::Cancelled) => self.take_cancellation(params, out),
            _ => {}
        }
    }

    fn take_cancellation(&mut self, params: Option<Object<'_>>, out: &mut Outbox) {
        let params = params.unwrap_or(Object::EMPTY);
        let dialect = &self.profile.dialect;
        let Some(id) = params.get("requestId").and_then(|raw| dialect.parse_id(raw).ok()) else {
            return;
        };
        let reason = params.string("reason").ok().flatten().unwrap_or(Cow::Borrowed("cancelled"));
        if let Some(watched) = self.listeners.close(&id) {
            return out.release_subscriptions(watched);
        }
        if let Some(key) = self.calls.find_cancellable(&id) {
            self.drop_call(key, &reason, out);
        }
    }

    /// Reports an observation, if the profile is observed.
    pub(super) fn observe(&self, out: &mut Outbox, note: impl FnOnce() -> Observation) {
        if self.profile.is_observed {
            out.push_action(Action::Observe(note()));
        }
    }

    /// Reports that a message was rejected, if the profile is observed or has observers.
    pub(super) fn observe_refusal(&self, kind: FaultKind, rules: &'static Rules, out: &mut Outbox) {
        if self.profile.is_observed || self.has_observers() {
            out.push_action(Action::Observe(Observation::Refused { kind, rules }));
        }
    }

    /// Reports that a request got its response without a call.
    fn observe_answer(
        &self,
        id: &Id,
        method: &str,
        meta: Option<&str>,
        rules: &'static Rules,
        fault: Option<FaultKind>,
        out: &mut Outbox,
    ) {
        if self.has_observers() {
            let method = Method::from_name(method).map(Method::name);
            let (id, meta) = (id.raw().to_string(), meta.map(Raw::from_validated));
            let answered = Observation::Answered { method, id, rules, fault, meta };
            out.push_action(Action::Observe(answered));
        }
        if self.profile.is_observed {
            self.observe_response(id, &shorten(method), Duration::ZERO, fault, out);
        }
    }

    fn has_observers(&self) -> bool {
        self.profile.observers.load(Ordering::Relaxed) != 0
    }
}

/// A client's text, truncated for an error message.
fn shorten(text: &str) -> String {
    text.chars().take(MAX_ECHO_CHARS).collect()
}
