//! A state in memory, which lives as long as the process. Operations wait only for a short lock.

mod entries;
mod logs;

use crate::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::topics::Topics;
use super::{Condition, LogRetention, Namespace, Result, StateEntry, StateError, StateLimits};
use entries::MemoryEntries;
use logs::Logs;

/// How many expired values, and how many expired logs, are deleted with every write. More than one, so that they are
/// deleted faster than they are added.
const SWEPT_PER_WRITE: usize = 8;
/// The same when there is no room.
const SWEPT_WHEN_FULL: usize = 1024;

/// Longer than any process lives, for times that the clock cannot represent.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// All data of the state.
#[derive(Debug)]
pub(super) struct MemoryState {
    limits: StateLimits,
    data: Mutex<MemoryData>,
    topics: Arc<Topics>,
}

#[derive(Debug)]
struct MemoryData {
    entries: MemoryEntries,
    logs: Logs,
    quota: ByteQuota,
}

/// The bytes in use and their limit.
#[derive(Debug)]
struct ByteQuota {
    used: usize,
    max: usize,
}

impl ByteQuota {
    fn has_room(&self, bytes: usize) -> bool {
        self.used.saturating_add(bytes) <= self.max
    }

    fn take(&mut self, bytes: usize) {
        self.used = self.used.saturating_add(bytes);
    }

    fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }

    fn full_error(&self) -> StateError {
        StateError::Full { kind: "bytes", max: self.max }
    }
}

impl MemoryState {
    pub(super) fn new(limits: StateLimits) -> Self {
        let room = ByteQuota { used: 0, max: limits.bytes };
        let kept =
            MemoryData { entries: MemoryEntries::default(), logs: Logs::default(), quota: room };
        Self { limits, data: Mutex::new(kept), topics: Arc::new(Topics::new(limits)) }
    }

    pub(super) fn topics(&self) -> &Arc<Topics> {
        &self.topics
    }

    pub(super) fn get(&self, space: Namespace, key: &str) -> Option<StateEntry> {
        let now = Instant::now();
        self.data().entries.get(space, key, now)
    }

    pub(super) fn write(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        value: &Bytes,
        ttl: Option<Duration>,
    ) -> Result<Option<u64>> {
        let now = Instant::now();
        let mut kept = self.data();
        kept.sweep(now, SWEPT_PER_WRITE);
        let found = kept.entries.version(space, key, now);
        if !condition.holds(found) {
            return Ok(None);
        }
        let most = self.limits.entries;
        if !kept.entries.has_room(space, key, value.len(), most, &kept.quota) {
            kept.sweep(now, SWEPT_WHEN_FULL);
        }
        let MemoryData { entries, quota: room, .. } = &mut *kept;
        if !entries.contains(space, key) && entries.len() >= most {
            return Err(StateError::Full { kind: "values and leases", max: most });
        }
        if !entries.has_room(space, key, value.len(), most, room) {
            return Err(room.full_error());
        }
        let expires = ttl.map(|ttl| deadline(now, ttl));
        // Copied, since it may be a small slice of a large buffer that it would keep alive.
        let value = Bytes::copy_from_slice(value);
        Ok(Some(entries.insert(space, key, value, expires, room)))
    }

    pub(super) fn touch(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
    ) -> bool {
        let now = Instant::now();
        let mut kept = self.data();
        kept.sweep(now, SWEPT_PER_WRITE);
        let found = kept.entries.version(space, key, now);
        let is_there = found.is_some() && condition.holds(found);
        if is_there {
            kept.entries.prolong(space, key, ttl.map(|ttl| deadline(now, ttl)));
        }
        is_there
    }

    pub(super) fn remove(&self, space: Namespace, key: &str, condition: Condition) -> bool {
        let now = Instant::now();
        let mut kept = self.data();
        kept.sweep(now, SWEPT_PER_WRITE);
        let found = kept.entries.version(space, key, now);
        let is_there = found.is_some() && condition.holds(found);
        if is_there {
            let MemoryData { entries, quota: room, .. } = &mut *kept;
            entries.remove(space, key, room);
        }
        is_there
    }

    pub(super) fn append(&self, log: &str, entry: &Bytes, keep: LogRetention) -> Result<u64> {
        let now = Instant::now();
        let mut kept = self.data();
        kept.sweep(now, SWEPT_PER_WRITE);
        let cost = logs::cost(entry.len());
        if !kept.quota.has_room(cost) {
            kept.sweep(now, SWEPT_WHEN_FULL);
        }
        let MemoryData { logs, quota: room, .. } = &mut *kept;
        if !room.has_room(cost) {
            return Err(room.full_error());
        }
        if !logs.ensure(log, now, self.limits.logs) {
            return Err(StateError::Full { kind: "logs", max: self.limits.logs });
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
        self.data().logs.read_after(log, after, most, now)
    }

    pub(super) fn remove_log(&self, log: &str) -> bool {
        let now = Instant::now();
        let MemoryData { logs, quota: room, .. } = &mut *self.data();
        logs.remove(log, now, room)
    }

    /// The number of stored values and leases, expired ones included, and the bytes of everything.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        let kept = self.data();
        (kept.entries.len(), kept.quota.used)
    }

    fn data(&self) -> MutexGuard<'_, MemoryData> {
        self.data.lock()
    }
}

impl MemoryData {
    fn sweep(&mut self, now: Instant, most: usize) {
        self.entries.sweep(now, most, &mut self.quota);
        self.logs.sweep(now, most, &mut self.quota);
    }
}

fn deadline(now: Instant, ttl: Duration) -> Instant {
    now.checked_add(ttl).unwrap_or_else(|| now + FOREVER)
}
