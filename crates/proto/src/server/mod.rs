//! One connection of a server as a machine: frames and outcomes in, frames and actions out.
//!
//! The machine knows who may say what and how it is written; it does not know what tools do. It never
//! blocks, never reads a clock, and answers every request exactly once: with a result, an error, or, after
//! a cancellation, with nothing.

mod asks;
mod batch;
mod calls;
mod decode;
mod listen;
mod outbox;
mod receive;
mod respond;

pub use calls::CallKey;
pub use outbox::{Action, Answer, AskKey, Call, End, Observation, Outbox, Outgoing, Role, Route};

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use once_cell::race::OnceBox;

use crate::dialect::Dialect;
use crate::lifecycle::{Phase, Session};
use crate::model::{Implementation, Tasking};
use crate::op::Caller;
use crate::revision::Rules;
use crate::wire;
use asks::Asks;
use batch::Batches;
use calls::Calls;
use listen::Listeners;

/// A time of the driver's clock, since any start.
pub type Now = Duration;

/// What every connection of a server shares.
#[derive(Debug)]
pub struct Profile {
    /// How it speaks.
    pub dialect: Dialect,
    /// How much it takes.
    pub limits: Limits,
    /// Who it says it is, for revisions whose results name the server.
    pub identity: Identity,
    /// Whether requests are reported as [`Action::Observe`].
    pub observed: bool,
}

impl Profile {
    /// The profile of a dialect.
    pub fn new(dialect: Dialect, limits: Limits) -> Self {
        Self { dialect, limits, identity: Identity::default(), observed: false }
    }

    /// The same profile, with results that name the server.
    #[must_use]
    pub fn identity(mut self, identity: &Implementation) -> Self {
        self.identity.own = Some(wire::Raw::of(identity));
        self
    }
}

/// Who results say that answered: the server, or the one in whose name it speaks. Clones share the latter.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    own: Option<wire::Raw>,
    lent: Arc<OnceBox<wire::Raw>>,
}

impl Identity {
    /// Lets results name the server in whose name this one speaks. The first one counts.
    pub fn lend(&self, identity: &Implementation) {
        _ = self.lent.set(Box::new(wire::Raw::of(identity)));
    }

    /// As JSON; nothing if results name nobody.
    pub fn raw(&self) -> Option<&wire::Raw> {
        let own = self.own.as_ref()?;
        Some(self.lent.get().unwrap_or(own))
    }
}

/// How much one connection may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What the scanner accepts.
    pub wire: wire::Limits,
    /// Calls at the same time.
    pub calls: usize,
    /// How long a call may run without a sign of progress.
    pub call_idle: Duration,
    /// How long a call may run at all.
    pub call_total: Duration,
    /// How long a request may wait for the end of a task. Tasks end by their own time; this is for one whose
    /// end is never told.
    pub task_result: Duration,
    /// How long the client may take to answer a question.
    pub question: Duration,
    /// Subscriptions and listeners at the same time.
    pub subscriptions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wire: wire::Limits::default(),
            calls: 1000,
            call_idle: Duration::from_secs(60),
            call_total: Duration::from_secs(600),
            task_result: Duration::from_secs(25 * 3600),
            question: Duration::from_secs(600),
            subscriptions: 1000,
        }
    }
}

/// One connection of a server.
#[derive(Debug)]
pub struct Machine {
    profile: Arc<Profile>,
    session: Session,
    calls: Calls,
    batches: Batches,
    asks: Asks,
    listeners: Listeners,
    repeated_ids: bool,
}

impl Machine {
    /// A connection that nothing was said on.
    pub fn new(profile: Arc<Profile>) -> Self {
        let session = Session::new(&profile.dialect);
        Self {
            profile,
            session,
            calls: Calls::default(),
            batches: Batches::default(),
            asks: Asks::default(),
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
    pub fn is_changed(&self) -> bool {
        self.session.changed
    }

    /// The session, written down if it changed since this was last asked.
    pub fn changed_record(&mut self) -> Option<String> {
        core::mem::take(&mut self.session.changed).then(|| self.session.record())
    }

    /// A connection that goes on with a session as it was written down; `None` if it was not by us.
    pub fn resume(profile: Arc<Profile>, record: &str) -> Option<Self> {
        let session = Session::from_record(record, &profile.dialect)?;
        Some(Self { session, ..Self::new(profile) })
    }

    /// The rules that hold for what does not bring its own.
    pub fn rules(&self) -> &'static Rules {
        self.session.rules
    }

    /// Whether a handshake was begun.
    pub fn is_opened(&self) -> bool {
        self.session.phase != Phase::Created
    }

    /// Whether the call is neither answered nor given up.
    pub fn is_open(&self, call: CallKey) -> bool {
        self.calls.contains(call) || self.listeners.contains(call)
    }

    /// Ends every stream of notifications with its graceful result.
    pub fn end_listening(&mut self, out: &mut Outbox) {
        self.end_listeners(out);
    }

    /// The resources that are watched, once for each who watches: to be released when the connection is gone.
    pub fn watched(&self) -> impl Iterator<Item = &str> {
        self.session.watched.iter().chain(self.listeners.watched()).map(String::as_str)
    }

    /// The client of the session, as the caller of what is done again for it without its asking.
    pub fn session_caller(&self) -> Caller {
        Caller {
            rules: self.session.rules,
            capabilities: self.session.capabilities.clone().unwrap_or_default(),
            client: self.session.client.clone(),
            log: None,
            progress: false,
            reentry: None,
            beyond: None,
            tasking: Tasking::Never,
        }
    }

    /// Calls that are not finished.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// When [`Machine::tick`] has something to do, if ever.
    pub fn deadline(&self) -> Option<Now> {
        self.calls.deadline().into_iter().chain(self.asks.deadline()).min()
    }

    /// Ends the connection: listeners get their graceful result, calls are stopped and told so.
    pub fn close(&mut self, now: Now, out: &mut Outbox) {
        self.session.phase = Phase::Shutdown;
        self.end_listeners(out);
        for key in self.calls.keys() {
            let why = "the connection was closed before the answer was there";
            self.give_up(key, "closed", why, now, out);
        }
    }
}
