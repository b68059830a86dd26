//! The pause between attempts to connect to a server that cannot be reached.

use std::time::Duration;

use tokio::time::Instant;

use crate::random;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The number of failures after which the pause no longer grows.
const GROWING_FAILURES: u32 = 6;

/// The failed attempts since the last success.
#[derive(Debug, Default)]
pub(super) struct ConnectAttempts {
    failures: u32,
    next_attempt: Option<Instant>,
}

impl ConnectAttempts {
    /// How long to wait before the next attempt.
    pub(super) fn remaining_pause(&self, now: Instant) -> Duration {
        self.next_attempt.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    /// Records a failure. Returns whether it is the first one.
    pub(super) fn record_failure(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let doublings = (self.failures - 1).min(GROWING_FAILURES);
        let pause = (FIRST_PAUSE * 2u32.pow(doublings)).min(LONGEST_PAUSE);
        self.next_attempt = Some(now + pause.mul_f64(jitter()));
        self.failures == 1
    }

    /// Records a success. Returns whether attempts had failed before.
    pub(super) fn record_success(&mut self) -> bool {
        std::mem::take(self).failures > 0
    }
}

/// A factor between a half and one, so that replicas do not connect all at once.
fn jitter() -> f64 {
    let random = random::random_bytes::<1>().map_or(u8::MAX, |[byte]| byte);
    0.5 + f64::from(random) / 510.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_to_its_limit_and_ends_with_a_success() {
        let (mut attempts, now) = (ConnectAttempts::default(), Instant::now());
        assert_eq!(attempts.remaining_pause(now), Duration::ZERO);
        for failure in 0..40 {
            assert_eq!(attempts.record_failure(now), failure == 0);
            let longest = LONGEST_PAUSE.min(FIRST_PAUSE * 2u32.pow(failure.min(10)));
            let pause = attempts.remaining_pause(now);
            assert!(pause >= longest / 2 && pause <= longest, "{failure}: {pause:?}");
            assert_eq!(attempts.remaining_pause(now + longest), Duration::ZERO);
        }
        assert!(attempts.record_success());
        assert!(!attempts.record_success());
        assert_eq!(attempts.remaining_pause(now), Duration::ZERO);
    }
}
