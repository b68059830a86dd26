//! The server's calls in flight: ids, deadlines, progress.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Now, ServerLimits};
use crate::model::Level;
use crate::revision::Rules;
use crate::wire::Id;

/// The key of a call on this connection. Outcomes are reported under this key, not under the client's id. The id is
/// only echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// The effect of a call's outcome on the connection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallPurpose {
    /// The response is the operation's result.
    Plain,
    /// The response is a tool result, which may report a failure.
    Tool,
    /// The session is subscribed to this resource.
    Subscribe(String),
    /// The session's subscription to this resource ends.
    Unsubscribe(String),
    /// A stream of notifications is opened.
    Listen,
    /// The response is the result of this task's call. It may report a failure, and its deadline is longer.
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
    /// Whether it may be cancelled. Only the handshake may not
    /// (2025-11-25 basic/utilities/cancellation, behavior requirements).
    pub(super) is_cancellable: bool,
    /// Its method, for observers.
    pub(super) method: &'static str,
    pub(super) started: Now,
    /// The idle deadline. Progress extends it.
    pub(super) idle_deadline: Now,
    /// The deadline of the whole call.
    pub(super) total_deadline: Now,
    /// Number of pending input requests. While there are any, the client's deadline applies.
    pub(super) open_input_requests: usize,
}

impl InFlightCall {
    /// The task that messages of this call belong to (2025-11-25 schema, `RelatedTaskMetadata`).
    pub(super) fn related_task(&self) -> Option<&str> {
        match &self.purpose {
            CallPurpose::TaskResult(id) => Some(id),
            _ => None,
        }
    }

    /// Restarts both deadlines. A request for the result of a task waits until the task ends
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
/// There are few at a time, mostly one. A list that keeps its capacity is faster than a tree that is rebuilt with every
/// message. The limit on calls bounds the search by id.
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

    /// Whether a call in flight may start following a task: a tool call that may create one, or a listener.
    pub(super) fn may_create_task(&self) -> bool {
        let may =
            |purpose: &CallPurpose| matches!(purpose, CallPurpose::Tool | CallPurpose::Listen);
        self.open.iter().any(|(_, pending)| may(&pending.purpose))
    }

    pub(super) fn insert(&mut self, pending: InFlightCall) -> CallKey {
        self.last += 1;
        let key = CallKey(self.last);
        if self.open.capacity() == 0 {
            // Most HTTP connections carry a single call.
            self.open.reserve_exact(1);
        }
        self.open.push((key, pending));
        key
    }

    pub(super) fn get(&self, key: CallKey) -> Option<&InFlightCall> {
        self.position(key).map(|index| &self.open[index].1)
    }

    pub(super) fn get_mut(&mut self, key: CallKey) -> Option<&mut InFlightCall> {
        let index = self.position(key)?;
        Some(&mut self.open[index].1)
    }

    pub(super) fn remove(&mut self, key: CallKey) -> Option<InFlightCall> {
        let index = self.position(key)?;
        Some(self.open.remove(index).1)
    }

    /// The call with the client's id, unless it is not cancellable.
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

    /// The calls whose deadline has passed, oldest first.
    pub(super) fn expired_keys(&self, now: Now) -> Vec<CallKey> {
        let over =
            |pending: &InFlightCall| pending.deadline().is_some_and(|deadline| deadline <= now);
        self.open.iter().filter(|(_, pending)| over(pending)).map(|(key, _)| *key).collect()
    }

    /// Keys only grow, so the list is sorted by key.
    fn position(&self, key: CallKey) -> Option<usize> {
        self.open.binary_search_by_key(&key, |(key, _)| *key).ok()
    }
}
