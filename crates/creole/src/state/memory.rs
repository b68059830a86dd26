//! A state in memory, which lives as long as the process. Operations wait only for a short lock.

mod entries;
mod logs;

use crate::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::Bytes;

use super::topics::Topics;
use super::{Condition, LogRetention, Namespace, Result, StateError, StateLimits, StoredEntry};
use entries::MemoryEntries;
use logs::Logs;

/// How many expired values, and how many expired logs, are deleted with every write. More than one, so that they are
/// deleted faster than they are added.
const SWEPT_PER_WRITE: usize = 8;
/// The same when there is no room.
const SWEPT_WHEN_FULL: usize = 1024;

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
        let quota = ByteQuota { used: 0, max: limits.bytes };
        let kept = MemoryData { entries: MemoryEntries::default(), logs: Logs::default(), quota };
        Self { limits, data: Mutex::new(kept), topics: Arc::new(Topics::new(limits)) }
    }

    pub(super) fn topics(&self) -> &Arc<Topics> {
        &self.topics
    }

    pub(super) fn get(&self, space: Namespace, key: &str, now: Duration) -> Option<StoredEntry> {
        self.data().entries.get(space, key, now)
    }

    pub(super) fn write(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        value: &Bytes,
        ttl: Option<Duration>,
        now: Duration,
    ) -> Result<Option<u64>> {
        let mut data = self.data();
        data.sweep(now, SWEPT_PER_WRITE);
        let found = data.entries.version(space, key, now);
        if !condition.matches(found) {
            return Ok(None);
        }
        let max = self.limits.entries;
        if !data.entries.has_room(space, key, value.len(), max, &data.quota) {
            data.sweep(now, SWEPT_WHEN_FULL);
        }
        let MemoryData { entries, quota, .. } = &mut *data;
        if !entries.contains(space, key) && entries.len() >= max {
            return Err(StateError::Full { kind: "values and leases", max });
        }
        if !entries.has_room(space, key, value.len(), max, quota) {
            return Err(quota.full_error());
        }
        let expires = ttl.map(|ttl| now.saturating_add(ttl));
        // Copied, since it may be a small slice of a large buffer that it would keep alive.
        let value = Bytes::copy_from_slice(value);
        Ok(Some(entries.insert(space, key, value, expires, quota)))
    }

    pub(super) fn touch(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
        now: Duration,
    ) -> bool {
        let mut data = self.data();
        data.sweep(now, SWEPT_PER_WRITE);
        let found = data.entries.version(space, key, now);
        let exists = found.is_some() && condition.matches(found);
        if exists {
            data.entries.prolong(space, key, ttl.map(|ttl| now.saturating_add(ttl)));
        }
        exists
    }

    pub(super) fn remove(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        now: Duration,
    ) -> bool {
        let mut data = self.data();
        data.sweep(now, SWEPT_PER_WRITE);
        let found = data.entries.version(space, key, now);
        let exists = found.is_some() && condition.matches(found);
        if exists {
            let MemoryData { entries, quota, .. } = &mut *data;
            entries.remove(space, key, quota);
        }
        exists
    }

    pub(super) fn append(
        &self,
        log: &str,
        entry: &Bytes,
        keep: LogRetention,
        now: Duration,
    ) -> Result<u64> {
        let mut data = self.data();
        data.sweep(now, SWEPT_PER_WRITE);
        let cost = logs::cost(entry.len());
        if !data.quota.has_room(cost) {
            data.sweep(now, SWEPT_WHEN_FULL);
        }
        let MemoryData { logs, quota, .. } = &mut *data;
        if !quota.has_room(cost) {
            return Err(quota.full_error());
        }
        if !logs.ensure(log, now, self.limits.logs) {
            return Err(StateError::Full { kind: "logs", max: self.limits.logs });
        }
        let entry = Bytes::copy_from_slice(entry);
        Ok(logs.append(log, entry, keep.entries, (now, now.saturating_add(keep.ttl)), quota))
    }

    pub(super) fn read_after(
        &self,
        log: &str,
        after: u64,
        max: usize,
        now: Duration,
    ) -> Result<Vec<(u64, Bytes)>> {
        self.data().logs.read_after(log, after, max, now)
    }

    pub(super) fn remove_log(&self, log: &str, now: Duration) -> bool {
        let MemoryData { logs, quota, .. } = &mut *self.data();
        logs.remove(log, now, quota)
    }

    /// The number of stored values and leases, expired ones included, and the bytes of everything.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        let data = self.data();
        (data.entries.len(), data.quota.used)
    }

    fn data(&self) -> MutexGuard<'_, MemoryData> {
        self.data.lock()
    }
}

impl MemoryData {
    fn sweep(&mut self, now: Duration, max: usize) {
        self.entries.sweep(now, max, &mut self.quota);
        self.logs.sweep(now, max, &mut self.quota);
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::super::clock::{Clock, ManualClock};
    use super::super::{Backend, State};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_hundred_thousand_short_lived_values_use_little_space() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (limits, clock) = (StateLimits::default(), ManualClock::start());
            let memory = Arc::new(MemoryState::new(limits));
            let backend = Backend::Memory(Arc::clone(&memory));
            let state = State::new(backend, limits, Clock::Manual(clock.clone()));
            let mut max = 0;
            for number in 0..100_000 {
                state
                    .put(&format!("key {number}"), Bytes::from("short"), Some(SECOND))
                    .await
                    .unwrap();
                if number % 1000 == 0 {
                    max = max.max(memory.sizes().0);
                    clock.advance(SECOND / 10);
                }
            }
            assert!(max < 12_000, "{max} values are kept, and 10 000 have not expired");
            clock.advance(SECOND);
            for number in 0..2000 {
                state.touch(&number.to_string(), None).await.unwrap();
            }
            assert_eq!(memory.sizes(), (0, 0));
        });
    }
}
