//! Counts the protocol violations of a server.

use std::time::Duration;

/// Maximum number of violations in each [`PERIOD`].
const MAX_VIOLATIONS: usize = 1000;
const PERIOD: Duration = Duration::from_secs(60);

/// Limits the rate of violations.
#[derive(Debug, Default)]
pub(crate) struct ViolationCounter {
    period_start: Duration,
    /// The total at the start of the period.
    total_at_start: usize,
}

impl ViolationCounter {
    /// Takes the current total; returns whether too many of the violations are new.
    pub(crate) fn record_total(&mut self, total: usize, now: Duration) -> bool {
        if now.saturating_sub(self.period_start) >= PERIOD {
            (self.period_start, self.total_at_start) = (now, total);
        }
        total - self.total_at_start > MAX_VIOLATIONS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_is_borne_and_a_flood_is_not() {
        let (mut meter, second) = (ViolationCounter::default(), Duration::from_secs(1));
        assert!(!meter.record_total(1000, second));
        assert!(meter.record_total(1001, second));
        assert!(!meter.record_total(1002, second + PERIOD));
        assert!(!meter.record_total(2002, second + PERIOD));
        assert!(meter.record_total(2003, second + PERIOD));
    }
}
