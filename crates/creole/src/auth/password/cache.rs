//! Caches recently verified passwords, and shares running verifications.
//!
//! Both belong to one read of the files: a reload drops them.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::auth::Digest;
use crate::principal::Principal;

/// How long a password is not verified again.
pub(crate) const CACHE_TTL: Duration = Duration::from_secs(60);
/// Maximum number of entries.
const MAX_CACHED: usize = 1024;

/// The entries, by the fingerprint of header and address. No password is stored.
#[derive(Debug)]
pub(crate) struct PasswordCache<T> {
    verified: Mutex<HashMap<Digest, (Instant, Principal)>>,
    in_progress: Mutex<HashMap<Digest, Arc<OnceCell<T>>>>,
}

impl<T> PasswordCache<T> {
    pub(crate) fn new() -> Self {
        Self { verified: Mutex::default(), in_progress: Mutex::default() }
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

    /// Joins the one verification of this fingerprint: concurrent attempts share its outcome.
    pub(crate) fn join_check(&self, fingerprint: Digest) -> SharedCheck<'_, T> {
        let cell = Arc::clone(self.in_progress.lock().entry(fingerprint).or_default());
        SharedCheck { recent: self, fingerprint, cell }
    }
}

#[cfg(test)]
impl<T> PasswordCache<T> {
    /// The number of attempts that wait for a verification.
    pub(crate) fn waiting_count(&self) -> usize {
        self.in_progress.lock().values().map(|cell| Arc::strong_count(cell) - 1).sum()
    }
}

/// One participant of a shared verification.
#[derive(Debug)]
pub(crate) struct SharedCheck<'a, T> {
    recent: &'a PasswordCache<T>,
    fingerprint: Digest,
    pub(crate) cell: Arc<OnceCell<T>>,
}

impl<T> Drop for SharedCheck<'_, T> {
    /// Removes a verification that is complete, or that has no other participant.
    fn drop(&mut self) {
        let mut checked = self.recent.in_progress.lock();
        let is_mine = checked.get(&self.fingerprint).is_some_and(|it| Arc::ptr_eq(it, &self.cell));
        // Two: the table and this participant.
        if is_mine && (self.cell.initialized() || Arc::strong_count(&self.cell) == 2) {
            checked.remove(&self.fingerprint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_correct_password_is_cached_for_a_minute_within_bounds() {
        let recent = PasswordCache::<()>::new();
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

    #[tokio::test]
    async fn a_dropped_entry_leaves_nothing_behind() {
        let recent = PasswordCache::<u8>::new();
        let (first, second) = (recent.join_check([1; 32]), recent.join_check([1; 32]));
        assert!(Arc::ptr_eq(&first.cell, &second.cell));
        drop(first);
        assert_eq!(recent.in_progress.lock().len(), 1, "a caller still waits");
        second.cell.get_or_init(async || 7).await;
        let late = recent.join_check([1; 32]);
        assert_eq!(late.cell.get(), Some(&7));
        drop(second);
        assert!(recent.in_progress.lock().is_empty(), "a finished verification is removed");
        drop(late);
        assert!(recent.join_check([1; 32]).cell.get().is_none());
        assert!(recent.in_progress.lock().is_empty());
    }
}
