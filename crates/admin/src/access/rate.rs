//! How many requests one credential may make.

use std::collections::HashMap;
use std::time::Duration;

use creole::internal::sync::Mutex;
use tokio::time::Instant;

use crate::http::problem::{Problem, ProblemCode};

/// Requests per second of one credential, and how many it may make at once.
const PER_SECOND: f64 = 60.0;
/// Maximum number of credentials that are remembered. One that made no request for a second has its full amount.
const MAX_CREDENTIALS: usize = 1024;

/// Counts the requests of credentials, which are known by a digest.
#[derive(Default)]
pub(super) struct RequestRate(Mutex<HashMap<Vec<u8>, Bucket>>);

struct Bucket {
    available: f64,
    updated: Instant,
}

impl RequestRate {
    /// Counts a request of this credential, or refuses it.
    pub(super) fn count(&self, credential: &[u8]) -> Result<(), Problem> {
        let now = Instant::now();
        let mut buckets = self.0.lock();
        if buckets.len() >= MAX_CREDENTIALS {
            buckets.retain(|_, bucket| now - bucket.updated < Duration::from_secs(1));
        }
        if buckets.len() >= MAX_CREDENTIALS && !buckets.contains_key(credential) {
            return Err(refusal());
        }
        let bucket = buckets
            .entry(credential.to_vec())
            .or_insert(Bucket { available: PER_SECOND, updated: now });
        let earned = (now - bucket.updated).as_secs_f64() * PER_SECOND;
        bucket.available = (bucket.available + earned).min(PER_SECOND);
        bucket.updated = now;
        if bucket.available < 1.0 {
            return Err(refusal());
        }
        bucket.available -= 1.0;
        Ok(())
    }
}

fn refusal() -> Problem {
    let title = format!("More than {PER_SECOND} requests in a second");
    Problem::new(ProblemCode::TooManyRequests, title).retry_after(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_credential_has_its_amount_again_after_a_second() {
        let rate = RequestRate::default();
        let allowed = |name: &[u8]| (0..100).take_while(|_| rate.count(name).is_ok()).count();
        assert_eq!(allowed(b"one"), 60);
        assert_eq!(allowed(b"other"), 60);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(allowed(b"one"), 30);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(allowed(b"one"), 60);
    }
}
