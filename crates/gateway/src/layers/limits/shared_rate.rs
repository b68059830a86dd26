//! Rate limits that hold for all replicas together: their buckets are in the state.
//!
//! A bucket is one time: when it would be full again if no further call came (the generic cell rate algorithm). A call
//! moves it by the share of the window that one call uses, under compare-and-set.

use std::time::Duration;

use creole::internal::seal::digest;
use creole::proto::wire::hex;
use creole::state::{State, StateError};
use tokio::sync::Mutex;

/// How often a call tries to change a bucket that other replicas change at the same time.
const MAX_ATTEMPTS: usize = 32;

/// The calls of this process change a bucket one after the other. Buckets with the same index wait for each other too.
const LOCKS: usize = 64;

/// Buckets that all replicas share.
#[derive(Debug)]
pub(super) struct SharedBuckets {
    state: State,
    /// What the limit is for, such as a server.
    scope: String,
    locks: Vec<Mutex<()>>,
}

/// A limit: this many calls in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketLimit {
    pub(super) calls: u32,
    pub(super) window: Duration,
}

impl BucketLimit {
    /// The time of the bucket after one more call at this time, or how long the call has to wait.
    fn after_call(self, full_at: Option<Duration>, now: Duration) -> Result<Duration, Duration> {
        let end = now + self.window;
        // A time beyond the window was written by a clock that is ahead.
        let full_at = full_at.unwrap_or(now).clamp(now, end);
        let after = full_at + self.window / self.calls.max(1);
        // The division rounds down, so that the last call of a window fits.
        if after <= end { Ok(after) } else { Err(after - end) }
    }
}

impl SharedBuckets {
    /// The buckets of a scope.
    pub(super) fn new(state: State, scope: &str) -> Self {
        let locks = (0..LOCKS).map(|_| Mutex::default()).collect();
        Self { state, scope: scope.to_owned(), locks }
    }

    /// Takes one call from a bucket; returns how long to wait if it is empty.
    ///
    /// # Errors
    /// When the state fails, or other replicas change the bucket all the time.
    pub(super) async fn take(
        &self,
        bucket: &str,
        limit: BucketLimit,
    ) -> Result<Result<(), Duration>, StateError> {
        let (key, lock) = self.key(bucket);
        let _turn = lock.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let entry = self.state.get(&key).await?;
            let (version, full_at) = match &entry {
                Some(entry) => (Some(entry.version), decode(&entry.value)),
                None => (None, None),
            };
            let after = match limit.after_call(full_at, self.state.time()) {
                Ok(after) => after,
                Err(wait) => return Ok(Err(wait)),
            };
            let value = after.as_micros().to_string().into();
            if self.state.swap(&key, version, value, Some(limit.window)).await?.is_some() {
                return Ok(Ok(()));
            }
        }
        Err(StateError::Contended)
    }

    /// Puts a call back that was not made.
    pub(super) async fn put_back(
        &self,
        bucket: &str,
        limit: BucketLimit,
    ) -> Result<(), StateError> {
        let (key, lock) = self.key(bucket);
        let _turn = lock.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let Some(entry) = self.state.get(&key).await? else { return Ok(()) };
            let Some(full_at) = decode(&entry.value) else { return Ok(()) };
            let before = full_at.saturating_sub(limit.window / limit.calls.max(1));
            let value = before.as_micros().to_string().into();
            let swapped = self.state.swap(&key, Some(entry.version), value, Some(limit.window));
            if swapped.await?.is_some() {
                return Ok(());
            }
        }
        Err(StateError::Contended)
    }

    /// The key of a bucket, and the lock for it. Names of principals may be long.
    fn key(&self, bucket: &str) -> (String, &Mutex<()>) {
        let digest = digest(format!("{}\n{bucket}", self.scope).as_bytes());
        let lock = &self.locks[usize::from(digest[0]) % LOCKS];
        (format!("rate/{}", hex(&digest)), lock)
    }
}

fn decode(value: &[u8]) -> Option<Duration> {
    std::str::from_utf8(value).ok()?.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: BucketLimit = BucketLimit { calls: 10, window: Duration::from_secs(3600) };

    #[tokio::test]
    async fn replicas_together_make_no_more_calls_than_the_limit() {
        let state = State::default();
        let replicas = [(); 3].map(|()| SharedBuckets::new(state.clone(), "s"));
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..10 {
            for replica in &replicas {
                match replica.take("ann", LIMIT).await.unwrap() {
                    Ok(()) => taken += 1,
                    Err(wait) => {
                        assert!(wait <= LIMIT.window / LIMIT.calls, "{wait:?}");
                        refused += 1;
                    }
                }
            }
        }
        assert_eq!((taken, refused), (10, 20));
        assert!(replicas[0].take("bob", LIMIT).await.unwrap().is_ok(), "a bucket of its own");
        let other = SharedBuckets::new(state, "another server");
        assert!(other.take("ann", LIMIT).await.unwrap().is_ok(), "another scope");
    }

    #[tokio::test]
    async fn a_call_that_was_not_made_is_put_back() {
        let buckets = SharedBuckets::new(State::default(), "s");
        for _ in 0..LIMIT.calls {
            buckets.take("ann", LIMIT).await.unwrap().unwrap();
        }
        assert!(buckets.take("ann", LIMIT).await.unwrap().is_err());
        buckets.put_back("ann", LIMIT).await.unwrap();
        buckets.take("ann", LIMIT).await.unwrap().unwrap();
        assert!(buckets.take("ann", LIMIT).await.unwrap().is_err());
    }

    #[test]
    fn a_clock_that_is_ahead_blocks_for_one_window_at_most() {
        let now = Duration::from_secs(1_000_000);
        let far = now + LIMIT.window * 100;
        let wait = LIMIT.after_call(Some(far), now).unwrap_err();
        assert!(wait <= LIMIT.window / LIMIT.calls, "{wait:?}");
        assert!(LIMIT.after_call(Some(now - LIMIT.window), now).is_ok());
    }
}
