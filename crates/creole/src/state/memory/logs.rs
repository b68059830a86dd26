//! Logs in memory. The last number of a log whose entries are all removed is kept until its space is needed, so that a
//! late reader can detect that it missed entries.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{ByteQuota, Result, StateError, StateLimits};

#[derive(Debug, Default)]
pub(super) struct Logs {
    logs: HashMap<Arc<str>, MemoryLog>,
    /// Logs with entries, ordered by the expiry of their last entry.
    live: BTreeMap<(Duration, u64), Arc<str>>,
    /// Logs whose entries have all expired and were deleted, in the same order.
    expired: BTreeMap<(Duration, u64), Arc<str>>,
    last_id: u64,
}

#[derive(Debug)]
struct MemoryLog {
    /// Distinguishes logs with equal times.
    id: u64,
    entries: VecDeque<LogEntry>,
    /// The number of the last entry ever.
    last: u64,
    /// When the last entry expires.
    expires: Duration,
}

#[derive(Debug)]
struct LogEntry {
    entry: Bytes,
    expires: Duration,
}

impl MemoryLog {
    /// The number of expired entries at the front; expiry times never decrease along a log.
    fn expired_count(&self, now: Duration) -> usize {
        self.entries.partition_point(|entry| entry.expires <= now)
    }

    /// The number after which no entry is missing.
    fn resume_after(&self, now: Duration) -> u64 {
        let live = self.entries.len() - self.expired_count(now);
        self.last - u64::try_from(live).unwrap_or(self.last)
    }

    fn clear(&mut self, quota: &mut ByteQuota) {
        for entry in std::mem::take(&mut self.entries) {
            quota.release(cost(entry.entry.len()));
        }
    }
}

impl Logs {
    /// Creates the log if it does not exist. False when there is no room for another one.
    pub(super) fn ensure(&mut self, name: &str, now: Duration, max: usize) -> bool {
        if self.logs.contains_key(name) {
            return true;
        }
        if self.logs.len() >= max {
            let Some((_, oldest)) = self.expired.pop_first() else { return false };
            self.logs.remove(&oldest);
        }
        self.last_id += 1;
        let (id, name): (u64, Arc<str>) = (self.last_id, name.into());
        self.live.insert((now, id), Arc::clone(&name));
        self.logs.insert(name, MemoryLog { id, entries: VecDeque::new(), last: 0, expires: now });
        true
    }

    /// Appends to an existing log, and returns the entry's number.
    pub(super) fn append(
        &mut self,
        name: &str,
        entry: Bytes,
        keep: usize,
        (now, expires): (Duration, Duration),
        quota: &mut ByteQuota,
    ) -> u64 {
        let Some(log) = self.logs.get_mut(name) else { return 0 };
        let before = (log.expires, log.id);
        log.last += 1;
        log.expires = log.expires.max(expires);
        quota.take(cost(entry.len()));
        log.entries.push_back(LogEntry { entry, expires: log.expires });
        let excess = log.entries.len().saturating_sub(keep).max(log.expired_count(now));
        for item in log.entries.drain(..excess) {
            quota.release(cost(item.entry.len()));
        }
        let named = self.live.remove(&before).or_else(|| self.expired.remove(&before));
        self.live.insert((log.expires, log.id), named.unwrap_or_else(|| name.into()));
        log.last
    }

    pub(super) fn read_after(
        &self,
        name: &str,
        after: u64,
        max: usize,
        now: Duration,
    ) -> Result<Vec<(u64, Bytes)>> {
        let Some(log) = self.logs.get(name) else {
            return if after == 0 {
                Ok(vec![])
            } else {
                Err(StateError::Trimmed { resume_after: 0 })
            };
        };
        let resume_after = log.resume_after(now);
        if after < resume_after || after > log.last {
            return Err(StateError::Trimmed { resume_after });
        }
        let wanted = usize::try_from(log.last - after).unwrap_or(usize::MAX);
        let skipped = log.entries.len().saturating_sub(wanted);
        let entries = log.entries.iter().skip(skipped).take(max);
        Ok((after + 1..).zip(entries.map(|entry| entry.entry.clone())).collect())
    }

    /// Removes a log; returns whether it existed.
    pub(super) fn remove(&mut self, name: &str, now: Duration, quota: &mut ByteQuota) -> bool {
        let Some(mut log) = self.logs.remove(name) else { return false };
        let place = (log.expires, log.id);
        self.live.remove(&place);
        self.expired.remove(&place);
        log.clear(quota);
        log.expires > now
    }

    /// Deletes the entries of at most `most` expired logs.
    pub(super) fn sweep(&mut self, now: Duration, max: usize, quota: &mut ByteQuota) {
        for _ in 0..max {
            let Some(oldest) = self.live.first_entry() else { return };
            if oldest.key().0 > now {
                return;
            }
            let (place, name) = oldest.remove_entry();
            if let Some(log) = self.logs.get_mut(&name) {
                log.clear(quota);
            }
            self.expired.insert(place, name);
        }
    }
}

pub(super) fn cost(length: usize) -> usize {
    length + StateLimits::OVERHEAD
}
