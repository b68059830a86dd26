//! How much a server says that means nothing.

use std::time::Duration;

/// How much is borne in each [`PERIOD`].
const BORNE: u32 = 1000;
const PERIOD: Duration = Duration::from_secs(60);

/// Counts noise.
#[derive(Debug, Default)]
pub(super) struct Meter {
    total: u64,
    since: Duration,
    lately: u32,
}

impl Meter {
    /// Counts one more, and tells whether it is too much.
    pub(super) fn note(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.since) >= PERIOD {
            (self.since, self.lately) = (now, 0);
        }
        self.total += 1;
        self.lately = self.lately.saturating_add(1);
        self.lately > BORNE
    }

    /// All that was counted.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_is_borne_and_a_flood_is_not() {
        let mut meter = Meter::default();
        let second = Duration::from_secs(1);
        assert!((0..1000).all(|_| !meter.note(second)));
        assert!(meter.note(second));
        assert!(!meter.note(second + PERIOD));
        assert_eq!(meter.total(), 1002);
    }
}
