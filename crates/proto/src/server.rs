//! One connection of a server as a machine: frames and outcomes in, frames and actions out.
//!
//! The machine knows who may say what and how it is written; it does not know what tools do. It never
//! blocks, never reads a clock, and answers every request exactly once: with a result, an error, or, after
//! a cancellation, with nothing.

mod batch;
mod calls;
mod decode;
mod input_requests;
mod listeners;
mod outbox;
mod receive;
mod respond;

pub use calls::CallKey;
pub use outbox::{
    Action, Call, FrameRole, FrameRoute, InputRequestKey, InputResponse, Observation, Outbox,
    OutgoingFrame, RequestEnd,
};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use once_cell::race::OnceBox;

use crate::dialect::Dialect;
use crate::lifecycle::{HandshakePhase, HandshakeSession};
use crate::model::{Implementation, TaskPreference};
use crate::operation::Caller;
use crate::revision::Rules;
use crate::wire;
use batch::Batches;
use calls::Calls;
use input_requests::InputRequests;
use listeners::Listeners;

/// A time of the driver's clock, since any start.
pub type Now = Duration;

/// What every connection of a server shares.
#[derive(Debug)]
pub struct Profile {
    /// How it speaks.
    pub dialect: Dialect,
    /// How much it takes.
    pub limits: ServerLimits,
    /// Who it says it is, for revisions whose results name the server.
    pub identity: ServerIdentity,
    /// Whether requests are reported as [`Action::Observe`].
    pub is_observed: bool,
}

impl Profile {
    /// The profile of a dialect.
    pub fn new(dialect: Dialect, limits: ServerLimits) -> Self {
        Self { dialect, limits, identity: ServerIdentity::default(), is_observed: false }
    }

    /// The same profile, with results that name the server.
    #[must_use]
    pub fn identity(mut self, identity: &Implementation) -> Self {
        self.identity.own = Some(wire::Raw::from_value(identity));
        self
    }
}

/// Who results say that answered: the server, or the one in whose name it speaks. Clones share the latter.
#[derive(Clone, Debug, Default)]
pub struct ServerIdentity {
    own: Option<wire::Raw>,
    replacement: Arc<OnceBox<wire::Raw>>,
}

impl ServerIdentity {
    /// Lets results name the server in whose name this one speaks. The first one counts.
    pub fn replace(&self, identity: &Implementation) {
        _ = self.replacement.set(Box::new(wire::Raw::from_value(identity)));
    }

    /// As JSON; nothing if results name nobody.
    pub fn raw(&self) -> Option<&wire::Raw> {
        let own = self.own.as_ref()?;
        Some(self.replacement.get().unwrap_or(own))
    }
}

/// How much one connection may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// What the scanner accepts.
    pub scan: wire::ScanLimits,
    /// Calls at the same time.
    pub max_calls: usize,
    /// How long a call may run without a sign of progress.
    pub call_idle_timeout: Duration,
    /// How long a call may run at all.
    pub call_total_timeout: Duration,
    /// How long a request may wait for the end of a task. Tasks end by their own time; this is for one whose
    /// end is never told.
    pub task_result_timeout: Duration,
    /// How long the client may take to answer a question.
    pub input_timeout: Duration,
    /// Subscriptions and listeners at the same time.
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
    /// A connection that nothing was said on.
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

    /// The same machine, for a transport that gives each request a channel of its own: there two requests
    /// with the same id cannot get each other's answers, and some clients number every request 1.
    #[must_use]
    pub fn with_repeated_ids(mut self) -> Self {
        self.repeated_ids = true;
        self
    }

    /// Whether the session changed since it was last written down.
    pub fn has_changed_session(&self) -> bool {
        self.session.is_dirty
    }

    /// The session, written down if it changed since this was last asked.
    pub fn take_changed_record(&mut self) -> Option<String> {
        core::mem::take(&mut self.session.is_dirty).then(|| self.session.to_record())
    }

    /// A connection that goes on with a session as it was written down; `None` if it was not by us.
    pub fn resume(profile: Arc<Profile>, record: &str) -> Option<Self> {
        let session = HandshakeSession::from_record(record, &profile.dialect)?;
        Some(Self { session, ..Self::new(profile) })
    }

    /// The rules that hold for what does not bring its own.
    pub fn rules(&self) -> &'static Rules {
        self.session.rules
    }

    /// Whether a handshake was begun.
    pub fn has_begun_handshake(&self) -> bool {
        self.session.phase != HandshakePhase::Created
    }

    /// Whether the call is neither answered nor given up.
    pub fn is_open(&self, call: CallKey) -> bool {
        self.calls.contains(call) || self.listeners.contains(call)
    }

    /// Ends every stream of notifications with its graceful result.
    pub fn close_listeners(&mut self, out: &mut Outbox) {
        self.end_listeners(out);
    }

    /// The resources that are watched, once for each who watches: to be released when the connection is gone.
    pub fn subscribed_uris(&self) -> impl Iterator<Item = &str> {
        self.session
            .subscribed_uris
            .iter()
            .chain(self.listeners.subscribed_uris())
            .map(String::as_str)
    }

    /// The client of the session, as the caller of what is done again for it without its asking.
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

    /// Calls that are not finished.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// When [`Machine::tick`] has something to do, if ever.
    pub fn deadline(&self) -> Option<Now> {
        self.calls.deadline().into_iter().chain(self.input_requests.deadline()).min()
    }

    /// Ends the connection: listeners get their graceful result, calls are stopped and told so.
    pub fn close(&mut self, now: Now, out: &mut Outbox) {
        self.session.phase = HandshakePhase::Shutdown;
        self.end_listeners(out);
        for key in self.calls.keys() {
            let why = "the connection was closed before the answer was there";
            self.abort_call(key, "closed", why, now, out);
        }
    }
}
