//! Calls on their way out: gate, ids, cancellation.

use alloc::boxed::Box;
use alloc::format;

use super::calls::{Expect, Pending};
use super::outbox::{Happening, Outbox, Sending};
use super::{CallKey, Machine, Opening, Request, Stage, Terms};
use crate::dialect::VersionAnswer;
use crate::encode::{self, Manner, key, write_call, write_initialize, write_level};
use crate::fault::{Fault, FaultKind};
use crate::method::Method;
use crate::model::Level;
use crate::op::{Operation, Outcome, Payload};
use crate::revision::Era;
use crate::server::Now;
use crate::wire::quote;

/// What is asked of a server.
#[derive(Clone, Copy)]
enum What<'a> {
    /// An operation.
    Operation(&'a Request),
    /// Whether it is alive.
    Ping,
    /// The session's log level.
    Level(Level),
}

/// The same, while it waits for the handshake.
#[derive(Debug)]
pub(super) enum Waiting {
    Operation(Box<Request>),
    Ping,
    Level(Level),
}

impl What<'_> {
    fn kept(self) -> Waiting {
        match self {
            Self::Operation(request) => Waiting::Operation(Box::new(request.clone())),
            Self::Ping => Waiting::Ping,
            Self::Level(level) => Waiting::Level(level),
        }
    }
}

impl Waiting {
    fn what(&self) -> What<'_> {
        match self {
            Self::Operation(request) => What::Operation(request),
            Self::Ping => What::Ping,
            Self::Level(level) => What::Level(*level),
        }
    }
}

impl Machine {
    /// Opens the conversation: `initialize`, or `server/discover`. The key is that of the request, for a
    /// transport that has to say [`Machine::fail`]; what comes of it is [`Happening::Opened`] or
    /// [`Happening::Refused`].
    pub fn open(&mut self, now: Now, out: &mut Outbox) -> CallKey {
        let call = self.calls.mint();
        let method = match self.opening {
            Opening::Handshake { .. } => Method::Initialize,
            Opening::Stateless { .. } => Method::Discover,
        };
        let mut pending = Pending::new(Expect::Opening, method.name(), &self.profile.limits, now);
        pending.sent = true;
        self.calls.insert(call, pending);
        let manner = self.manner(call);
        out.frame(Sending::Request(call), |bytes| {
            encode::call(bytes, call.0, method.name(), |bytes| match &self.opening {
                Opening::Handshake { propose, capabilities } => {
                    let version = match &self.profile.dialect.version {
                        VersionAnswer::Negotiate => propose.name,
                        VersionAnswer::Fixed(version) => version,
                    };
                    write_initialize(bytes, version, capabilities, &manner);
                }
                Opening::Stateless { .. } => {
                    write_call(bytes, &Operation::Discover, &Terms::default(), &manner);
                }
            });
        });
        call
    }

    /// Makes a call. Before the handshake is done it waits; [`Happening::Done`] tells what came of it.
    pub fn request(&mut self, request: &Request, now: Now, out: &mut Outbox) -> CallKey {
        let Request { operation, terms } = request;
        let pending = Pending::of(operation, terms, &self.profile.limits, now);
        self.begin(pending, What::Operation(request), out)
    }

    /// Asks whether the server is alive; in the stateless era by `server/discover`.
    pub fn ping(&mut self, now: Now, out: &mut Outbox) -> CallKey {
        let method = match self.rules.era {
            Era::Handshake => Method::Ping,
            Era::Stateless => Method::Discover,
        };
        let limits = &self.profile.limits;
        let pending = Pending::new(Expect::Nothing, method.name(), limits, now);
        self.begin(pending, What::Ping, out)
    }

    /// Sets the least serious log messages of the session. Where each request sets its own, nothing is sent and
    /// the call is done.
    pub fn set_level(&mut self, level: Level, now: Now, out: &mut Outbox) -> CallKey {
        if !self.rules.session_log_level {
            let call = self.calls.mint();
            out.tell(Happening::Done(call, Outcome::Complete(Payload::Empty)));
            return call;
        }
        let method = Method::SetLevel.name();
        let pending = Pending::new(Expect::Nothing, method, &self.profile.limits, now);
        self.begin(pending, What::Level(level), out)
    }

    /// Tells the server that the roots changed, where its revision has a notification for that and it was told that it
    /// may ask for them.
    pub fn roots_changed(&mut self, out: &mut Outbox) {
        let method = Method::RootsChanged.name();
        let is_known = self.profile.dialect.method(method, self.rules).is_some();
        let has_roots = match &self.opening {
            Opening::Handshake { capabilities, .. } => capabilities.roots,
            Opening::Stateless { .. } => false,
        };
        if self.stage == Stage::Open && is_known && has_roots {
            out.frame(Sending::Notification { about: None }, |bytes| {
                encode::notification(bytes, method, |_| {});
            });
        }
    }

    /// Gives a call up: nothing more is told of it. The opening cannot be given up, as the specification forbids
    /// that; end the connection instead.
    pub fn cancel(&mut self, call: CallKey, reason: &str, out: &mut Outbox) {
        if self.calls.get(call).is_none_or(|pending| pending.expect == Expect::Opening) {
            return;
        }
        self.send_cancellation(call, reason, out);
        self.waiting.retain(|(waiting, _)| *waiting != call);
        self.drop_questions(call, out);
        self.calls.remove(call);
    }

    /// Forgets a call that somebody else goes on with: the server is told nothing, also not of its questions.
    pub fn leave(&mut self, call: CallKey, out: &mut Outbox) {
        self.waiting.retain(|(waiting, _)| *waiting != call);
        self.leave_questions(call, out);
        self.calls.remove(call);
    }

    /// Tells the server that nobody waits for this call any more, where it understands that.
    pub(super) fn send_cancellation(&mut self, call: CallKey, reason: &str, out: &mut Outbox) {
        let method = Method::Cancelled.name();
        let Some(pending) = self.calls.get(call) else { return };
        let is_known = self.profile.dialect.method(method, self.rules).is_some();
        if !pending.sent || !is_known || pending.expect == Expect::Opening {
            return;
        }
        out.frame(Sending::Notification { about: Some(call) }, |bytes| {
            encode::notification(bytes, method, |bytes| {
                key(bytes, "requestId");
                bytes.extend_from_slice(format!("{}", call.0).as_bytes());
                key(bytes, "reason");
                quote(bytes, reason);
            });
        });
    }

    fn begin(&mut self, pending: Pending, what: What<'_>, out: &mut Outbox) -> CallKey {
        let call = self.calls.mint();
        if let Some(fault) = self.obstacle() {
            out.tell(Happening::Done(call, Outcome::Fail(fault)));
            return call;
        }
        self.calls.insert(call, pending);
        match self.stage {
            Stage::Open => self.send(call, what, out),
            _ => self.waiting.push((call, what.kept())),
        }
        call
    }

    /// Why no call can be made now.
    fn obstacle(&self) -> Option<Fault> {
        let most = self.profile.limits.calls;
        if self.stage == Stage::Over {
            let detail = "the connection to the server is closed";
            Some(Fault::new(FaultKind::BackendUnavailable, detail))
        } else if self.calls.len() >= most {
            let detail = format!("{most} calls to the server are in flight, the most allowed");
            Some(Fault::new(FaultKind::Busy, detail))
        } else {
            None
        }
    }

    /// Sends what waited for the handshake.
    pub(super) fn send_waiting(&mut self, out: &mut Outbox) {
        for (call, waiting) in core::mem::take(&mut self.waiting) {
            self.send(call, waiting.what(), out);
        }
    }

    fn send(&mut self, call: CallKey, what: What<'_>, out: &mut Outbox) {
        let (rules, dialect) = (self.rules, &self.profile.dialect);
        let Some(pending) = self.calls.get_mut(call) else { return };
        let method = pending.method;
        if dialect.method(method, rules).is_none() {
            let detail = format!("the server's revision, {}, has no {method}", rules.name);
            let fault = Fault::new(FaultKind::MethodNotFound, detail).about(method);
            return self.finish(call, fault.into(), out);
        }
        pending.sent = true;
        let manner = self.manner(call);
        out.frame(Sending::Request(call), |bytes| {
            encode::call(bytes, call.0, method, |bytes| match what {
                What::Operation(request) => {
                    write_call(bytes, &request.operation, &request.terms, &manner);
                }
                What::Ping if rules.era == Era::Stateless => {
                    write_call(bytes, &Operation::Discover, &Terms::default(), &manner);
                }
                What::Ping => {}
                What::Level(level) => write_level(bytes, level),
            });
        });
    }

    fn manner(&self, call: CallKey) -> Manner<'_> {
        Manner {
            dialect: &self.profile.dialect,
            rules: self.rules,
            identity: &self.profile.identity,
            token: call.0,
        }
    }
}
