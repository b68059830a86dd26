//! Caches recently verified passwords. The cache belongs to one read of the files: a reload drops it.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::auth::Digest;
use crate::principal::Principal;

/// How long a password is not verified again.
pub(crate) const CACHE_TTL: Duration = Duration::from_secs(60);
/// Maximum number of entries.
const MAX_CACHED: usize = 1024;

/// The entries, by the fingerprint of header and address. No password is stored.
#[derive(Debug)]
pub(crate) struct PasswordCache {
    verified: Mutex<HashMap<Digest, (Instant, Principal)>>,
}

impl PasswordCache {
    pub(crate) fn new() -> Self {
        Self { verified: Mutex::default() }
    }

    /// The principal, if the password was verified recently.
    pub(crate) fn find(&self, fingerprint: &Digest) -> Option<Principal> {
        let right = self.verified.lock();
        let (until, principal) = right.get(fingerprint)?;
        (Instant::now() < *until).then(|| principal.clone())
    }

    /// Records a verified password.
    pub(crate) fn insert(&self, fingerprint: Digest, principal: &Principal) {
        let now = Instant::now();
        let mut right = self.verified.lock();
        if right.len() >= MAX_CACHED {
            right.retain(|_, (until, _)| now < *until);
        }
        if right.len() >= MAX_CACHED {
            let oldest = right.iter().min_by_key(|(_, (until, _))| *until).map(|(key, _)| *key);
            oldest.and_then(|key| right.remove(&key));
        }
        right.insert(fingerprint, (now + CACHE_TTL, principal.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_correct_password_is_cached_for_a_minute_within_bounds() {
        let recent = PasswordCache::new();
        let numbered = |number: u32| {
            let mut fingerprint = [0; 32];
            fingerprint[..4].copy_from_slice(&number.to_be_bytes());
            fingerprint
        };
        for number in 0..2000 {
            recent.insert(numbered(number), &Principal::local());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(recent.verified.lock().len(), MAX_CACHED);
        assert!(recent.find(&numbered(0)).is_none() && recent.find(&numbered(1999)).is_some());
        tokio::time::advance(CACHE_TTL).await;
        assert!(recent.find(&numbered(1999)).is_none());
    }
}
