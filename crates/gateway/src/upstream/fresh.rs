//! How old lists are, and whether they still are what they were.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::proto::model::{CacheHints, Definition, ListKind};
use creole::proto::revision::{Era, Revision};
use tokio::time::Instant;

/// A list is never fetched more often than this because of its age.
const SHORTEST: Duration = Duration::from_secs(1);

/// What is known of each list.
#[derive(Default)]
pub(super) struct Freshness(Mutex<HashMap<&'static str, Known>>);

struct Known {
    fetched: Instant,
    life: Duration,
    digest: u64,
}

impl Freshness {
    /// Notes that a list was fetched; tells whether it is another than before.
    pub(super) fn note(
        &self,
        kind: ListKind,
        items: &[Arc<Definition>],
        cache: CacheHints,
    ) -> bool {
        let digest = digest(items);
        let life = Duration::from_millis(cache.ttl_ms).max(SHORTEST);
        let known = Known { fetched: Instant::now(), life, digest };
        let before = self.lock().insert(kind.member(), known);
        before.is_none_or(|before| before.digest != digest)
    }

    /// Whether a list is older than its server said it may become.
    pub(super) fn is_stale(&self, kind: ListKind) -> bool {
        let known = self.lock();
        known.get(kind.member()).is_some_and(|known| known.fetched.elapsed() >= known.life)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(items: &[Arc<Definition>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let rules = Revision::newest(Era::Stateless).rules();
    items.iter().for_each(|item| item.text(rules).hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_list_is_stale_when_its_time_is_over_and_not_before_a_second() {
        let fresh = Freshness::default();
        assert!(!fresh.is_stale(ListKind::Tools), "one that never came has no age");
        for (ttl_ms, seconds) in [(0, 1), (5000, 5)] {
            fresh.note(ListKind::Tools, &[], CacheHints { ttl_ms, public: false });
            tokio::time::advance(Duration::from_secs(seconds) - Duration::from_millis(1)).await;
            assert!(!fresh.is_stale(ListKind::Tools));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(fresh.is_stale(ListKind::Tools));
            assert!(!fresh.is_stale(ListKind::Prompts));
        }
    }

    #[test]
    fn a_list_that_was_fetched_again_is_another_only_if_it_is() {
        let definition =
            |text: &str| Definition::relayed(ListKind::Tools, text, None).map(Arc::new);
        let one = definition(r#"{"name":"a","inputSchema":{"type":"object"}}"#).unwrap();
        let other = definition(r#"{"name":"b","inputSchema":{"type":"object"}}"#).unwrap();
        let (fresh, cache) = (Freshness::default(), CacheHints { ttl_ms: 0, public: false });
        assert!(fresh.note(ListKind::Tools, &[Arc::clone(&one)], cache));
        assert!(!fresh.note(ListKind::Tools, &[Arc::clone(&one)], cache));
        assert!(fresh.note(ListKind::Tools, &[one, other], cache));
    }
}
