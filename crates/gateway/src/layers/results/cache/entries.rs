//! The cached results. The oldest are evicted for new ones.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use creole_proto::operation::Payload;
use tokio::time::Instant;

/// A digest of the principal and the request.
pub(crate) type CacheKey = [u8; 32];

/// The cached results.
#[derive(Debug, Default)]
pub(crate) struct CacheEntries {
    results: HashMap<CacheKey, CacheEntry>,
    /// The keys in order of insertion. All entries live equally long, so the first is always the oldest.
    order: VecDeque<CacheKey>,
    bytes: usize,
}

#[derive(Debug)]
struct CacheEntry {
    /// The requested tool, prompt or resource.
    target: String,
    payload: Payload,
    bytes: usize,
    expires: Instant,
}

impl CacheEntries {
    /// The result of a key, unless it has expired.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Payload> {
        let entry = self.results.get(key).filter(|entry| entry.expires > Instant::now())?;
        Some(entry.payload.clone())
    }

    /// Stores the result of a request for the target, at a cost of this many bytes.
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

    /// Removes all results for a target.
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

    /// Removes expired entries, and the oldest ones until the rest costs at most this many bytes.
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
