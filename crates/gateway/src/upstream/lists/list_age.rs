//! The age of each list: decides when it is stale and whether it has changed.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole::proto::model::{CacheHints, Definition, ListKind};
use creole::proto::revision::Rules;
use tokio::time::Instant;

/// The minimum time between two fetches of a list because of its age.
pub(crate) const MIN_FETCH_INTERVAL: Duration = Duration::from_secs(1);

/// How long a list stays in use after a failed fetch. Without it, each request for a list of an upstream that hangs
/// would wait for the timeout.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// The ages of all lists of an upstream.
#[derive(Default)]
pub(crate) struct ListAges(Mutex<HashMap<&'static str, ListAge>>);

struct ListAge {
    fetched_at: Instant,
    /// The time to live that the upstream stated.
    ttl: Duration,
    digest: u64,
    /// When it is fetched again after a failure.
    retry_at: Option<Instant>,
}

impl ListAge {
    fn is_stale(&self) -> bool {
        let is_rested = self.retry_at.is_none_or(|again| again <= Instant::now());
        is_rested && self.fetched_at.elapsed() >= self.ttl.max(MIN_FETCH_INTERVAL)
    }
}

impl ListAges {
    /// Records a fetch. Returns whether the list has changed.
    pub(crate) fn record_fetch(
        &self,
        kind: ListKind,
        items: &[Arc<Definition>],
        cache: CacheHints,
    ) -> bool {
        let digest = digest(items);
        let life = Duration::from_millis(cache.ttl_ms);
        let known = ListAge { fetched_at: Instant::now(), ttl: life, digest, retry_at: None };
        let before = self.lock().insert(kind.member(), known);
        before.is_none_or(|before| before.digest != digest)
    }

    /// Records a failed fetch.
    pub(crate) fn record_failure(&self, kind: ListKind) {
        if let Some(known) = self.lock().get_mut(kind.member()) {
            known.retry_at = Some(Instant::now() + RETRY_PAUSE);
        }
    }

    /// Whether a list is older than its time to live.
    pub(crate) fn is_stale(&self, kind: ListKind) -> bool {
        self.lock().get(kind.member()).is_some_and(ListAge::is_stale)
    }

    /// The remaining time to live of a list, if the upstream has it. If the upstream announces changes, a list counts
    /// as just fetched.
    pub(crate) fn remaining_ttl(&self, kind: ListKind, is_notified: bool) -> Option<Duration> {
        let all = self.lock();
        let known = all.get(kind.member())?;
        let age = if is_notified { Duration::ZERO } else { known.fetched_at.elapsed() };
        Some(known.ttl.saturating_sub(age))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, ListAge>> {
        self.0.lock()
    }
}

/// A digest of the definitions of a list.
pub(crate) fn digest(items: &[Arc<Definition>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let rules = Rules::CANONICAL;
    items.iter().for_each(|item| item.text(rules).hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_list_is_stale_when_its_time_is_over_and_not_before_a_second() {
        let fresh = ListAges::default();
        assert!(!fresh.is_stale(ListKind::Tools), "a list that was never fetched has no age");
        for (ttl_ms, seconds) in [(0, 1), (5000, 5)] {
            fresh.record_fetch(ListKind::Tools, &[], CacheHints { ttl_ms, public: false });
            tokio::time::advance(Duration::from_secs(seconds) - Duration::from_millis(1)).await;
            assert!(!fresh.is_stale(ListKind::Tools));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(fresh.is_stale(ListKind::Tools));
            assert!(!fresh.is_stale(ListKind::Prompts));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_list_is_not_fetched_until_its_retry_time() {
        let (fresh, cache) = (ListAges::default(), CacheHints { ttl_ms: 0, public: false });
        fresh.record_fetch(ListKind::Tools, &[], cache);
        tokio::time::advance(MIN_FETCH_INTERVAL).await;
        fresh.record_failure(ListKind::Tools);
        assert!(!fresh.is_stale(ListKind::Tools));
        tokio::time::advance(RETRY_PAUSE).await;
        assert!(fresh.is_stale(ListKind::Tools));
        fresh.record_failure(ListKind::Tools);
        fresh.record_fetch(ListKind::Tools, &[], cache);
        tokio::time::advance(MIN_FETCH_INTERVAL).await;
        assert!(fresh.is_stale(ListKind::Tools), "the list was fetched");
    }

    #[test]
    fn a_list_that_was_fetched_again_is_another_only_if_it_is() {
        let definition =
            |text: &str| Definition::from_upstream(ListKind::Tools, text, None).map(Arc::new);
        let one = definition(r#"{"name":"a","inputSchema":{"type":"object"}}"#).unwrap();
        let other = definition(r#"{"name":"b","inputSchema":{"type":"object"}}"#).unwrap();
        let (fresh, cache) = (ListAges::default(), CacheHints { ttl_ms: 0, public: false });
        assert!(fresh.record_fetch(ListKind::Tools, &[Arc::clone(&one)], cache));
        assert!(!fresh.record_fetch(ListKind::Tools, &[Arc::clone(&one)], cache));
        assert!(fresh.record_fetch(ListKind::Tools, &[one, other], cache));
    }
}
