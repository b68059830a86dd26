//! Sends calls: checks, ids, cancellation.

use alloc::boxed::Box;
use alloc::format;

use super::calls::{ExpectedResult, InFlightCall};
use super::outbox::{ClientEvent, FrameKind, Outbox};
use super::{CallKey, CallOptions, CallRequest, ConnectionState, Machine, OpenMode};
use crate::dialect::VersionPolicy;
use crate::encode;
use crate::encode::{RequestStyle, write_call, write_initialize, write_key, write_level};
use crate::fault::{Fault, FaultKind};
use crate::method::Method;
use crate::model::Level;
use crate::operation::{Operation, Outcome, Payload};
use crate::server::Now;
use crate::wire::quote;

/// A request to the server.
#[derive(Clone, Copy)]
enum OutgoingRequest<'a> {
    /// An operation.
    Operation(&'a CallRequest),
    /// A ping.
    Ping,
    /// A change of the session's log level.
    Level(Level),
}

/// A request that waits for the handshake.
#[derive(Debug)]
pub(super) enum QueuedRequest {
    Operation(Box<CallRequest>),
    Ping,
    Level(Level),
}

impl OutgoingRequest<'_> {
    fn to_queued(self) -> QueuedRequest {
        match self {
            Self::Operation(request) => QueuedRequest::Operation(Box::new(request.clone())),
            Self::Ping => QueuedRequest::Ping,
            Self::Level(level) => QueuedRequest::Level(level),
        }
    }
}

impl QueuedRequest {
    fn as_outgoing(&self) -> OutgoingRequest<'_> {
        match self {
            Self::Operation(request) => OutgoingRequest::Operation(request),
            Self::Ping => OutgoingRequest::Ping,
            Self::Level(level) => OutgoingRequest::Level(*level),
        }
    }
}

impl Machine {
    /// Opens the connection with `initialize` or `server/discover`. The transport passes the returned key to
    /// [`Machine::fail_call`] if its channel breaks. The outcome is [`ClientEvent::Opened`] or
    /// [`ClientEvent::OpenFailed`].
    pub fn open(&mut self, now: Now, out: &mut Outbox) -> CallKey {
        let call = self.calls.mint();
        let method = match self.open_mode {
            OpenMode::Handshake { .. } => Method::Initialize,
            OpenMode::Stateless { .. } => Method::Discover,
        };
        let mut pending =
            InFlightCall::new(ExpectedResult::Opening, method.name(), &self.profile.limits, now);
        pending.is_sent = true;
        self.calls.insert(call, pending);
        let style = self.request_style(call);
        out.push_frame(FrameKind::Request(call), |bytes| {
            encode::write_client_request(bytes, call.0, method.name(), |bytes| {
                match &self.open_mode {
                    OpenMode::Handshake { proposed_rules: propose, capabilities } => {
                        let version = match &self.profile.dialect.version {
                            VersionPolicy::Negotiate => propose.name,
                            VersionPolicy::Fixed(version) => version,
                        };
                        write_initialize(bytes, version, capabilities, &style);
                    }
                    OpenMode::Stateless { .. } => {
                        write_call(bytes, &Operation::Discover, &CallOptions::default(), &style);
                    }
                }
            });
        });
        call
    }

    /// Starts a call. Before the end of the handshake it is queued. [`ClientEvent::CallDone`] reports its outcome.
    pub fn request(&mut self, request: &CallRequest, now: Now, out: &mut Outbox) -> CallKey {
        let CallRequest { operation, options } = request;
        let pending = InFlightCall::for_request(operation, options, &self.profile.limits, now);
        self.begin(pending, OutgoingRequest::Operation(request), out)
    }

    /// Checks whether the server is alive: with `server/discover` if its revision has no `ping`.
    pub fn ping(&mut self, now: Now, out: &mut Outbox) -> CallKey {
        let has_ping = self.rules.methods.contains(Method::Ping);
        let method = if has_ping { Method::Ping } else { Method::Discover };
        let limits = &self.profile.limits;
        let pending = InFlightCall::new(ExpectedResult::Nothing, method.name(), limits, now);
        self.begin(pending, OutgoingRequest::Ping, out)
    }

    /// Sets the session's minimum log level. Where each request sets its own, nothing is sent and the call is done.
    pub fn set_level(&mut self, level: Level, now: Now, out: &mut Outbox) -> CallKey {
        if !self.rules.session_log_level {
            let call = self.calls.mint();
            out.push_event(ClientEvent::CallDone(call, Outcome::Complete(Payload::Empty)));
            return call;
        }
        let method = Method::SetLevel.name();
        let pending = InFlightCall::new(ExpectedResult::Nothing, method, &self.profile.limits, now);
        self.begin(pending, OutgoingRequest::Level(level), out)
    }

    /// Notifies the server that the roots changed, if its revision has the notification and the client declared roots
    /// (2025-11-25 schema, `RootsListChangedNotification`).
    pub fn notify_roots_changed(&mut self, out: &mut Outbox) {
        let method = Method::RootsChanged.name();
        let is_known = self.profile.dialect.method(method, self.rules).is_some();
        let has_roots = match &self.open_mode {
            OpenMode::Handshake { capabilities, .. } => capabilities.roots,
            OpenMode::Stateless { .. } => false,
        };
        if self.state == ConnectionState::Open && is_known && has_roots {
            out.push_frame(FrameKind::Notification { about: None }, |bytes| {
                encode::write_notification(bytes, method, |_| {});
            });
        }
    }

    /// Cancels a call. No further event reports it. The specification forbids cancelling the handshake; close the
    /// connection instead (2025-11-25 basic/utilities/cancellation, behavior requirements).
    pub fn cancel(&mut self, call: CallKey, reason: &str, out: &mut Outbox) {
        if self.calls.get(call).is_none_or(|pending| pending.expected == ExpectedResult::Opening) {
            return;
        }
        self.send_cancellation(call, reason, out);
        self.queued.retain(|(waiting, _)| *waiting != call);
        self.reject_input_requests(call, out);
        self.calls.remove(call);
    }

    /// Removes a call that another connection continues. The server is not notified, nor do its input requests get a
    /// response.
    pub fn release_call(&mut self, call: CallKey, out: &mut Outbox) {
        self.queued.retain(|(waiting, _)| *waiting != call);
        self.release_input_requests(call, out);
        self.calls.remove(call);
    }

    /// Notifies the server that a call is cancelled, if its revision supports that.
    pub(super) fn send_cancellation(&mut self, call: CallKey, reason: &str, out: &mut Outbox) {
        let method = Method::Cancelled.name();
        let Some(pending) = self.calls.get(call) else { return };
        let is_known = self.profile.dialect.method(method, self.rules).is_some();
        if !pending.is_sent || !is_known || pending.expected == ExpectedResult::Opening {
            return;
        }
        out.push_frame(FrameKind::Notification { about: Some(call) }, |bytes| {
            encode::write_notification(bytes, method, |bytes| {
                write_key(bytes, "requestId");
                bytes.extend_from_slice(format!("{}", call.0).as_bytes());
                write_key(bytes, "reason");
                quote(bytes, reason);
            });
        });
    }

    fn begin(
        &mut self,
        pending: InFlightCall,
        request: OutgoingRequest<'_>,
        out: &mut Outbox,
    ) -> CallKey {
        let call = self.calls.mint();
        if let Some(fault) = self.blocking_fault() {
            out.push_event(ClientEvent::CallDone(call, Outcome::Fail(fault)));
            return call;
        }
        self.calls.insert(call, pending);
        match self.state {
            ConnectionState::Open => self.send(call, request, out),
            _ => self.queued.push((call, request.to_queued())),
        }
        call
    }

    /// The reason why no call can be started now.
    fn blocking_fault(&self) -> Option<Fault> {
        let max = self.profile.limits.max_calls;
        if self.state == ConnectionState::Closed {
            let detail = "the connection to the server is closed";
            Some(Fault::new(FaultKind::BackendUnavailable, detail))
        } else if self.calls.len() >= max {
            let detail = format!("the limit of {max} calls in flight to the server is reached");
            Some(Fault::new(FaultKind::Busy, detail))
        } else {
            None
        }
    }

    /// Sends the requests that waited for the handshake.
    pub(super) fn send_queued(&mut self, out: &mut Outbox) {
        for (call, waiting) in core::mem::take(&mut self.queued) {
            self.send(call, waiting.as_outgoing(), out);
        }
    }

    fn send(&mut self, call: CallKey, received: OutgoingRequest<'_>, out: &mut Outbox) {
        let (rules, dialect) = (self.rules, &self.profile.dialect);
        let Some(pending) = self.calls.get_mut(call) else { return };
        let method = pending.method;
        if dialect.method(method, rules).is_none() {
            let detail = format!("the server's revision, {}, has no {method}", rules.name);
            let fault = Fault::new(FaultKind::MethodNotFound, detail).with_subject(method);
            return self.finish_call(call, fault.into(), out);
        }
        pending.is_sent = true;
        let style = self.request_style(call);
        out.push_frame(FrameKind::Request(call), |bytes| {
            encode::write_client_request(bytes, call.0, method, |bytes| match received {
                OutgoingRequest::Operation(request) => {
                    write_call(bytes, &request.operation, &request.options, &style);
                }
                OutgoingRequest::Ping if method == Method::Discover.name() => {
                    write_call(bytes, &Operation::Discover, &CallOptions::default(), &style);
                }
                OutgoingRequest::Ping => {}
                OutgoingRequest::Level(level) => write_level(bytes, level),
            });
        });
    }

    fn request_style(&self, call: CallKey) -> RequestStyle<'_> {
        RequestStyle {
            dialect: &self.profile.dialect,
            rules: self.rules,
            identity: &self.profile.identity,
            extensions: &self.profile.extensions,
            progress_token: call.0,
        }
    }
}
