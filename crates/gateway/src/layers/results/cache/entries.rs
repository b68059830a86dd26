//! The results that are kept, the oldest of which make room for new ones.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use creole_proto::operation::Payload;
use tokio::time::Instant;

/// A digest of whose it is and of what was asked.
pub(crate) type CacheKey = [u8; 32];

/// The results that are kept.
#[derive(Debug, Default)]
pub(crate) struct CacheEntries {
    results: HashMap<CacheKey, CacheEntry>,
    /// The keys in the order in which they came; all live equally long, so the first is always the oldest.
    order: VecDeque<CacheKey>,
    bytes: usize,
}

#[derive(Debug)]
struct CacheEntry {
    /// What was asked for: a tool, a prompt or a resource.
    target: String,
    payload: Payload,
    bytes: usize,
    expires: Instant,
}

impl CacheEntries {
    /// What is kept under a key and not too old.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Payload> {
        let entry = self.results.get(key).filter(|entry| entry.expires > Instant::now())?;
        Some(entry.payload.clone())
    }

    /// Keeps what came of asking for the target; it costs so many bytes.
    pub(crate) fn insert(
        &mut self,
        asked: (CacheKey, String),
        payload: Payload,
        bytes: usize,
        ttl: Duration,
    ) {
        let (key, target) = asked;
        self.remove(&key);
        self.bytes += bytes;
        self.results
            .insert(key, CacheEntry { target, payload, bytes, expires: Instant::now() + ttl });
        self.order.push_back(key);
    }

    /// Forgets all that came of asking for a target.
    pub(crate) fn remove_target(&mut self, target: &str) {
        let of_it = self.results.iter().filter(|(_, entry)| entry.target == target);
        let keys: Vec<CacheKey> = of_it.map(|(key, _)| *key).collect();
        keys.iter().for_each(|key| self.remove(key));
    }

    fn remove(&mut self, key: &CacheKey) {
        if let Some(old) = self.results.remove(key) {
            self.bytes -= old.bytes;
            self.order.retain(|other| other != key);
        }
    }

    /// Forgets what is too old, and the oldest until the rest costs at most so many bytes.
    pub(crate) fn make_room(&mut self, max_bytes: usize) {
        let now = Instant::now();
        while let Some(oldest) = self.order.front().copied() {
            let is_old = self.results.get(&oldest).is_none_or(|entry| entry.expires <= now);
            if !is_old && self.bytes <= max_bytes {
                return;
            }
            self.order.pop_front();
            self.bytes -= self.results.remove(&oldest).map_or(0, |entry| entry.bytes);
        }
    }
}
