//! Caches which eras a server supports, and for how long.

use std::time::Duration;

use creole_proto::revision::{Era, PerEra, Rules};

/// How long it is assumed that a server supports the handshake era, or lacks an era. A handshake with a server does not
/// start to fail when the server adds the stateless era, so only a new probe after this time can detect that.
pub(super) const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// The minimum lifetime of an entry: a probe costs a request or a process.
pub(super) const MIN_AGE: Duration = Duration::from_secs(60);

/// The detected era of a server, and how it is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectedEra {
    rules: &'static Rules,
    is_legacy_sse: bool,
}

impl DetectedEra {
    /// The handshake era, over the HTTP+SSE transport of 2024-11-05.
    pub const LEGACY_SSE: Self = Self { rules: Rules::NEWEST_HANDSHAKE, is_legacy_sse: true };

    /// The era of these rules. A handshake negotiates the revision each time, so all revisions with one are the same
    /// finding.
    pub fn of(rules: &'static Rules) -> Self {
        let rules = if rules.has_handshake() { Rules::NEWEST_HANDSHAKE } else { rules };
        Self { rules, is_legacy_sse: false }
    }

    /// The era.
    pub fn era(self) -> Era {
        self.rules.era
    }

    /// Whether this is its era.
    #[cfg(feature = "http")]
    pub(super) fn is_of(self, era: Era) -> bool {
        self.rules.is_of(era)
    }

    /// Whether the server has only the HTTP+SSE transport of 2024-11-05.
    pub fn is_legacy_sse(self) -> bool {
        self.is_legacy_sse
    }

    /// Whether a server that refuses the handshake may still have that transport.
    #[cfg(feature = "http")]
    pub(super) fn may_be_legacy_sse(self) -> bool {
        self.rules.has_handshake() && !self.is_legacy_sse
    }
}

/// The eras that a server supports; `None` if that is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EraSupport(PerEra<Option<bool>>);

impl EraSupport {
    /// The support of a server that supports both eras.
    pub const BOTH: Self = Self(PerEra { handshake: Some(true), stateless: Some(true) });

    /// The support of a server that supports only this era.
    pub(super) fn only(era: Era) -> Self {
        Self(PerEra::from_fn(|each| Some(each == era)))
    }

    /// Whether the server supports this era, if that is known.
    pub fn supports(self, era: Era) -> Option<bool> {
        self.0.get(era)
    }

    /// The best era for a caller of this era: its own unless the server lacks it. `None` while that is unknown.
    pub fn era_for(self, caller: Era) -> Option<Era> {
        self.supports(caller).map(|speaks| if speaks { caller } else { caller.other() })
    }
}

/// Entries that expire. Times are of any clock of the owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct EraCache(PerEra<Option<EraFinding>>);

#[derive(Clone, Copy, Debug)]
struct EraFinding {
    /// The detected form of the era; `None` if the server lacks it.
    detected: Option<DetectedEra>,
    until: Duration,
}

impl EraCache {
    /// The eras that the server supports, by the entries that have not expired.
    pub(crate) fn support(&self, now: Duration) -> EraSupport {
        let speaks = |era| self.current(era, now).map(|finding| finding.detected.is_some());
        EraSupport(PerEra::from_fn(speaks))
    }

    /// The detected form of this era, if the server is known to support it.
    pub(crate) fn detected_in(&self, era: Era, now: Duration) -> Option<DetectedEra> {
        self.current(era, now).and_then(|finding| finding.detected)
    }

    /// The best era for a caller of this era, as far as known.
    #[cfg(test)]
    fn best_for(&self, caller: Era, now: Duration) -> Option<DetectedEra> {
        let era = self.support(now).era_for(caller)?;
        self.detected_in(era, now)
    }

    /// Records that the server supports an era; `fresh` is the time for which the server declares this valid.
    pub(crate) fn learn(&mut self, detected: DetectedEra, fresh: Duration, now: Duration) {
        let lasts = match detected.rules.cache_hints {
            true => fresh.clamp(MIN_AGE, MAX_AGE),
            false => MAX_AGE,
        };
        // An earlier entry keeps its expiry: its use proves nothing.
        if self.detected_in(detected.era(), now) != Some(detected) {
            let finding = EraFinding { detected: Some(detected), until: now + lasts };
            *self.0.get_mut(detected.era()) = Some(finding);
        }
    }

    /// Records that the server lacks an era.
    pub(crate) fn mark_missing(&mut self, era: Era, lasts: Duration, now: Duration) {
        *self.0.get_mut(era) = Some(EraFinding { detected: None, until: now + lasts });
    }

    /// Removes an entry that the server contradicted.
    pub(crate) fn forget(&mut self, era: Era) {
        *self.0.get_mut(era) = None;
    }

    fn current(&self, era: Era, now: Duration) -> Option<EraFinding> {
        self.0.get(era).filter(|finding| now < finding.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    fn stateless() -> DetectedEra {
        DetectedEra::of(Rules::CANONICAL)
    }

    fn handshake() -> DetectedEra {
        DetectedEra::of(Rules::NEWEST_HANDSHAKE)
    }

    #[test]
    fn an_old_server_is_probed_again_after_a_day() {
        let mut memory = EraCache::default();
        memory.mark_missing(Era::Stateless, MAX_AGE, hours(0));
        for hour in 0..24 {
            memory.learn(handshake(), Duration::ZERO, hours(hour));
            assert_eq!(memory.best_for(Era::Stateless, hours(hour)), Some(handshake()));
        }
        assert_eq!(memory.best_for(Era::Stateless, hours(24)), None);
    }

    #[test]
    fn a_caller_is_served_in_its_own_era_by_a_server_of_both() {
        let mut memory = EraCache::default();
        memory.learn(stateless(), hours(1), Duration::ZERO);
        assert_eq!(memory.best_for(Era::Stateless, Duration::ZERO), Some(stateless()));
        assert_eq!(memory.best_for(Era::Handshake, Duration::ZERO), None, "the era was not probed");
        memory.learn(DetectedEra::LEGACY_SSE, Duration::ZERO, Duration::ZERO);
        assert_eq!(memory.best_for(Era::Handshake, Duration::ZERO), Some(DetectedEra::LEGACY_SSE));
        assert_eq!(memory.best_for(Era::Stateless, Duration::ZERO), Some(stateless()));
        assert_eq!(memory.support(Duration::ZERO), EraSupport::BOTH);
    }

    #[test]
    fn a_caller_is_served_in_the_other_era_by_a_server_that_lacks_its_own() {
        let mut memory = EraCache::default();
        memory.mark_missing(Era::Handshake, MIN_AGE, Duration::ZERO);
        assert_eq!(
            memory.best_for(Era::Handshake, Duration::ZERO),
            None,
            "the other era is unknown"
        );
        memory.learn(stateless(), hours(1), Duration::ZERO);
        assert_eq!(memory.best_for(Era::Handshake, Duration::ZERO), Some(stateless()));
        assert_eq!(
            memory.support(MIN_AGE).era_for(Era::Handshake),
            None,
            "the era is probed again"
        );
        memory.learn(handshake(), Duration::ZERO, MIN_AGE);
        assert_eq!(memory.best_for(Era::Handshake, MIN_AGE), Some(handshake()));
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
