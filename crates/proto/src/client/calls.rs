//! The client's calls in flight: the expected result and the deadlines of each.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{CallKey, CallOptions, ClientLimits};
use crate::model::{ClientCapabilities, Level, ListKind, TaskPreference};
use crate::monotonic_map::MonotonicMap;
use crate::operation::Operation;
use crate::server::Now;

/// The expected shape of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedResult {
    /// The result that opens the connection.
    Opening,
    /// Any result; its members are ignored.
    Nothing,
    /// Identity and capabilities of the server.
    Server,
    /// A page of a list.
    Page(ListKind),
    /// A page of a directory's direct children.
    Directory,
    /// One skill.
    Skill,
    /// A tool's result, or a task.
    Tool,
    /// A resource's contents.
    Contents,
    /// A rendered prompt.
    Prompt,
    /// A result that is relayed unchanged.
    Other,
    /// An acknowledgement, and at the end an empty result (2026-07-28 schema, `SubscriptionsListenResult`).
    Listen,
    /// The state of a task.
    Task,
    /// The state of a cancelled task, in revisions that return it (2025-11-25 schema, `CancelTaskResult`).
    CancelledTask,
    /// The result of a task's call.
    TaskResult,
    /// A page of tasks.
    Tasks,
}

impl ExpectedResult {
    /// The expected result of an operation.
    pub(super) fn for_operation(operation: &Operation) -> Self {
        match operation {
            Operation::Discover => Self::Server,
            Operation::List(kind, _) => Self::Page(*kind),
            Operation::CallTool { .. } => Self::Tool,
            Operation::ReadResource { .. } => Self::Contents,
            Operation::ReadDirectory { .. } => Self::Directory,
            Operation::GetSkill { .. } => Self::Skill,
            Operation::GetPrompt { .. } => Self::Prompt,
            Operation::Complete(_) => Self::Other,
            Operation::Subscribe { .. }
            | Operation::Unsubscribe { .. }
            | Operation::UpdateTask { .. } => Self::Nothing,
            Operation::Listen(_) => Self::Listen,
            Operation::GetTask { .. } => Self::Task,
            Operation::TaskResult { .. } => Self::TaskResult,
            Operation::ListTasks(_) => Self::Tasks,
            Operation::CancelTask { .. } => Self::CancelledTask,
        }
    }

    /// Whether the result may be an input request (2026-07-28 basic/patterns/mrtr, supported requests).
    pub(super) fn may_require_input(self) -> bool {
        matches!(self, Self::Tool | Self::Contents | Self::Prompt)
    }

    /// Whether the server may send input requests on behalf of the call.
    pub(super) fn may_send_input_requests(self) -> bool {
        self.may_require_input() || self == Self::TaskResult
    }
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct InFlightCall {
    pub(super) expected: ExpectedResult,
    /// Its method on the wire.
    pub(super) method: &'static str,
    /// The tool, resource, prompt or task that it addresses.
    pub(super) subject: String,
    pub(super) capabilities: Arc<ClientCapabilities>,
    pub(super) task_preference: TaskPreference,
    pub(super) log: Option<Level>,
    pub(super) progress: bool,
    pub(super) last_progress: f64,
    /// Whether it was sent; otherwise it waits for the handshake.
    pub(super) is_sent: bool,
    /// Whether it is an acknowledged listener.
    pub(super) is_listening: bool,
    /// Number of pending input requests. While there are any, the server waits for this side.
    pub(super) open_input_requests: usize,
    /// Since when the call is held: this side has to do something before the server can process it.
    held_since: Option<Now>,
    idle_timeout: Duration,
    idle_deadline: Now,
    total_deadline: Now,
}

impl InFlightCall {
    /// A call without a subject.
    pub(super) fn new(
        expect: ExpectedResult,
        method: &'static str,
        limits: &ClientLimits,
        now: Now,
    ) -> Self {
        Self::with_capabilities(expect, method, Arc::default(), limits, now)
    }

    /// A call of this operation with these options.
    pub(super) fn for_request(
        operation: &Operation,
        options: &CallOptions,
        limits: &ClientLimits,
        now: Now,
    ) -> Self {
        let capabilities = Arc::clone(&options.capabilities);
        let mut pending = Self::with_capabilities(
            ExpectedResult::for_operation(operation),
            operation.method(),
            capabilities,
            limits,
            now,
        );
        pending.subject = operation.target().to_string();
        pending.task_preference = options.task_preference;
        pending.log = options.log_level;
        pending.progress = options.progress;
        pending.idle_timeout = options.idle_timeout.unwrap_or(pending.idle_timeout);
        pending.idle_deadline = now + pending.idle_timeout;
        if let Some(total) = options.total_timeout {
            pending.total_deadline = now + total;
        }
        pending
    }

    fn with_capabilities(
        expect: ExpectedResult,
        method: &'static str,
        capabilities: Arc<ClientCapabilities>,
        limits: &ClientLimits,
        now: Now,
    ) -> Self {
        let (idle, total) = match expect {
            ExpectedResult::Opening => (limits.handshake_timeout, limits.handshake_timeout),
            ExpectedResult::TaskResult => (limits.task_result_timeout, limits.task_result_timeout),
            _ => (limits.call_idle_timeout, limits.call_total_timeout),
        };
        Self {
            expected: expect,
            method,
            subject: String::new(),
            capabilities,
            task_preference: TaskPreference::Never,
            log: None,
            progress: false,
            last_progress: f64::NEG_INFINITY,
            is_sent: false,
            is_listening: false,
            open_input_requests: 0,
            held_since: None,
            idle_timeout: idle,
            idle_deadline: now + idle,
            total_deadline: now + total,
        }
    }

    /// Restarts the idle deadline after a message about the call.
    pub(super) fn reset_idle_deadline(&mut self, now: Now) {
        self.idle_deadline = now + self.idle_timeout;
    }

    /// Holds the call, or ends that. The time between does not count.
    pub(super) fn set_held(&mut self, is_held: bool, now: Now) {
        match (is_held, self.held_since) {
            (true, None) => self.held_since = Some(now),
            (false, Some(since)) => {
                let held = now.saturating_sub(since);
                self.held_since = None;
                self.idle_deadline += held;
                self.total_deadline += held;
            }
            _ => {}
        }
    }

    /// The deadline of the call. An acknowledged listener and a held call have none.
    pub(super) fn deadline(&self) -> Option<Now> {
        match (self.is_listening || self.held_since.is_some(), self.open_input_requests) {
            (true, _) => None,
            (false, 0) => Some(self.idle_deadline.min(self.total_deadline)),
            (false, _) => Some(self.total_deadline),
        }
    }
}

/// The calls in flight.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    open: MonotonicMap<CallKey, InFlightCall>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Continues the numbers of another connection on the same channel.
    pub(super) fn continue_after(&mut self, earlier: &Self) {
        self.last = self.last.max(earlier.last);
    }

    /// Continues after this number.
    pub(super) fn continue_after_number(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// A key that no call has had.
    pub(super) fn mint(&mut self) -> CallKey {
        self.last += 1;
        CallKey(self.last)
    }

    /// Whether a call has had this number.
    pub(super) fn was_minted(&self, number: u64) -> bool {
        (1..=self.last).contains(&number)
    }

    pub(super) fn insert(&mut self, key: CallKey, pending: InFlightCall) {
        self.open.insert(key, pending);
    }

    pub(super) fn get(&self, key: CallKey) -> Option<&InFlightCall> {
        self.open.get(key)
    }

    pub(super) fn get_mut(&mut self, key: CallKey) -> Option<&mut InFlightCall> {
        self.open.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: CallKey) -> Option<InFlightCall> {
        self.open.remove(key)
    }

    pub(super) fn keys(&self) -> Vec<CallKey> {
        self.open.iter().map(|(key, _)| key).collect()
    }

    /// The only matching call, if there is exactly one.
    pub(super) fn single_matching(&self, is: impl Fn(&InFlightCall) -> bool) -> Option<CallKey> {
        let mut alike = self.open.iter().filter(|(_, pending)| is(pending)).map(|(key, _)| key);
        alike.next().filter(|_| alike.next().is_none())
    }

    pub(super) fn deadline(&self) -> Option<Now> {
        self.open.iter().filter_map(|(_, pending)| pending.deadline()).min()
    }

    /// The calls whose deadline has passed, oldest first.
    pub(super) fn expired_keys(&self, now: Now) -> Vec<CallKey> {
        let over =
            |pending: &InFlightCall| pending.deadline().is_some_and(|deadline| deadline <= now);
        self.open.iter().filter(|(_, pending)| over(pending)).map(|(key, _)| key).collect()
    }
}
