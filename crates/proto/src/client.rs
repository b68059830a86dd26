//! The client's state machine for one connection: calls and frames go in, frames and events come out.
//!
//! It is the counterpart of [`crate::server`]. The machine opens the connection in either era, assigns ids and progress
//! tokens, and reports exactly one outcome per call. A misbehaving server can fail only the call it responds to. Its
//! mistakes never become errors of this side.

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

pub use crate::operation::CallOptions;
pub use outbox::{
    ClientEvent, FrameKind, InputRequestError, InputRequestKey, NegotiationResult, Outbox,
    OutgoingFrame, ProtocolViolation,
};
pub use request::CallRequest;
pub use tasks::parse_timestamp;
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

/// A call to a server. Its number is also its JSON-RPC id and its progress token, and is never reused
/// (2025-11-25 basic, requests).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// Settings that all connections to a server share.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The server's dialect.
    pub dialect: Dialect,
    /// This client's `clientInfo`, an object (2025-11-25 schema, `Implementation`).
    pub identity: Raw,
    /// Limits of each connection.
    pub limits: ClientLimits,
    /// The extensions that this client uses besides tasks. Its capabilities declare them.
    pub extensions: Vec<&'static str>,
}

/// Limits on the resources that one connection may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Limits of the JSON scanner.
    pub scan: wire::ScanLimits,
    /// Maximum number of concurrent calls, including calls that wait for the handshake.
    pub max_calls: usize,
    /// Maximum duration of the handshake.
    pub handshake_timeout: Duration,
    /// Maximum time without a message about a call (2025-11-25 basic/lifecycle, timeouts).
    pub call_idle_timeout: Duration,
    /// Maximum duration of a call, regardless of its progress notifications.
    pub call_total_timeout: Duration,
    /// Maximum time that a call may wait for the end of a task.
    pub task_result_timeout: Duration,
    /// Maximum number of pending input requests per call, and of pending input requests that belong to no known call.
    pub max_input_requests: usize,
    /// Maximum size of one input request, in bytes.
    pub max_input_request_bytes: usize,
    /// Maximum number of protocol violations that are reported.
    pub max_reported_violations: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            // Results are scanned without building a tree, and some are large.
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

/// How a connection is opened.
#[derive(Clone, Debug)]
pub enum OpenMode {
    /// With `initialize` (2025-11-25 basic/lifecycle, initialization).
    Handshake {
        /// The revision to propose.
        proposed_rules: &'static Rules,
        /// The capabilities to declare, as far as the revision has them.
        capabilities: Arc<ClientCapabilities>,
    },
    /// Without a handshake: each request carries its version and capabilities (2026-07-28 basic, statelessness).
    /// [`Machine::open`] sends `server/discover`.
    Stateless {
        /// The revision to use.
        rules: &'static Rules,
    },
}

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Calls wait for the handshake.
    Opening,
    /// Calls are sent.
    Open,
    /// The connection is closed.
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
    /// The message being received, if results share its text instead of copying it.
    shared_message: Option<Arc<String>>,
    /// The reason for dropping a message whose call is not known yet.
    unattributed_drop: Option<DropReason>,
}

impl Machine {
    /// A connection on which nothing was sent yet.
    pub fn new(profile: Arc<Profile>, mode: OpenMode) -> Self {
        let (rules, state) = match &mode {
            OpenMode::Handshake { proposed_rules: propose, .. } => {
                (*propose, ConnectionState::Opening)
            }
            OpenMode::Stateless { rules } => (*rules, ConnectionState::Open),
        };
        Self {
            profile,
            open_mode: mode,
            rules,
            state,
            calls: Calls::default(),
            queued: Vec::new(),
            input_requests: InputRequests::default(),
            violations: 0,
            shared_message: None,
            unattributed_drop: None,
        }
    }

    /// Continues the ids of an earlier connection on the same channel, so that a late response to the earlier one
    /// matches no call.
    #[must_use]
    pub fn with_ids_after(mut self, earlier: &Self) -> Self {
        self.calls.continue_after(&earlier.calls);
        self
    }

    /// Continues the ids after `last`. A call that another connection started can then continue here under its own id.
    #[must_use]
    pub fn with_ids_after_number(mut self, last: u64) -> Self {
        self.skip_ids_to(last);
        self
    }

    /// Skips the ids up to `last`, which other connections on the same channel have used.
    pub fn skip_ids_to(&mut self, last: u64) {
        self.calls.continue_after_number(last);
    }

    /// The rules in force: the negotiated ones, or the proposed ones before negotiation.
    pub fn rules(&self) -> &'static Rules {
        self.rules
    }

    /// Whether the call has neither finished nor been cancelled. An acknowledged listener is open until it ends.
    pub fn is_open(&self, call: CallKey) -> bool {
        self.calls.get(call).is_some()
    }

    /// Number of unfinished calls, including listeners.
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// Number of protocol violations by the server.
    pub fn violation_count(&self) -> usize {
        self.violations
    }

    /// The next time at which [`Machine::tick`] has work to do, if any.
    pub fn deadline(&self) -> Option<Now> {
        self.calls.deadline()
    }

    /// The deadline of this call, if any. The cost does not depend on the number of calls.
    pub fn deadline_of(&self, call: CallKey) -> Option<Now> {
        self.calls.get(call).and_then(calls::InFlightCall::deadline)
    }

    /// Holds a call whose request the server has refused to process before this side does something, such as a login, or
    /// ends that. The time between does not count for the deadlines of the call.
    pub fn set_call_held(&mut self, call: CallKey, is_held: bool, now: Now) {
        if let Some(pending) = self.calls.get_mut(call) {
            pending.set_held(is_held, now);
        }
    }

    /// Fails the calls whose deadline has passed.
    pub fn tick(&mut self, now: Now, out: &mut Outbox) {
        for key in self.calls.expired_keys(now) {
            self.send_cancellation(key, "timeout", out);
            let data = Raw::from_value(&json!({"reason": "timeout"}));
            let fault = Fault::new(FaultKind::Timeout, "the server did not respond in time");
            self.finish_call(key, fault.with_data(data).into(), out);
        }
    }

    /// Fails a call whose channel broke, unless it has finished.
    pub fn fail_call(&mut self, call: CallKey, fault: Fault, out: &mut Outbox) {
        self.finish_call(call, fault.into(), out);
    }

    /// Closes the connection and fails every call with `fault`.
    pub fn close(&mut self, fault: Fault, out: &mut Outbox) {
        self.state = ConnectionState::Closed;
        self.withdraw_all_input_requests(out);
        for call in self.calls.keys() {
            self.finish_call(call, fault.clone().into(), out);
        }
    }

    /// Finishes a call with its outcome.
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
