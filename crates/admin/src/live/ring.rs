//! The last calls, and those that run.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use creole::internal::sync::Mutex;
use creole::internal::telemetry::{CallRecord, Detail};

use crate::live::call::{CallSteps, CallSummary};

/// How many ended calls are kept.
pub(crate) const MAX_CALLS: usize = 2000;
/// How many running calls are shown.
const MAX_ACTIVE: usize = 10_000;
/// A running call is shown once it lasts this long.
const SHOWN_AFTER: Duration = Duration::from_millis(50);

/// The last calls and the running ones.
#[derive(Default)]
pub(crate) struct CallRing {
    calls: Mutex<RecordedCalls>,
}

#[derive(Default)]
struct RecordedCalls {
    /// The number of the next call that ends.
    next: u64,
    /// The ended calls, the newest last.
    ended: VecDeque<Arc<EndedCall>>,
    active: HashMap<u128, Arc<CallRecord>>,
}

/// An ended call. A record that holds messages is not kept: they must go when their capture ends.
enum EndedCall {
    Record(Arc<CallRecord>),
    Steps(u128, Box<CallSteps>),
}

impl EndedCall {
    fn id(&self) -> u128 {
        match self {
            Self::Record(record) => record.id,
            Self::Steps(id, _) => *id,
        }
    }

    fn summary(&self) -> CallSummary {
        match self {
            Self::Record(record) => CallSummary::from(&**record),
            Self::Steps(_, steps) => steps.summary.clone(),
        }
    }
}

/// Where a reader of new calls has come to.
#[derive(Default)]
pub(crate) struct Position {
    next: u64,
    /// The running calls that were shown.
    shown: Vec<u128>,
}

/// New calls since a position.
pub(crate) struct NewCalls {
    /// The calls, oldest first.
    pub(crate) calls: Vec<CallSummary>,
    /// How many were dropped, because the reader was slow.
    pub(crate) missed: u64,
}

impl CallRing {
    /// A call has started.
    pub(crate) fn start(&self, record: &Arc<CallRecord>) {
        let mut calls = self.calls.lock();
        if calls.active.len() < MAX_ACTIVE {
            calls.active.insert(record.id, Arc::clone(record));
        }
    }

    /// A call has ended.
    pub(crate) fn end(&self, record: &Arc<CallRecord>) {
        let ended = match record.detail() {
            Detail::Frames => EndedCall::Steps(record.id, Box::new(CallSteps::from(&**record))),
            _ => EndedCall::Record(Arc::clone(record)),
        };
        let mut calls = self.calls.lock();
        calls.active.remove(&record.id);
        let oldest = (calls.ended.len() >= MAX_CALLS).then(|| calls.ended.pop_front());
        calls.ended.push_back(Arc::new(ended));
        calls.next += 1;
        drop(calls);
        // Freed without the lock.
        drop(oldest);
    }

    /// The calls that match, the newest first, after this many.
    pub(crate) fn find(
        &self,
        matches: impl Fn(&CallSummary) -> bool,
        skip: usize,
        limit: usize,
    ) -> (Vec<CallSummary>, bool) {
        let (active, ended) = {
            let calls = self.calls.lock();
            let active: Vec<_> = calls.active.values().map(Arc::clone).collect();
            (active, calls.ended.iter().rev().map(Arc::clone).collect::<Vec<_>>())
        };
        let mut active: Vec<CallSummary> =
            active.iter().map(|record| CallSummary::from(&**record)).collect();
        active.sort_by(|one, other| other.started.cmp(&one.started));
        let all = active.into_iter().chain(ended.iter().map(|call| call.summary()));
        let mut found = all.filter(matches).skip(skip);
        let page: Vec<_> = found.by_ref().take(limit).collect();
        let has_more = found.next().is_some();
        (page, has_more)
    }

    /// One call.
    pub(crate) fn call(&self, id: u128) -> Option<CallSteps> {
        let calls = self.calls.lock();
        if let Some(record) = calls.active.get(&id).map(Arc::clone) {
            drop(calls);
            return Some(CallSteps::from(&*record));
        }
        let call = calls.ended.iter().rev().find(|call| call.id() == id).map(Arc::clone)?;
        drop(calls);
        Some(match &*call {
            EndedCall::Record(record) => CallSteps::from(&**record),
            EndedCall::Steps(_, steps) => CallSteps::clone(steps),
        })
    }

    /// The position after the last call.
    pub(crate) fn position(&self) -> Position {
        Position { next: self.calls.lock().next, shown: Vec::new() }
    }

    /// The calls that ended since the position, and running calls that were not shown.
    pub(crate) fn after(&self, position: &mut Position, limit: usize) -> NewCalls {
        let (active, ended, missed) = {
            let calls = self.calls.lock();
            let first = calls.next - calls.ended.len() as u64;
            let wanted = usize::try_from(calls.next - position.next).unwrap_or(usize::MAX);
            let kept = wanted.min(calls.ended.len()).min(limit);
            let missed = calls.next - position.next - kept as u64;
            debug_assert!(position.next >= first || missed > 0, "what is gone is counted");
            position.next = calls.next;
            let ended: Vec<_> =
                calls.ended.iter().skip(calls.ended.len() - kept).map(Arc::clone).collect();
            position.shown.retain(|id| calls.active.contains_key(id));
            let is_new = |record: &&Arc<CallRecord>| {
                record.duration() >= SHOWN_AFTER && !position.shown.contains(&record.id)
            };
            let active: Vec<_> =
                calls.active.values().filter(is_new).take(limit).map(Arc::clone).collect();
            (active, ended, missed)
        };
        position.shown.extend(active.iter().map(|record| record.id));
        let ended = ended.iter().map(|call| call.summary());
        let active = active.iter().map(|record| CallSummary::from(&**record));
        NewCalls { calls: ended.chain(active).collect(), missed }
    }
}
