//! Calls in flight: ids, deadlines, progress.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::Now;
use crate::model::Level;
use crate::revision::Rules;
use crate::wire::Id;

/// A call of this connection. Outcomes are reported under our own key, never under the client's id: ids
/// are only echoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u64);

/// What is answered when the call is done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    /// The operation's own result.
    Plain,
    /// A tool's result: failures may be told inside.
    Tool,
    /// The session watches this resource from now on.
    Watch(String),
    /// The session watches this resource no longer.
    Unwatch(String),
    /// A stream of notifications is opened.
    Listen,
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: Id,
    pub(super) batch: Option<u64>,
    pub(super) rules: &'static Rules,
    pub(super) purpose: Purpose,
    pub(super) progress_token: Option<String>,
    pub(super) last_progress: f64,
    pub(super) log: Option<Level>,
    /// Whether it may be cancelled: all but the handshake may.
    pub(super) cancellable: bool,
    /// What was asked, for observers.
    pub(super) method: &'static str,
    pub(super) started: Now,
    /// When it has been silent for too long; moved by signs of progress.
    pub(super) idle_end: Now,
    /// When it has taken too long at all.
    pub(super) total_end: Now,
    /// Questions that the client has not answered; while there are any, the client is waited for.
    pub(super) open_asks: usize,
}

impl Pending {
    fn deadline(&self) -> Option<Now> {
        (self.open_asks == 0).then(|| self.idle_end.min(self.total_end))
    }
}

/// The calls in flight, by our key and by the client's id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u64,
    by_key: BTreeMap<CallKey, Pending>,
    by_id: BTreeMap<Id, CallKey>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn is_in_flight(&self, id: &Id) -> bool {
        self.by_id.contains_key(id)
    }

    pub(super) fn insert(&mut self, pending: Pending) -> CallKey {
        self.last += 1;
        let key = CallKey(self.last);
        self.by_id.insert(pending.id.clone(), key);
        self.by_key.insert(key, pending);
        key
    }

    pub(super) fn get_mut(&mut self, key: CallKey) -> Option<&mut Pending> {
        self.by_key.get_mut(&key)
    }

    pub(super) fn remove(&mut self, key: CallKey) -> Option<Pending> {
        let pending = self.by_key.remove(&key)?;
        self.by_id.remove(&pending.id);
        Some(pending)
    }

    /// The call with the client's id, unless it must not be cancelled.
    pub(super) fn cancellable(&self, id: &Id) -> Option<CallKey> {
        let key = *self.by_id.get(id)?;
        self.by_key.get(&key)?.cancellable.then_some(key)
    }

    pub(super) fn keys(&self) -> Vec<CallKey> {
        self.by_key.keys().copied().collect()
    }

    pub(super) fn deadline(&self) -> Option<Now> {
        self.by_key.values().filter_map(Pending::deadline).min()
    }

    /// The calls whose time is over, oldest first.
    pub(super) fn expired(&self, now: Now) -> Vec<CallKey> {
        let over = |pending: &Pending| pending.deadline().is_some_and(|deadline| deadline <= now);
        self.by_key.iter().filter(|(_, pending)| over(pending)).map(|(key, _)| *key).collect()
    }
}
