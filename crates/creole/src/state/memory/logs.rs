//! Logs in memory. A log whose entries are all gone is remembered by its last number until its place is
//! needed, so that a reader who comes late learns that something is missing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::{ByteQuota, Result, StateError, StateLimits};

#[derive(Debug, Default)]
pub(super) struct Logs {
    logs: HashMap<Arc<str>, MemoryLog>,
    /// Logs with entries, the one whose last entry goes first in front.
    live: BTreeMap<(Instant, u64), Arc<str>>,
    /// Logs whose entries are all too old and were thrown away, in the same order.
    expired: BTreeMap<(Instant, u64), Arc<str>>,
    last_id: u64,
}

#[derive(Debug)]
struct MemoryLog {
    /// Keeps those of the same moment apart.
    id: u64,
    entries: VecDeque<LogEntry>,
    /// The number of the last entry there was.
    last: u64,
    /// When the last entry is too old.
    expires: Instant,
}

#[derive(Debug)]
struct LogEntry {
    entry: Bytes,
    expires: Instant,
}

impl MemoryLog {
    /// How many entries at the front are too old; ages never decrease along a log.
    fn expired_count(&self, now: Instant) -> usize {
        self.entries.partition_point(|written| written.expires <= now)
    }

    /// The number after which all entries are still there.
    fn resume_after(&self, now: Instant) -> u64 {
        let live = self.entries.len() - self.expired_count(now);
        self.last - u64::try_from(live).unwrap_or(self.last)
    }

    fn clear(&mut self, room: &mut ByteQuota) {
        for written in std::mem::take(&mut self.entries) {
            room.release(cost(written.entry.len()));
        }
    }
}

impl Logs {
    /// Makes sure that there is such a log. False when there is no room for another one.
    pub(super) fn ensure(&mut self, name: &str, now: Instant, most: usize) -> bool {
        if self.logs.contains_key(name) {
            return true;
        }
        if self.logs.len() >= most {
            let Some((_, oldest)) = self.expired.pop_first() else { return false };
            self.logs.remove(&oldest);
        }
        self.last_id += 1;
        let (id, name): (u64, Arc<str>) = (self.last_id, name.into());
        self.live.insert((now, id), Arc::clone(&name));
        self.logs.insert(name, MemoryLog { id, entries: VecDeque::new(), last: 0, expires: now });
        true
    }

    /// Appends to a log that was made, and gives the entry's number.
    pub(super) fn append(
        &mut self,
        name: &str,
        entry: Bytes,
        keep: usize,
        (now, expires): (Instant, Instant),
        room: &mut ByteQuota,
    ) -> u64 {
        let Some(log) = self.logs.get_mut(name) else { return 0 };
        let before = (log.expires, log.id);
        log.last += 1;
        log.expires = log.expires.max(expires);
        room.take(cost(entry.len()));
        log.entries.push_back(LogEntry { entry, expires: log.expires });
        let excess = log.entries.len().saturating_sub(keep).max(log.expired_count(now));
        for written in log.entries.drain(..excess) {
            room.release(cost(written.entry.len()));
        }
        let named = self.live.remove(&before).or_else(|| self.expired.remove(&before));
        self.live.insert((log.expires, log.id), named.unwrap_or_else(|| name.into()));
        log.last
    }

    pub(super) fn read_after(
        &self,
        name: &str,
        after: u64,
        most: usize,
        now: Instant,
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
        let entries = log.entries.iter().skip(skipped).take(most);
        Ok((after + 1..).zip(entries.map(|written| written.entry.clone())).collect())
    }

    /// Whether there was such a log.
    pub(super) fn remove(&mut self, name: &str, now: Instant, room: &mut ByteQuota) -> bool {
        let Some(mut log) = self.logs.remove(name) else { return false };
        let place = (log.expires, log.id);
        self.live.remove(&place);
        self.expired.remove(&place);
        log.clear(room);
        log.expires > now
    }

    /// Throws away the entries of at most so many logs that are too old.
    pub(super) fn sweep(&mut self, now: Instant, most: usize, room: &mut ByteQuota) {
        for _ in 0..most {
            let Some(oldest) = self.live.first_entry() else { return };
            if oldest.key().0 > now {
                return;
            }
            let (place, name) = oldest.remove_entry();
            if let Some(log) = self.logs.get_mut(&name) {
                log.clear(room);
            }
            self.expired.insert(place, name);
        }
    }
}

pub(super) fn cost(length: usize) -> usize {
    length + StateLimits::OVERHEAD
}
