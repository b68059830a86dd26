//! One connection to a server as a machine: calls and frames in, frames and happenings out.
//!
//! The mirror image of [`crate::server`]. The machine opens the conversation in either era, mints ids and
//! progress tokens, and tells of each call once what it came to. Whatever the server says, nobody else's call
//! is answered by it and nothing of it is an error of ours.

mod calls;
mod errors;
mod items;
mod notices;
mod open;
mod outbox;
mod questions;
mod receive;
mod request;
mod results;
mod send;
mod tasks;
mod unreadable;
pub mod verdict;

pub use outbox::{Greeting, Happening, Noise, Outbox, Outgoing, QuestionKey, Refusal, Sending};
pub use request::{Request, Terms};
pub use unreadable::Dropped;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::time::Duration;
use serde_json::json;

use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::model::ClientCapabilities;
use crate::op::Outcome;
use crate::revision::Rules;
use crate::server::Now;
use crate::wire::{self, Raw};
use calls::{Calls, Expect};
use questions::Questions;
use send::Waiting;

/// A call to a server. Its number is also its id on the wire and its progress token, and is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// What every connection to a server shares.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How the server speaks.
    pub dialect: Dialect,
    /// Who we say we are: `clientInfo`, an object.
    pub identity: Raw,
    /// How much a server may ask of us.
    pub limits: Limits,
}

/// How much one connection may ask of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What the scanner accepts.
    pub wire: wire::Limits,
    /// Calls at the same time, those that wait for the handshake among them.
    pub calls: usize,
    /// How long the handshake may take.
    pub opening: Duration,
    /// How long the server may be silent about a call.
    pub call_idle: Duration,
    /// How long a call may take, whatever it reports.
    pub call_total: Duration,
    /// How long a call may wait for the end of a task.
    pub task_result: Duration,
    /// Questions of one call that wait for answers; also those of no call that is known.
    pub questions: usize,
    /// The bytes of one question.
    pub question_bytes: usize,
    /// Things that mean nothing and are reported nevertheless.
    pub noise: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Results are read without building anything, and some are large.
            wire: wire::Limits { nodes: 2_000_000, ..wire::Limits::default() },
            calls: 1000,
            opening: Duration::from_secs(30),
            call_idle: Duration::from_secs(300),
            call_total: Duration::from_secs(3600),
            task_result: Duration::from_secs(25 * 3600),
            questions: 8,
            question_bytes: 1_048_576,
            noise: 100,
        }
    }
}

/// How the conversation is to be opened.
#[derive(Clone, Debug)]
pub enum Opening {
    /// By `initialize`.
    Handshake {
        /// The revision to propose.
        propose: &'static Rules,
        /// What the server is told that it may ask for, as far as its revision has it.
        capabilities: Arc<ClientCapabilities>,
    },
    /// Not at all: each request stands alone. [`Machine::open`] asks who the server is.
    Stateless {
        /// The revision to speak.
        rules: &'static Rules,
    },
}

/// How far the conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Calls wait for the handshake.
    Closed,
    /// Calls are sent.
    Open,
    /// It is over.
    Over,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Machine {
    profile: Arc<Profile>,
    opening: Opening,
    rules: &'static Rules,
    stage: Stage,
    calls: Calls,
    waiting: Vec<(CallKey, Waiting)>,
    questions: Questions,
    noise: usize,
    /// The message that is being taken, where results are to share it instead of being copied.
    shared: Option<Arc<String>>,
    /// Why a message is being dropped of which nobody knows yet whose answer it is.
    dropping: Option<Dropped>,
}

impl Machine {
    /// A connection that nothing was said on.
    pub fn new(profile: Arc<Profile>, opening: Opening) -> Self {
        let (rules, stage) = match &opening {
            Opening::Handshake { propose, .. } => (*propose, Stage::Closed),
            Opening::Stateless { rules } => (*rules, Stage::Open),
        };
        Self {
            profile,
            opening,
            rules,
            stage,
            calls: Calls::default(),
            waiting: Vec::new(),
            questions: Questions::default(),
            noise: 0,
            shared: None,
            dropping: None,
        }
    }

    /// The same connection, after another on the same channel: its ids go on where those of the other ended, so
    /// that a late answer is nobody's.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.calls.go_on_after(&earlier.calls);
        self
    }

    /// The same connection, whose ids go on after this number: a call that another connection made goes on here under
    /// its own id.
    #[must_use]
    pub fn after_number(mut self, last: u64) -> Self {
        self.skip_to(last);
        self
    }

    /// The ids of further calls go on after this number: those up to it were given out by others on the same channel.
    pub fn skip_to(&mut self, last: u64) {
        self.calls.go_on_after_number(last);
    }

    /// The rules that hold: those agreed on, or those proposed so far.
    pub fn rules(&self) -> &'static Rules {
        self.rules
    }

    /// Whether the call is neither answered nor given up; an acknowledged listener is open until it ends.
    pub fn is_open(&self, call: CallKey) -> bool {
        self.calls.get(call).is_some()
    }

    /// Calls that are not done, listeners among them.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// How much was said that means nothing.
    pub fn noise(&self) -> usize {
        self.noise
    }

    /// When [`Machine::tick`] has something to do, if ever.
    pub fn deadline(&self) -> Option<Now> {
        self.calls.deadline()
    }

    /// When this call has taken too long, if ever. To look at one call costs the same however many there are.
    pub fn deadline_of(&self, call: CallKey) -> Option<Now> {
        self.calls.get(call).and_then(calls::Pending::deadline)
    }

    /// Ends what has taken too long.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        for key in self.calls.expired(now) {
            self.send_cancellation(key, "timeout", out);
            let data = Raw::of(&json!({"reason": "timeout"}));
            let fault = Fault::new(FaultKind::Timeout, "the server did not answer in time");
            self.finish(key, fault.with_data(data).into(), out);
        }
    }

    /// Takes the news that a call's channel broke: it fails with this, unless it was answered.
    pub fn fail(&mut self, call: CallKey, fault: Fault, out: &mut Outbox) {
        self.finish(call, fault.into(), out);
    }

    /// Takes the news that the connection is gone: every call fails with this.
    pub fn end(&mut self, fault: Fault, out: &mut Outbox) {
        self.stage = Stage::Over;
        self.withdraw_all(out);
        for call in self.calls.keys() {
            self.finish(call, fault.clone().into(), out);
        }
    }

    /// Ends a call with what it came to.
    fn finish(&mut self, call: CallKey, outcome: Outcome, out: &mut Outbox) {
        let Some(pending) = self.calls.remove(call) else { return };
        self.waiting.retain(|(waiting, _)| *waiting != call);
        self.drop_questions(call, out);
        match (pending.expect, outcome) {
            (Expect::Opening, Outcome::Fail(fault)) => self.refuse(fault, out),
            (_, Outcome::Fail(fault)) if pending.listening => {
                out.tell(Happening::Ended(call, Some(fault)));
            }
            (_, outcome) => out.tell(Happening::Done(call, outcome)),
        }
    }

    fn make_noise(&mut self, noise: Noise, out: &mut Outbox) {
        self.noise = self.noise.saturating_add(1);
        match self.noise.cmp(&self.profile.limits.noise) {
            Ordering::Less => out.tell(Happening::Noise(noise)),
            Ordering::Equal => out.tell(Happening::Noise(Noise::More)),
            Ordering::Greater => {}
        }
    }
}
