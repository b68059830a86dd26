//! Calls that are not done: what each expects, and how long it may take.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{CallKey, Limits, Terms};
use crate::model::{ClientCapabilities, Level, ListKind, Tasking};
use crate::op::Operation;
use crate::rising::Rising;
use crate::server::Now;

/// What the answer to a call is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
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

impl Expect {
    /// What the answer to an operation is.
    pub(super) fn of(operation: &Operation) -> Self {
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
    pub(super) fn may_ask(self) -> bool {
        matches!(self, Self::Tool | Self::Contents | Self::Prompt)
    }

    /// Whether the server may ask something on its behalf before it answers.
    pub(super) fn may_ask_inline(self) -> bool {
        self.may_ask() || self == Self::TaskResult
    }
}

/// A call that is not done.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) expect: Expect,
    /// Its method, as it is sent.
    pub(super) method: &'static str,
    /// The tool, resource, prompt or task that it is about.
    pub(super) subject: String,
    pub(super) capabilities: Arc<ClientCapabilities>,
    pub(super) tasking: Tasking,
    pub(super) log: Option<Level>,
    pub(super) progress: bool,
    pub(super) last_progress: f64,
    /// Whether it was sent; otherwise it waits for the handshake.
    pub(super) sent: bool,
    /// Whether it is a listener that was acknowledged.
    pub(super) listening: bool,
    /// Questions of the server that wait for answers; while there are any, the silence is ours.
    pub(super) questions: usize,
    idle: Duration,
    idle_end: Now,
    total_end: Now,
}

impl Pending {
    /// A call that is about nothing in particular.
    pub(super) fn new(expect: Expect, method: &'static str, limits: &Limits, now: Now) -> Self {
        Self::with(expect, method, Arc::default(), limits, now)
    }

    /// A call of this operation and on these terms.
    pub(super) fn of(operation: &Operation, terms: &Terms, limits: &Limits, now: Now) -> Self {
        let capabilities = Arc::clone(&terms.capabilities);
        let mut pending =
            Self::with(Expect::of(operation), operation.method(), capabilities, limits, now);
        pending.subject = operation.target().to_string();
        pending.tasking = terms.tasking;
        pending.log = terms.log;
        pending.progress = terms.progress;
        pending.idle = terms.idle.unwrap_or(pending.idle);
        pending.idle_end = now + pending.idle;
        if let Some(total) = terms.total {
            pending.total_end = now + total;
        }
        pending
    }

    fn with(
        expect: Expect,
        method: &'static str,
        capabilities: Arc<ClientCapabilities>,
        limits: &Limits,
        now: Now,
    ) -> Self {
        let (idle, total) = match expect {
            Expect::Opening => (limits.opening, limits.opening),
            Expect::TaskResult => (limits.task_result, limits.task_result),
            _ => (limits.call_idle, limits.call_total),
        };
        Self {
            expect,
            method,
            subject: String::new(),
            capabilities,
            tasking: Tasking::Never,
            log: None,
            progress: false,
            last_progress: f64::NEG_INFINITY,
            sent: false,
            listening: false,
            questions: 0,
            idle,
            idle_end: now + idle,
            total_end: now + total,
        }
    }

    /// Takes a sign of life.
    pub(super) fn touch(&mut self, now: Now) {
        self.idle_end = now + self.idle;
    }

    /// An acknowledged listener may stay open for as long as it likes.
    pub(super) fn deadline(&self) -> Option<Now> {
        match (self.listening, self.questions) {
            (true, _) => None,
            (false, 0) => Some(self.idle_end.min(self.total_end)),
            (false, _) => Some(self.total_end),
        }
    }
}

/// The calls that are not done.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    open: Rising<CallKey, Pending>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Counts on from where another conversation on the same channel ended.
    pub(super) fn go_on_after(&mut self, earlier: &Self) {
        self.last = self.last.max(earlier.last);
    }

    /// Counts on from this number.
    pub(super) fn go_on_after_number(&mut self, last: u64) {
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

    pub(super) fn insert(&mut self, key: CallKey, pending: Pending) {
        self.open.insert(key, pending);
    }

    pub(super) fn get(&self, key: CallKey) -> Option<&Pending> {
        self.open.get(key)
    }

    pub(super) fn get_mut(&mut self, key: CallKey) -> Option<&mut Pending> {
        self.open.get_mut(key)
    }

    pub(super) fn remove(&mut self, key: CallKey) -> Option<Pending> {
        self.open.remove(key)
    }

    pub(super) fn keys(&self) -> Vec<CallKey> {
        self.open.iter().map(|(key, _)| key).collect()
    }

    /// The only call that is like this, if there is exactly one.
    pub(super) fn only(&self, is: impl Fn(&Pending) -> bool) -> Option<CallKey> {
        let mut alike = self.open.iter().filter(|(_, pending)| is(pending)).map(|(key, _)| key);
        alike.next().filter(|_| alike.next().is_none())
    }

    pub(super) fn deadline(&self) -> Option<Now> {
        self.open.iter().filter_map(|(_, pending)| pending.deadline()).min()
    }

    /// The calls whose time is over, oldest first.
    pub(super) fn expired(&self, now: Now) -> Vec<CallKey> {
        let over = |pending: &Pending| pending.deadline().is_some_and(|deadline| deadline <= now);
        self.open.iter().filter(|(_, pending)| over(pending)).map(|(key, _)| key).collect()
    }
}
