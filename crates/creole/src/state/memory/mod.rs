//! A state that lives as long as the process. No call waits for anything but a short lock.

mod entries;
mod logs;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::topics::Topics;
use super::{Condition, Entry, Keep, Limits, Result, Space, StateError};
use entries::Entries;
use logs::Logs;

/// How many values, and how many logs, that are too old are looked for with every write. More than one,
/// so that they go faster than they come.
const SWEPT_PER_WRITE: usize = 8;
/// The same when there is no room left.
const SWEPT_WHEN_FULL: usize = 1024;

/// Longer than any process lives, for ages that the clock cannot add.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Everything, in memory.
#[derive(Debug)]
pub(super) struct Memory {
    limits: Limits,
    kept: Mutex<Kept>,
    topics: Arc<Topics>,
}

#[derive(Debug)]
struct Kept {
    entries: Entries,
    logs: Logs,
    room: Room,
}

/// The bytes that are taken, and how many may be.
#[derive(Debug)]
struct Room {
    taken: usize,
    most: usize,
}

impl Room {
    fn has(&self, bytes: usize) -> bool {
        self.taken.saturating_add(bytes) <= self.most
    }

    fn take(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(bytes);
    }

    fn give_back(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_sub(bytes);
    }

    fn full(&self) -> StateError {
        StateError::Full { what: "bytes", most: self.most }
    }
}

impl Memory {
    pub(super) fn new(limits: Limits) -> Self {
        let room = Room { taken: 0, most: limits.bytes };
        let kept = Kept { entries: Entries::default(), logs: Logs::default(), room };
        Self { limits, kept: Mutex::new(kept), topics: Arc::new(Topics::new(limits)) }
    }

    pub(super) fn topics(&self) -> &Arc<Topics> {
        &self.topics
    }

    pub(super) fn get(&self, space: Space, key: &str) -> Option<Entry> {
        let now = Instant::now();
        self.kept().entries.get(space, key, now)
    }

    pub(super) fn write(
        &self,
        space: Space,
        key: &str,
        condition: Condition,
        value: &Bytes,
        ttl: Option<Duration>,
    ) -> Result<Option<u64>> {
        let now = Instant::now();
        let mut kept = self.kept();
        kept.sweep(now, SWEPT_PER_WRITE);
        let found = kept.entries.version(space, key, now);
        if !condition.holds(found) {
            return Ok(None);
        }
        let most = self.limits.entries;
        if !kept.entries.has_room(space, key, value.len(), most, &kept.room) {
            kept.sweep(now, SWEPT_WHEN_FULL);
        }
        let Kept { entries, room, .. } = &mut *kept;
        if !entries.contains(space, key) && entries.len() >= most {
            return Err(StateError::Full { what: "values and leases", most });
        }
        if !entries.has_room(space, key, value.len(), most, room) {
            return Err(room.full());
        }
        let expires = ttl.map(|ttl| deadline(now, ttl));
        // Copied, since it may be a small part of a large buffer that would be kept with it.
        let value = Bytes::copy_from_slice(value);
        Ok(Some(entries.insert(space, key, value, expires, room)))
    }

    pub(super) fn touch(
        &self,
        space: Space,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
    ) -> bool {
        let now = Instant::now();
        let mut kept = self.kept();
        kept.sweep(now, SWEPT_PER_WRITE);
        let found = kept.entries.version(space, key, now);
        let is_there = found.is_some() && condition.holds(found);
        if is_there {
            kept.entries.prolong(space, key, ttl.map(|ttl| deadline(now, ttl)));
        }
        is_there
    }

    pub(super) fn remove(&self, space: Space, key: &str, condition: Condition) -> bool {
        let now = Instant::now();
        let mut kept = self.kept();
        kept.sweep(now, SWEPT_PER_WRITE);
        let found = kept.entries.version(space, key, now);
        let is_there = found.is_some() && condition.holds(found);
        if is_there {
            let Kept { entries, room, .. } = &mut *kept;
            entries.remove(space, key, room);
        }
        is_there
    }

    pub(super) fn append(&self, log: &str, entry: &Bytes, keep: Keep) -> Result<u64> {
        let now = Instant::now();
        let mut kept = self.kept();
        kept.sweep(now, SWEPT_PER_WRITE);
        let cost = logs::cost(entry.len());
        if !kept.room.has(cost) {
            kept.sweep(now, SWEPT_WHEN_FULL);
        }
        let Kept { logs, room, .. } = &mut *kept;
        if !room.has(cost) {
            return Err(room.full());
        }
        if !logs.make(log, now, self.limits.logs) {
            return Err(StateError::Full { what: "logs", most: self.limits.logs });
        }
        let entry = Bytes::copy_from_slice(entry);
        Ok(logs.append(log, entry, keep.entries, (now, deadline(now, keep.ttl)), room))
    }

    pub(super) fn read_after(
        &self,
        log: &str,
        after: u64,
        most: usize,
    ) -> Result<Vec<(u64, Bytes)>> {
        let now = Instant::now();
        self.kept().logs.read_after(log, after, most, now)
    }

    pub(super) fn remove_log(&self, log: &str) -> bool {
        let now = Instant::now();
        let Kept { logs, room, .. } = &mut *self.kept();
        logs.remove(log, now, room)
    }

    /// How many values and leases are kept, also those that are too old, and the bytes of everything.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        let kept = self.kept();
        (kept.entries.len(), kept.room.taken)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn sweep(&mut self, now: Instant, most: usize) {
        self.entries.sweep(now, most, &mut self.room);
        self.logs.sweep(now, most, &mut self.room);
    }
}

fn deadline(now: Instant, ttl: Duration) -> Instant {
    now.checked_add(ttl).unwrap_or_else(|| now + FOREVER)
}
