//! The server's state machine for one connection: frames and outcomes go in, frames and actions come out.
//!
//! The machine knows which messages are allowed and how they are encoded. It does not know what tools do. It never
//! blocks and never reads a clock. Each request gets exactly one response, a result or an error; a cancelled request
//! gets none (2025-11-25 basic/utilities/cancellation, behavior requirements).

mod batch;
mod calls;
mod decode;
mod input_requests;
mod listeners;
mod outbox;
mod receive;
mod respond;

pub use crate::encode::error_code;
pub use calls::CallKey;
pub use outbox::{
    Action, Call, FrameRole, FrameRoute, InputRequestKey, InputResponse, Observation, Outbox,
    OutgoingFrame, RequestEnd,
};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU8;
use core::time::Duration;

use once_cell::race::OnceBox;

use crate::dialect::Dialect;
use crate::lifecycle::{HandshakePhase, HandshakeSession};
use crate::model::{Implementation, TaskPreference};
use crate::operation::Caller;
use crate::revision::Rules;
use crate::wire;
use crate::wire::Id;
use batch::Batches;
use calls::Calls;
use input_requests::InputRequests;
use listeners::Listeners;

/// A time of the driver's clock, relative to an arbitrary start.
pub type Now = Duration;

/// Settings that all connections of a server share.
#[derive(Debug)]
pub struct Profile {
    /// The server's dialect.
    pub dialect: Dialect,
    /// The limits of each connection.
    pub limits: ServerLimits,
    /// The server's identity, for revisions whose results contain it (2026-07-28 basic, `_meta`).
    pub identity: ServerIdentity,
    /// Whether requests are reported as [`Action::Observe`].
    pub is_observed: bool,
    /// Not zero: the requests that get their response without a call, and rejected messages, are reported. The driver
    /// may change it at any time.
    pub observers: Arc<AtomicU8>,
}

impl Profile {
    /// Creates a profile for a dialect.
    pub fn new(dialect: Dialect, limits: ServerLimits) -> Self {
        Self {
            dialect,
            limits,
            identity: ServerIdentity::default(),
            is_observed: false,
            observers: Arc::default(),
        }
    }

    /// Sets the identity that results contain.
    #[must_use]
    pub fn identity(mut self, identity: &Implementation) -> Self {
        self.identity.own = Some(wire::Raw::from_value(identity));
        self
    }
}

/// The identity that results contain: the server's own, or that of the server it represents. Clones share the latter.
#[derive(Clone, Debug, Default)]
pub struct ServerIdentity {
    own: Option<wire::Raw>,
    replacement: Arc<OnceBox<wire::Raw>>,
}

impl ServerIdentity {
    /// Sets the identity of the server that this one represents. Only the first call has an effect.
    pub fn replace(&self, identity: &Implementation) {
        _ = self.replacement.set(Box::new(wire::Raw::from_value(identity)));
    }

    /// The identity as JSON, if results contain one.
    pub fn raw(&self) -> Option<&wire::Raw> {
        let own = self.own.as_ref()?;
        Some(self.replacement.get().unwrap_or(own))
    }
}

/// Limits on the resources that one connection may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Limits of the JSON scanner.
    pub scan: wire::ScanLimits,
    /// Maximum number of concurrent calls.
    pub max_calls: usize,
    /// Maximum time of a call without progress (2025-11-25 basic/lifecycle, timeouts).
    pub call_idle_timeout: Duration,
    /// Maximum duration of a call.
    pub call_total_timeout: Duration,
    /// Maximum time that a request waits for the end of a task. Tasks have their own time limit; this limit is for a
    /// task whose end is never reported.
    pub task_result_timeout: Duration,
    /// Maximum time until the client responds to an input request.
    pub input_timeout: Duration,
    /// Maximum number of concurrent subscriptions and listeners.
    pub max_subscriptions: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            scan: wire::ScanLimits::default(),
            max_calls: 1000,
            call_idle_timeout: Duration::from_secs(60),
            call_total_timeout: Duration::from_secs(600),
            task_result_timeout: Duration::from_secs(25 * 3600),
            input_timeout: Duration::from_secs(600),
            max_subscriptions: 1000,
        }
    }
}

/// One connection of a server.
#[derive(Debug)]
pub struct Machine {
    profile: Arc<Profile>,
    session: HandshakeSession,
    calls: Calls,
    batches: Batches,
    input_requests: InputRequests,
    listeners: Listeners,
    repeated_ids: bool,
}

impl Machine {
    /// A connection on which nothing was received yet.
    pub fn new(profile: Arc<Profile>) -> Self {
        let session = HandshakeSession::new(&profile.dialect);
        Self {
            profile,
            session,
            calls: Calls::default(),
            batches: Batches::default(),
            input_requests: InputRequests::default(),
            listeners: Listeners::default(),
            repeated_ids: false,
        }
    }

    /// Allows repeated ids, for a transport that gives each request its own channel. There, two requests with the same
    /// id cannot receive each other's responses, and some clients number every request 1.
    #[must_use]
    pub fn with_repeated_ids(mut self) -> Self {
        self.repeated_ids = true;
        self
    }

    /// Whether the session changed since its last record.
    pub fn has_changed_session(&self) -> bool {
        self.session.is_dirty
    }

    /// The session's record, if the session changed since the last call.
    pub fn take_changed_record(&mut self) -> Option<String> {
        core::mem::take(&mut self.session.is_dirty).then(|| self.session.to_record())
    }

    /// The record that was taken could not be saved, so it is taken again.
    pub fn keep_changed_record(&mut self) {
        self.session.is_dirty = true;
    }

    /// Restores a connection from the record of a session. Returns `None` if this program did not write the record.
    pub fn resume(profile: Arc<Profile>, record: &str) -> Option<Self> {
        let session = HandshakeSession::from_record(record, &profile.dialect)?;
        Some(Self { session, ..Self::new(profile) })
    }

    /// Takes over what another process recorded of this session since, unless there are unrecorded changes here. Returns
    /// the resources that are not subscribed to any more.
    pub fn refresh(&mut self, record: &str) -> Option<Vec<String>> {
        let newer = HandshakeSession::from_record(record, &self.profile.dialect)?;
        self.session.refresh(newer)
    }

    /// The rules for messages that do not carry their own version.
    pub fn rules(&self) -> &'static Rules {
        self.session.rules
    }

    /// Whether a handshake has started.
    pub fn has_begun_handshake(&self) -> bool {
        self.session.phase != HandshakePhase::Created
    }

    /// Whether requests are reported as [`Action::Observe`].
    pub fn is_observed(&self) -> bool {
        self.profile.is_observed
    }

    /// The method of an unfinished call, and the id of its request.
    pub fn request_of(&self, call: CallKey) -> Option<(&'static str, &Id)> {
        self.calls.get(call).map(|pending| (pending.method, &pending.id))
    }

    /// Whether the call has neither finished nor been cancelled.
    pub fn is_open(&self, call: CallKey) -> bool {
        self.calls.contains(call) || self.listeners.contains(call)
    }

    /// Ends every stream of notifications with its final result
    /// (2026-07-28 basic/patterns/subscriptions, graceful closure).
    pub fn close_listeners(&mut self, out: &mut Outbox) {
        self.end_listeners(out);
    }

    /// The subscribed resources, once per subscription. The owner releases them when the connection closes.
    pub fn subscribed_uris(&self) -> impl Iterator<Item = &str> {
        self.session
            .subscribed_uris
            .iter()
            .chain(self.listeners.subscribed_uris())
            .map(String::as_str)
    }

    /// The session's client as the caller of operations that the server repeats on its own.
    pub fn session_caller(&self) -> Caller {
        Caller {
            rules: self.session.rules,
            capabilities: self.session.capabilities.clone().unwrap_or_default(),
            client: self.session.client.clone(),
            log: None,
            progress: false,
            input_responses: None,
            extra: None,
            task_preference: TaskPreference::Never,
        }
    }

    /// Number of unfinished calls.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// The next time at which [`Machine::tick`] has work to do, if any.
    pub fn deadline(&self) -> Option<Now> {
        self.calls.deadline().into_iter().chain(self.input_requests.deadline()).min()
    }

    /// Closes the connection. Listeners get their final result; calls are cancelled and get an error.
    pub fn close(&mut self, now: Now, out: &mut Outbox) {
        self.session.phase = HandshakePhase::Shutdown;
        self.end_listeners(out);
        for key in self.calls.keys() {
            let reason = "the connection was closed before the response was ready";
            self.abort_call(key, "closed", reason, now, out);
        }
    }
}
