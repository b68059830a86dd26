//! Records lists whose fetch failed. Each list fails on its own and is fetched again with backoff.

use creole::internal::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::MutexGuard;
use std::time::Duration;

use creole::proto::fault::Fault;
use creole::proto::model::ListKind;
use tokio::time::Instant;

/// The wait before the second attempt. It doubles with each further one.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The maximum wait between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);

/// The lists of one upstream whose last fetch failed.
#[derive(Default)]
pub(crate) struct ListFailures(Mutex<BTreeMap<ListKind, ListFailure>>);

struct ListFailure {
    fault: Fault,
    /// The number of failures since the last success.
    attempts: u32,
    retry_at: Instant,
}

impl ListFailures {
    /// Records a failed fetch. Returns the number of consecutive failures if it should be logged: the first, the
    /// second, the fourth and so on, so that a list that never works does not fill the log.
    pub(crate) fn record(&self, kind: ListKind, fault: &Fault) -> Option<u32> {
        let mut all = self.lock();
        let attempts = all.get(&kind).map_or(0, |failure| failure.attempts).saturating_add(1);
        let failure = ListFailure {
            fault: fault.clone(),
            attempts,
            retry_at: Instant::now() + backoff(attempts),
        };
        all.insert(kind, failure);
        attempts.is_power_of_two().then_some(attempts)
    }

    /// Records a successful fetch. Returns whether the fetch before had failed.
    pub(crate) fn clear(&self, kind: ListKind) -> bool {
        self.lock().remove(&kind).is_some()
    }

    /// Removes all failures for a new session.
    pub(crate) fn clear_all(&self) {
        self.lock().clear();
    }

    /// Why a list could not be fetched, if the last fetch failed.
    pub(crate) fn fault(&self, kind: ListKind) -> Option<Fault> {
        self.lock().get(&kind).map(|failure| failure.fault.clone())
    }

    /// When the next failed list must be fetched again.
    pub(crate) fn next_retry(&self) -> Option<Instant> {
        self.lock().values().map(|failure| failure.retry_at).min()
    }

    /// The lists that must be fetched again now.
    pub(crate) fn due(&self) -> Vec<ListKind> {
        let (all, now) = (self.lock(), Instant::now());
        let due = all.iter().filter(|(_, failure)| failure.retry_at <= now);
        due.map(|(kind, _)| *kind).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ListKind, ListFailure>> {
        self.0.lock()
    }
}

/// The wait after this many consecutive failures.
pub(crate) fn backoff(attempts: u32) -> Duration {
    FIRST_RETRY_DELAY.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(MAX_RETRY_DELAY)
}

#[cfg(test)]
mod tests {
    use creole::proto::fault::FaultKind;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failed_list_is_due_after_a_wait_that_doubles() {
        let (failures, fault) = (ListFailures::default(), Fault::new(FaultKind::Internal, "no"));
        assert_eq!(failures.next_retry(), None);
        for (attempt, seconds) in [(1, 1), (2, 2), (3, 4), (4, 8)] {
            let logged = failures.record(ListKind::Tools, &fault);
            assert_eq!(logged, (attempt != 3).then_some(attempt));
            assert_eq!(failures.next_retry(), Some(Instant::now() + Duration::from_secs(seconds)));
            assert!(failures.due().is_empty());
            tokio::time::advance(Duration::from_secs(seconds)).await;
            assert_eq!(failures.due(), [ListKind::Tools]);
        }
        assert_eq!(backoff(1000), MAX_RETRY_DELAY);
        assert!(failures.fault(ListKind::Prompts).is_none());
        assert!(failures.clear(ListKind::Tools) && !failures.clear(ListKind::Tools));
        assert_eq!(failures.record(ListKind::Tools, &fault), Some(1));
    }
}
