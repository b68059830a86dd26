//! Decisions about tokens, by a fingerprint of the token. No token is stored.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use crate::auth::Digest;
use crate::sync::Mutex;

/// The maximum number of entries.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// Values that expire. The oldest entry makes room for a new one.
#[derive(Debug)]
pub(super) struct DecisionCache<T> {
    entries: Mutex<Entries<T>>,
}

#[derive(Debug)]
struct Entries<T> {
    values: HashMap<Digest, (T, Instant, u64)>,
    /// The keys in the order of their insertion, each with its number. A key that was inserted again has a later one too.
    order: VecDeque<(Digest, u64)>,
    next: u64,
}

impl<T: Clone> DecisionCache<T> {
    pub(super) fn new() -> Self {
        let entries = Entries { values: HashMap::new(), order: VecDeque::new(), next: 0 };
        Self { entries: Mutex::new(entries) }
    }

    /// The value of a key that has not expired.
    pub(super) fn find(&self, key: &Digest) -> Option<T> {
        let entries = self.entries.lock();
        let (value, until, _) = entries.values.get(key)?;
        (Instant::now() < *until).then(|| value.clone())
    }

    /// Stores a value.
    pub(super) fn insert(&self, key: Digest, value: T, until: Instant) {
        let mut entries = self.entries.lock();
        let number = entries.next;
        entries.next += 1;
        entries.values.insert(key, (value, until, number));
        entries.order.push_back((key, number));
        while entries.values.len() > MAX_ENTRIES || entries.order.len() > 2 * MAX_ENTRIES {
            let Some((oldest, number)) = entries.order.pop_front() else { break };
            if entries.values.get(&oldest).is_some_and(|(.., current)| *current == number) {
                entries.values.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(number: usize) -> Digest {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[tokio::test(start_paused = true)]
    async fn entries_expire_and_the_oldest_makes_room() {
        let cache = DecisionCache::new();
        let until = Instant::now() + Duration::from_secs(60);
        for number in 0..MAX_ENTRIES + 5 {
            cache.insert(key(number), number, until);
        }
        assert_eq!((cache.find(&key(4)), cache.find(&key(5))), (None, Some(5)));
        assert_eq!(cache.entries.lock().values.len(), MAX_ENTRIES);
        for _ in 0..5 * MAX_ENTRIES {
            cache.insert(key(7), 7, until);
        }
        let counts = {
            let entries = cache.entries.lock();
            (entries.order.len(), entries.values.len())
        };
        assert!(counts.0 <= 2 * MAX_ENTRIES && counts.1 <= MAX_ENTRIES, "{counts:?}");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(cache.find(&key(7)), None);
    }
}
