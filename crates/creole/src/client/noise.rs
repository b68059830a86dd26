//! How much a server says that means nothing.

use std::time::Duration;

/// How much is borne in each [`PERIOD`].
const BORNE: usize = 1000;
const PERIOD: Duration = Duration::from_secs(60);

/// Watches how noise grows.
#[derive(Debug, Default)]
pub(super) struct Meter {
    since: Duration,
    /// How much there had been by then.
    before: usize,
}

impl Meter {
    /// Takes how much there is by now, and tells whether too much of it is new.
    pub(super) fn note(&mut self, total: usize, now: Duration) -> bool {
        if now.saturating_sub(self.since) >= PERIOD {
            (self.since, self.before) = (now, total);
        }
        total - self.before > BORNE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banner_is_borne_and_a_flood_is_not() {
        let (mut meter, second) = (Meter::default(), Duration::from_secs(1));
        assert!(!meter.note(1000, second));
        assert!(meter.note(1001, second));
        assert!(!meter.note(1002, second + PERIOD));
        assert!(!meter.note(2002, second + PERIOD));
        assert!(meter.note(2003, second + PERIOD));
    }
}
