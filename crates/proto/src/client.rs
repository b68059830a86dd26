//! One connection to a server as a machine: calls and frames in, frames and happenings out.
//!
//! The mirror image of [`crate::server`]. The machine opens the conversation in either era, mints ids and
//! progress tokens, and tells of each call once what it came to. Whatever the server says, nobody else's call
//! is answered by it and nothing of it is an error of ours.

mod calls;
pub mod era_probe;
mod errors;
mod input_requests;
mod items;
mod negotiation;
mod notifications;
mod outbox;
mod receive;
mod request;
mod results;
mod send;
mod tasks;
mod unreadable;

pub use outbox::{
    ClientEvent, FrameKind, InputRequestError, InputRequestKey, NegotiationResult, Outbox,
    OutgoingFrame, ProtocolViolation,
};
pub use request::{CallOptions, CallRequest};
pub use unreadable::DropReason;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::time::Duration;
use serde_json::json;

use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::model::ClientCapabilities;
use crate::operation::Outcome;
use crate::revision::Rules;
use crate::server::Now;
use crate::wire;
use crate::wire::Raw;
use calls::{Calls, ExpectedResult};
use input_requests::InputRequests;
use send::QueuedRequest;

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
    pub limits: ClientLimits,
}

/// How much one connection may ask of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// What the scanner accepts.
    pub scan: wire::ScanLimits,
    /// Calls at the same time, those that wait for the handshake among them.
    pub max_calls: usize,
    /// How long the handshake may take.
    pub handshake_timeout: Duration,
    /// How long the server may be silent about a call.
    pub call_idle_timeout: Duration,
    /// How long a call may take, whatever it reports.
    pub call_total_timeout: Duration,
    /// How long a call may wait for the end of a task.
    pub task_result_timeout: Duration,
    /// Questions of one call that wait for answers; also those of no call that is known.
    pub max_input_requests: usize,
    /// The bytes of one question.
    pub max_input_request_bytes: usize,
    /// Things that mean nothing and are reported nevertheless.
    pub max_reported_violations: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            // Results are read without building anything, and some are large.
            scan: wire::ScanLimits { max_nodes: 2_000_000, ..wire::ScanLimits::default() },
            max_calls: 1000,
            handshake_timeout: Duration::from_secs(30),
            call_idle_timeout: Duration::from_secs(300),
            call_total_timeout: Duration::from_secs(3600),
            task_result_timeout: Duration::from_secs(25 * 3600),
            max_input_requests: 8,
            max_input_request_bytes: 1_048_576,
            max_reported_violations: 100,
        }
    }
}

/// How the conversation is to be opened.
#[derive(Clone, Debug)]
pub enum OpenMode {
    /// By `initialize`.
    Handshake {
        /// The revision to propose.
        proposed_rules: &'static Rules,
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
enum ConnectionState {
    /// Calls wait for the handshake.
    Opening,
    /// Calls are sent.
    Open,
    /// It is over.
    Closed,
}

/// One connection to a server.
#[derive(Debug)]
pub struct Machine {
    profile: Arc<Profile>,
    open_mode: OpenMode,
    rules: &'static Rules,
    state: ConnectionState,
    calls: Calls,
    queued: Vec<(CallKey, QueuedRequest)>,
    input_requests: InputRequests,
    violations: usize,
    /// The message that is being taken, where results are to share it instead of being copied.
    shared_message: Option<Arc<String>>,
    /// Why a message is being dropped of which nobody knows yet whose answer it is.
    unattributed_drop: Option<DropReason>,
}

impl Machine {
    /// A connection that nothing was said on.
    pub fn new(profile: Arc<Profile>, opening: OpenMode) -> Self {
        let (rules, stage) = match &opening {
            OpenMode::Handshake { proposed_rules: propose, .. } => {
                (*propose, ConnectionState::Opening)
            }
            OpenMode::Stateless { rules } => (*rules, ConnectionState::Open),
        };
        Self {
            profile,
            open_mode: opening,
            rules,
            state: stage,
            calls: Calls::default(),
            queued: Vec::new(),
            input_requests: InputRequests::default(),
            violations: 0,
            shared_message: None,
            unattributed_drop: None,
        }
    }

    /// The same connection, after another on the same channel: its ids go on where those of the other ended, so
    /// that a late answer is nobody's.
    #[must_use]
    pub fn with_ids_after(mut self, earlier: &Self) -> Self {
        self.calls.continue_after(&earlier.calls);
        self
    }

    /// The same connection, whose ids go on after this number: a call that another connection made goes on here under
    /// its own id.
    #[must_use]
    pub fn with_ids_after_number(mut self, last: u64) -> Self {
        self.skip_ids_to(last);
        self
    }

    /// The ids of further calls go on after this number: those up to it were given out by others on the same channel.
    pub fn skip_ids_to(&mut self, last: u64) {
        self.calls.continue_after_number(last);
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
    pub fn violation_count(&self) -> usize {
        self.violations
    }

    /// When [`Machine::tick`] has something to do, if ever.
    pub fn deadline(&self) -> Option<Now> {
        self.calls.deadline()
    }

    /// When this call has taken too long, if ever. To look at one call costs the same however many there are.
    pub fn deadline_of(&self, call: CallKey) -> Option<Now> {
        self.calls.get(call).and_then(calls::InFlightCall::deadline)
    }

    /// Ends what has taken too long.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        for key in self.calls.expired_keys(now) {
            self.send_cancellation(key, "timeout", out);
            let data = Raw::from_value(&json!({"reason": "timeout"}));
            let fault = Fault::new(FaultKind::Timeout, "the server did not answer in time");
            self.finish_call(key, fault.with_data(data).into(), out);
        }
    }

    /// Takes the news that a call's channel broke: it fails with this, unless it was answered.
    pub fn fail_call(&mut self, call: CallKey, fault: Fault, out: &mut Outbox) {
        self.finish_call(call, fault.into(), out);
    }

    /// Takes the news that the connection is gone: every call fails with this.
    pub fn close(&mut self, fault: Fault, out: &mut Outbox) {
        self.state = ConnectionState::Closed;
        self.withdraw_all_input_requests(out);
        for call in self.calls.keys() {
            self.finish_call(call, fault.clone().into(), out);
        }
    }

    /// Ends a call with what it came to.
    fn finish_call(&mut self, call: CallKey, outcome: Outcome, out: &mut Outbox) {
        let Some(pending) = self.calls.remove(call) else { return };
        self.queued.retain(|(waiting, _)| *waiting != call);
        self.reject_input_requests(call, out);
        match (pending.expected, outcome) {
            (ExpectedResult::Opening, Outcome::Fail(fault)) => self.fail_opening(fault, out),
            (_, Outcome::Fail(fault)) if pending.is_listening => {
                out.push_event(ClientEvent::ListenerEnded(call, Some(fault)));
            }
            (_, outcome) => out.push_event(ClientEvent::CallDone(call, outcome)),
        }
    }

    fn report_violation(&mut self, noise: ProtocolViolation, out: &mut Outbox) {
        self.violations = self.violations.saturating_add(1);
        match self.violations.cmp(&self.profile.limits.max_reported_violations) {
            Ordering::Less => out.push_event(ClientEvent::Violation(noise)),
            Ordering::Equal => {
                out.push_event(ClientEvent::Violation(ProtocolViolation::LimitReached))
            }
            Ordering::Greater => {}
        }
    }
}
