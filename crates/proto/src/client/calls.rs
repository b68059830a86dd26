//! Calls that are not done: what each expects, and how long it may take.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{CallKey, CallOptions, ClientLimits};
use crate::model::{ClientCapabilities, Level, ListKind, TaskPreference};
use crate::monotonic_map::MonotonicMap;
use crate::operation::Operation;
use crate::server::Now;

/// What the answer to a call is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedResult {
    /// The answer that opens the conversation.
    Opening,
    /// Nothing in particular.
    Nothing,
    /// Who the server is.
    Server,
    /// A page of a list.
    Page(ListKind),
    /// A page of what is in a directory.
    Directory,
    /// One skill.
    Skill,
    /// A tool's result, or a task.
    Tool,
    /// A resource's contents.
    Contents,
    /// A rendered prompt.
    Prompt,
    /// A result that is passed on as it is.
    Other,
    /// An acknowledgement, and in the end an empty result.
    Listen,
    /// How a task stands.
    Task,
    /// How a cancelled task stands, where that is told.
    CancelledTask,
    /// What a task's call came to.
    TaskResult,
    /// A page of tasks.
    Tasks,
}

impl ExpectedResult {
    /// What the answer to an operation is.
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

    /// Whether the answer may be a question.
    pub(super) fn may_require_input(self) -> bool {
        matches!(self, Self::Tool | Self::Contents | Self::Prompt)
    }

    /// Whether the server may ask something on its behalf before it answers.
    pub(super) fn may_send_input_requests(self) -> bool {
        self.may_require_input() || self == Self::TaskResult
    }
}

/// A call that is not done.
#[derive(Debug)]
pub(super) struct InFlightCall {
    pub(super) expected: ExpectedResult,
    /// Its method, as it is sent.
    pub(super) method: &'static str,
    /// The tool, resource, prompt or task that it is about.
    pub(super) subject: String,
    pub(super) capabilities: Arc<ClientCapabilities>,
    pub(super) task_preference: TaskPreference,
    pub(super) log: Option<Level>,
    pub(super) progress: bool,
    pub(super) last_progress: f64,
    /// Whether it was sent; otherwise it waits for the handshake.
    pub(super) is_sent: bool,
    /// Whether it is a listener that was acknowledged.
    pub(super) is_listening: bool,
    /// Questions of the server that wait for answers; while there are any, the silence is ours.
    pub(super) open_input_requests: usize,
    idle_timeout: Duration,
    idle_deadline: Now,
    total_deadline: Now,
}

impl InFlightCall {
    /// A call that is about nothing in particular.
    pub(super) fn new(
        expect: ExpectedResult,
        method: &'static str,
        limits: &ClientLimits,
        now: Now,
    ) -> Self {
        Self::with_capabilities(expect, method, Arc::default(), limits, now)
    }

    /// A call of this operation and on these terms.
    pub(super) fn for_request(
        operation: &Operation,
        terms: &CallOptions,
        limits: &ClientLimits,
        now: Now,
    ) -> Self {
        let capabilities = Arc::clone(&terms.capabilities);
        let mut pending = Self::with_capabilities(
            ExpectedResult::for_operation(operation),
            operation.method(),
            capabilities,
            limits,
            now,
        );
        pending.subject = operation.target().to_string();
        pending.task_preference = terms.task_preference;
        pending.log = terms.log_level;
        pending.progress = terms.progress;
        pending.idle_timeout = terms.idle_timeout.unwrap_or(pending.idle_timeout);
        pending.idle_deadline = now + pending.idle_timeout;
        if let Some(total) = terms.total_timeout {
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
            idle_timeout: idle,
            idle_deadline: now + idle,
            total_deadline: now + total,
        }
    }

    /// Takes a sign of life.
    pub(super) fn reset_idle_deadline(&mut self, now: Now) {
        self.idle_deadline = now + self.idle_timeout;
    }

    /// An acknowledged listener may stay open for as long as it likes.
    pub(super) fn deadline(&self) -> Option<Now> {
        match (self.is_listening, self.open_input_requests) {
            (true, _) => None,
            (false, 0) => Some(self.idle_deadline.min(self.total_deadline)),
            (false, _) => Some(self.total_deadline),
        }
    }
}

/// The calls that are not done.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    open: MonotonicMap<CallKey, InFlightCall>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Counts on from where another conversation on the same channel ended.
    pub(super) fn continue_after(&mut self, earlier: &Self) {
        self.last = self.last.max(earlier.last);
    }

    /// Counts on from this number.
    pub(super) fn continue_after_number(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    /// A key that no call ever had.
    pub(super) fn mint(&mut self) -> CallKey {
        self.last += 1;
        CallKey(self.last)
    }

    /// Whether a call with this number was ever made.
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

    /// The only call that is like this, if there is exactly one.
    pub(super) fn single_matching(&self, is: impl Fn(&InFlightCall) -> bool) -> Option<CallKey> {
        let mut alike = self.open.iter().filter(|(_, pending)| is(pending)).map(|(key, _)| key);
        alike.next().filter(|_| alike.next().is_none())
    }

    pub(super) fn deadline(&self) -> Option<Now> {
        self.open.iter().filter_map(|(_, pending)| pending.deadline()).min()
    }

    /// The calls whose time is over, oldest first.
    pub(super) fn expired_keys(&self, now: Now) -> Vec<CallKey> {
        let over =
            |pending: &InFlightCall| pending.deadline().is_some_and(|deadline| deadline <= now);
        self.open.iter().filter(|(_, pending)| over(pending)).map(|(key, _)| key).collect()
    }
}
