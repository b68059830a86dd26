//! How long to wait before a request is repeated.

use std::time::Duration;

use creole::internal::telemetry::trace::new_span_id;

/// The first wait.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait that we choose.
const LONGEST: Duration = Duration::from_secs(30);

/// The longest wait that a collector may demand.
const LONGEST_DEMANDED: Duration = Duration::from_secs(300);

/// The waits between repeated requests: each twice as long as the one before.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// The next wait. The collector may have demanded one. Processes that lost their collector at the same time do not
    /// return at the same time.
    pub(super) fn next_wait(&mut self, demanded: Option<Duration>) -> Duration {
        let spread = f64::from(new_span_id()[0]) / 255.0;
        let own = self.next;
        self.next = (own * 2).min(LONGEST);
        match demanded {
            Some(demanded) => demanded.min(LONGEST_DEMANDED).mul_f64(1.0 + 0.25 * spread),
            None => own.mul_f64(0.75 + 0.25 * spread),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_thirty_seconds() {
        let mut backoff = Backoff::default();
        for longest in [1, 2, 4, 8, 16, 30, 30] {
            let wait = backoff.next_wait(None);
            let longest = Duration::from_secs(longest);
            assert!(wait <= longest && wait >= longest.mul_f64(0.75), "{wait:?}");
        }
    }

    #[test]
    fn a_demanded_wait_is_honoured_within_its_limit() {
        let mut backoff = Backoff::default();
        let wait = backoff.next_wait(Some(Duration::from_secs(7)));
        assert!(wait >= Duration::from_secs(7) && wait <= Duration::from_secs(10), "{wait:?}");
        let wait = backoff.next_wait(Some(Duration::from_secs(1_000_000)));
        assert!(wait <= LONGEST_DEMANDED.mul_f64(1.25), "{wait:?}");
    }
}
