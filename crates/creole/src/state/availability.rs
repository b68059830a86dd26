//! Remembers when a state was unavailable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::{Result, State, StateError};
use crate::sync::Mutex;

/// When a state was last unavailable to this process.
///
/// A missing heartbeat proves nothing after an outage: its process may not have reached the state.
#[derive(Debug, Default)]
pub(super) struct Availability {
    /// Whether the last operation failed. Read first, so that an operation that succeeds takes no lock.
    is_failing: AtomicBool,
    last_outage: Mutex<Option<Outage>>,
}

/// A time in which all operations failed.
#[derive(Debug, Clone, Copy)]
struct Outage {
    started: Instant,
    last_failure: Instant,
}

impl State {
    /// How long the state has been unavailable to this process; `None` if it answered the last operation.
    #[must_use]
    pub fn outage(&self) -> Option<Duration> {
        self.availability.outage()
    }

    /// Whether the state was unavailable within this time. Then data that has expired proves nothing: its writer may not
    /// have reached the state.
    pub(crate) fn was_unavailable_within(&self, time: Duration) -> bool {
        self.availability.has_failed_within(time)
    }
}

impl Availability {
    /// Records the result of an operation.
    pub(super) fn record<T>(&self, result: &Result<T>) {
        if matches!(result, Err(StateError::Unavailable { .. })) {
            self.record_failure();
        } else if self.is_failing.load(Ordering::Relaxed) {
            self.is_failing.store(false, Ordering::Relaxed);
        }
    }

    fn record_failure(&self) {
        let (mut last_outage, now) = (self.last_outage.lock(), Instant::now());
        let was_failing = self.is_failing.swap(true, Ordering::Relaxed);
        let running = last_outage.filter(|_| was_failing);
        let started = running.map_or(now, |outage| outage.started);
        *last_outage = Some(Outage { started, last_failure: now });
    }

    /// Whether an operation failed within this time.
    pub(super) fn has_failed_within(&self, time: Duration) -> bool {
        self.last_outage.lock().is_some_and(|outage| outage.last_failure.elapsed() < time)
    }

    /// How long all operations have failed; `None` if the last one did not.
    pub(super) fn outage(&self) -> Option<Duration> {
        let outage = self.last_outage.lock().filter(|_| self.is_failing.load(Ordering::Relaxed));
        outage.map(|outage| outage.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn failure() -> Result<()> {
        Err(StateError::Unavailable { store: "store".into(), problem: "".into(), is_unknown: true })
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_lasts_from_the_first_failure_to_the_first_response() {
        let availability = Availability::default();
        availability.record(&Ok(()));
        assert_eq!(availability.outage(), None);
        for seconds in 0..3 {
            availability.record(&failure());
            assert_eq!(availability.outage(), Some(SECOND * seconds));
            advance(SECOND).await;
        }
        // A state that refuses a change is available.
        availability.record::<()>(&Err(StateError::Contended));
        assert_eq!(availability.outage(), None);
        assert!(availability.has_failed_within(SECOND * 2));
        assert!(!availability.has_failed_within(SECOND));
        availability.record(&failure());
        assert_eq!(availability.outage(), Some(Duration::ZERO));
    }
}
