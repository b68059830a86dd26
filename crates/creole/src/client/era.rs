//! What is known of the eras that a server speaks, and for how long.

use std::time::Duration;

use creole_proto::revision::{Era, Rules};

/// How long it is believed that a server speaks a handshake, or lacks an era. A server of the handshake era never fails
/// by being asked in the old way, so that only time tells that it may have learnt the new one.
pub(super) const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// How long any finding is believed at least: asking costs a request or a process.
pub(super) const MIN_AGE: Duration = Duration::from_secs(60);

/// How a server wants to be spoken to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DetectedEra {
    /// By requests that stand alone, in this revision.
    Stateless(&'static Rules),
    /// By a handshake.
    Handshake,
    /// By a handshake, over the transport of 2024-11-05.
    LegacySse,
}

impl DetectedEra {
    /// The era that it is of.
    pub fn era(self) -> Era {
        match self {
            Self::Stateless(_) => Era::Stateless,
            Self::Handshake | Self::LegacySse => Era::Handshake,
        }
    }
}

/// The eras that a server speaks; nothing where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EraSupport {
    /// Whether it takes part in a handshake.
    pub handshake: Option<bool>,
    /// Whether it answers requests that stand alone.
    pub stateless: Option<bool>,
}

impl EraSupport {
    /// Whether the server speaks this era, if that is known.
    pub fn speaks(self, era: Era) -> Option<bool> {
        match era {
            Era::Handshake => self.handshake,
            Era::Stateless => self.stateless,
        }
    }

    /// The era that a caller of this era is best served in: its own unless the server lacks it. Nothing while nobody
    /// knows whether it does.
    pub fn era_for(self, caller: Era) -> Option<Era> {
        self.speaks(caller).map(|speaks| if speaks { caller } else { other_era(caller) })
    }
}

/// The era that this is not.
pub(super) fn other_era(era: Era) -> Era {
    match era {
        Era::Handshake => Era::Stateless,
        Era::Stateless => Era::Handshake,
    }
}

/// Findings that are believed for a while. Times are of any clock of the owner.
#[derive(Clone, Debug, Default)]
pub struct EraCache {
    handshake: Option<EraFinding>,
    stateless: Option<EraFinding>,
}

#[derive(Clone, Copy, Debug)]
struct EraFinding {
    /// How the era is spoken; nothing if it is not.
    detected: Option<DetectedEra>,
    until: Duration,
}

impl EraCache {
    /// The eras that the server speaks, as far as that is still to be believed.
    pub fn support(&self, now: Duration) -> EraSupport {
        let speaks = |era| self.current(era, now).map(|finding| finding.detected.is_some());
        EraSupport { handshake: speaks(Era::Handshake), stateless: speaks(Era::Stateless) }
    }

    /// How the server is spoken to in this era, if it is known to speak it.
    pub fn detected_in(&self, era: Era, now: Duration) -> Option<DetectedEra> {
        self.current(era, now).and_then(|finding| finding.detected)
    }

    /// How a caller of this era is best served, as far as that is known.
    pub fn best_for(&self, caller: Era, now: Duration) -> Option<DetectedEra> {
        let era = self.support(now).era_for(caller)?;
        self.detected_in(era, now)
    }

    /// Notes that an era is spoken; `fresh` is how long the server says that this stays true.
    pub fn learn(&mut self, found: DetectedEra, fresh: Duration, now: Duration) {
        let lasts = match found {
            DetectedEra::Stateless(_) => fresh.clamp(MIN_AGE, MAX_AGE),
            DetectedEra::Handshake | DetectedEra::LegacySse => MAX_AGE,
        };
        // What was learnt before keeps its end: being used proves nothing.
        if self.detected_in(found.era(), now) != Some(found) {
            *self.finding_mut(found.era()) =
                Some(EraFinding { detected: Some(found), until: now + lasts });
        }
    }

    /// Notes that an era is not spoken.
    pub fn mark_missing(&mut self, era: Era, lasts: Duration, now: Duration) {
        *self.finding_mut(era) = Some(EraFinding { detected: None, until: now + lasts });
    }

    /// Forgets what the server contradicted.
    pub fn forget(&mut self, era: Era) {
        *self.finding_mut(era) = None;
    }

    fn current(&self, era: Era, now: Duration) -> Option<EraFinding> {
        let finding = match era {
            Era::Handshake => self.handshake,
            Era::Stateless => self.stateless,
        };
        finding.filter(|finding| now < finding.until)
    }

    fn finding_mut(&mut self, era: Era) -> &mut Option<EraFinding> {
        match era {
            Era::Handshake => &mut self.handshake,
            Era::Stateless => &mut self.stateless,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole_proto::revision::Revision;

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    fn stateless() -> DetectedEra {
        DetectedEra::Stateless(Revision::newest(Era::Stateless).rules())
    }

    #[test]
    fn an_old_server_is_asked_again_after_a_day_however_much_it_is_used() {
        let mut memory = EraCache::default();
        memory.mark_missing(Era::Stateless, MAX_AGE, hours(0));
        for hour in 0..24 {
            memory.learn(DetectedEra::Handshake, Duration::ZERO, hours(hour));
            assert_eq!(memory.best_for(Era::Stateless, hours(hour)), Some(DetectedEra::Handshake));
        }
        assert_eq!(memory.best_for(Era::Stateless, hours(24)), None);
    }

    #[test]
    fn a_caller_is_served_in_its_own_era_by_a_server_that_speaks_both() {
        let mut memory = EraCache::default();
        memory.learn(stateless(), hours(1), Duration::ZERO);
        assert_eq!(memory.best_for(Era::Stateless, Duration::ZERO), Some(stateless()));
        assert_eq!(memory.best_for(Era::Handshake, Duration::ZERO), None, "nobody tried");
        memory.learn(DetectedEra::LegacySse, Duration::ZERO, Duration::ZERO);
        assert_eq!(memory.best_for(Era::Handshake, Duration::ZERO), Some(DetectedEra::LegacySse));
        assert_eq!(memory.best_for(Era::Stateless, Duration::ZERO), Some(stateless()));
        let both = EraSupport { handshake: Some(true), stateless: Some(true) };
        assert_eq!(memory.support(Duration::ZERO), both);
    }

    #[test]
    fn a_caller_is_served_in_the_other_era_by_a_server_that_lacks_its_own() {
        let mut memory = EraCache::default();
        memory.mark_missing(Era::Handshake, MIN_AGE, Duration::ZERO);
        assert_eq!(memory.best_for(Era::Handshake, Duration::ZERO), None, "nothing else is known");
        memory.learn(stateless(), hours(1), Duration::ZERO);
        assert_eq!(memory.best_for(Era::Handshake, Duration::ZERO), Some(stateless()));
        assert_eq!(memory.support(MIN_AGE).era_for(Era::Handshake), None, "it is tried again");
        memory.learn(DetectedEra::Handshake, Duration::ZERO, MIN_AGE);
        assert_eq!(memory.best_for(Era::Handshake, MIN_AGE), Some(DetectedEra::Handshake));
    }

    #[test]
    fn a_new_server_is_believed_for_as_long_as_it_says() {
        let mut memory = EraCache::default();
        let recall = |memory: &EraCache, now| memory.best_for(Era::Stateless, now);
        memory.learn(stateless(), Duration::ZERO, Duration::ZERO);
        assert_eq!(recall(&memory, MIN_AGE), None);
        memory.learn(stateless(), hours(2), hours(1));
        assert_eq!(recall(&memory, hours(2)), Some(stateless()));
        assert_eq!(recall(&memory, hours(3)), None);
        memory.learn(stateless(), hours(2), hours(4));
        memory.forget(Era::Stateless);
        assert_eq!(recall(&memory, hours(4)), None);
    }
}
