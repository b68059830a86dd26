//! Keyed values in memory, ordered by expiry.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{ByteQuota, Namespace, StateLimits, StoredEntry};

#[derive(Debug, Default)]
pub(super) struct MemoryEntries {
    values: HashMap<Arc<str>, StoredValue>,
    leases: HashMap<Arc<str>, StoredValue>,
    /// Values with an expiry, the earliest first. Versions distinguish equal times.
    by_age: BTreeMap<(Duration, u64), (Namespace, Arc<str>)>,
    /// The last version; one counter for all keys, so that no counter must be kept for removed keys.
    last_version: u64,
}

#[derive(Debug)]
struct StoredValue {
    value: Bytes,
    version: u64,
    expires: Option<Duration>,
}

impl StoredValue {
    fn is_live(&self, now: Duration) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

impl MemoryEntries {
    pub(super) fn get(&self, space: Namespace, key: &str, now: Duration) -> Option<StoredEntry> {
        let slot = self.slots(space).get(key).filter(|slot| slot.is_live(now))?;
        Some(StoredEntry { value: slot.value.clone(), version: slot.version })
    }

    pub(super) fn version(&self, space: Namespace, key: &str, now: Duration) -> Option<u64> {
        self.slots(space).get(key).filter(|slot| slot.is_live(now)).map(|slot| slot.version)
    }

    pub(super) fn contains(&self, space: Namespace, key: &str) -> bool {
        self.slots(space).contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.values.len() + self.leases.len()
    }

    /// Whether a value of that length can be written to the key.
    pub(super) fn has_room(
        &self,
        space: Namespace,
        key: &str,
        length: usize,
        max: usize,
        quota: &ByteQuota,
    ) -> bool {
        match self.slots(space).get(key) {
            Some(slot) => quota.has_room(length.saturating_sub(slot.value.len())),
            None => self.len() < max && quota.has_room(cost(key, length)),
        }
    }

    /// Writes a value and returns its version.
    pub(super) fn insert(
        &mut self,
        space: Namespace,
        key: &str,
        value: Bytes,
        expires: Option<Duration>,
        quota: &mut ByteQuota,
    ) -> u64 {
        self.remove(space, key, quota);
        self.last_version += 1;
        let version = self.last_version;
        let key: Arc<str> = key.into();
        quota.take(cost(&key, value.len()));
        if let Some(expires) = expires {
            self.by_age.insert((expires, version), (space, Arc::clone(&key)));
        }
        self.slots_mut(space).insert(key, StoredValue { value, version, expires });
        version
    }

    pub(super) fn prolong(&mut self, space: Namespace, key: &str, expires: Option<Duration>) {
        let Some(slot) = self.slots_mut(space).get_mut(key) else { return };
        let version = slot.version;
        let before = std::mem::replace(&mut slot.expires, expires);
        let named = before.and_then(|before| self.by_age.remove(&(before, version)));
        if let Some(expires) = expires {
            let named = named.unwrap_or_else(|| (space, key.into()));
            self.by_age.insert((expires, version), named);
        }
    }

    pub(super) fn remove(&mut self, space: Namespace, key: &str, quota: &mut ByteQuota) {
        let Some(slot) = self.slots_mut(space).remove(key) else { return };
        quota.release(cost(key, slot.value.len()));
        if let Some(expires) = slot.expires {
            self.by_age.remove(&(expires, slot.version));
        }
    }

    /// Deletes at most `most` expired values.
    pub(super) fn sweep(&mut self, now: Duration, max: usize, quota: &mut ByteQuota) {
        for _ in 0..max {
            let Some(oldest) = self.by_age.first_entry() else { return };
            if oldest.key().0 > now {
                return;
            }
            let (space, key) = oldest.remove();
            if let Some(slot) = self.slots_mut(space).remove(&key) {
                quota.release(cost(&key, slot.value.len()));
            }
        }
    }

    fn slots(&self, space: Namespace) -> &HashMap<Arc<str>, StoredValue> {
        match space {
            Namespace::Entries => &self.values,
            Namespace::Leases => &self.leases,
        }
    }

    fn slots_mut(&mut self, space: Namespace) -> &mut HashMap<Arc<str>, StoredValue> {
        match space {
            Namespace::Entries => &mut self.values,
            Namespace::Leases => &mut self.leases,
        }
    }
}

fn cost(key: &str, length: usize) -> usize {
    key.len() + length + StateLimits::OVERHEAD
}
