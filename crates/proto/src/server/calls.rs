//! Calls in flight: ids, deadlines, progress.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Now, ServerLimits};
use crate::model::Level;
use crate::revision::Rules;
use crate::wire::Id;

/// A call of this connection. Outcomes are reported under our own key, never under the client's id: ids
/// are only echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// What is answered when the call is done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallPurpose {
    /// The operation's own result.
    Plain,
    /// A tool's result: failures may be told inside.
    Tool,
    /// The session watches this resource from now on.
    Subscribe(String),
    /// The session watches this resource no longer.
    Unsubscribe(String),
    /// A stream of notifications is opened.
    Listen,
    /// What this task's call came to: failures may be told inside, and it is waited for longer.
    TaskResult(String),
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct InFlightCall {
    pub(super) id: Id,
    pub(super) batch: Option<u64>,
    pub(super) rules: &'static Rules,
    pub(super) purpose: CallPurpose,
    pub(super) progress_token: Option<String>,
    pub(super) last_progress: f64,
    pub(super) log: Option<Level>,
    /// Whether it may be cancelled: all but the handshake may.
    pub(super) is_cancellable: bool,
    /// What was asked, for observers.
    pub(super) method: &'static str,
    pub(super) started: Now,
    /// When it has been silent for too long; moved by signs of progress.
    pub(super) idle_deadline: Now,
    /// When it has taken too long at all.
    pub(super) total_deadline: Now,
    /// Questions that the client has not answered; while there are any, the client is waited for.
    pub(super) open_input_requests: usize,
}

impl InFlightCall {
    /// The task that messages of this call belong to.
    pub(super) fn related_task(&self) -> Option<&str> {
        match &self.purpose {
            CallPurpose::TaskResult(id) => Some(id),
            _ => None,
        }
    }

    /// Gives it all its time again. The result of a task is waited for until the task is over
    /// (2025-11-25 basic/utilities/tasks, result retrieval).
    pub(super) fn restart_deadlines(&mut self, limits: &ServerLimits, now: Now) {
        let (idle, total) = match self.purpose {
            CallPurpose::TaskResult(_) => (limits.task_result_timeout, limits.task_result_timeout),
            _ => (limits.call_idle_timeout, limits.call_total_timeout),
        };
        (self.idle_deadline, self.total_deadline) = (now + idle, now + total);
    }

    fn deadline(&self) -> Option<Now> {
        (self.open_input_requests == 0).then(|| self.idle_deadline.min(self.total_deadline))
    }
}

/// The calls in flight, oldest first.
///
/// There are few at a time, mostly one, so a list that keeps its room beats a tree that is built and taken
/// down with every message; the limit on calls bounds the search by id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    open: Vec<(CallKey, InFlightCall)>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn contains(&self, key: CallKey) -> bool {
        self.position(key).is_some()
    }

    pub(super) fn is_in_flight(&self, id: &Id) -> bool {
        self.open.iter().any(|(_, pending)| pending.id == *id)
    }

    /// Whether somebody may begin to follow a task when an answer is there.
    pub(super) fn may_create_task(&self) -> bool {
        let may =
            |purpose: &CallPurpose| matches!(purpose, CallPurpose::Tool | CallPurpose::Listen);
        self.open.iter().any(|(_, pending)| may(&pending.purpose))
    }

    pub(super) fn insert(&mut self, pending: InFlightCall) -> CallKey {
        self.last += 1;
        let key = CallKey(self.last);
        if self.open.capacity() == 0 {
            // Most connections over HTTP have one call in their life.
            self.open.reserve_exact(1);
        }
        self.open.push((key, pending));
        key
    }

    pub(super) fn get_mut(&mut self, key: CallKey) -> Option<&mut InFlightCall> {
        let place = self.position(key)?;
        Some(&mut self.open[place].1)
    }

    pub(super) fn remove(&mut self, key: CallKey) -> Option<InFlightCall> {
        let place = self.position(key)?;
        Some(self.open.remove(place).1)
    }

    /// The call with the client's id, unless it must not be cancelled.
    pub(super) fn find_cancellable(&self, id: &Id) -> Option<CallKey> {
        let (key, pending) = self.open.iter().find(|(_, pending)| pending.id == *id)?;
        pending.is_cancellable.then_some(*key)
    }

    pub(super) fn keys(&self) -> Vec<CallKey> {
        self.open.iter().map(|(key, _)| *key).collect()
    }

    pub(super) fn deadline(&self) -> Option<Now> {
        self.open.iter().filter_map(|(_, pending)| pending.deadline()).min()
    }

    /// The calls whose time is over, oldest first.
    pub(super) fn expired_keys(&self, now: Now) -> Vec<CallKey> {
        let over =
            |pending: &InFlightCall| pending.deadline().is_some_and(|deadline| deadline <= now);
        self.open.iter().filter(|(_, pending)| over(pending)).map(|(key, _)| *key).collect()
    }

    /// Keys only grow, so the list is sorted by them.
    fn position(&self, key: CallKey) -> Option<usize> {
        self.open.binary_search_by_key(&key, |(key, _)| *key).ok()
    }
}
