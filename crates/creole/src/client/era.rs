//! What is known of how a server wants to be spoken to, and for how long.

use std::time::Duration;

use creole_proto::revision::{Era, Rules};

/// How long a server of the handshake era counts as one. It never fails by being asked in the old way, so that
/// only time tells that it may have learnt the new one.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long any finding is believed at least: asking costs a request or a process.
const SHORTEST: Duration = Duration::from_secs(60);

/// How a server wants to be spoken to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// By requests that stand alone, in this revision.
    Stateless(&'static Rules),
    /// By a handshake.
    Handshake,
    /// By a handshake, over the transport of 2024-11-05.
    OldSse,
}

impl Found {
    /// The era that it is of.
    pub fn era(self) -> Era {
        match self {
            Self::Stateless(_) => Era::Stateless,
            Self::Handshake | Self::OldSse => Era::Handshake,
        }
    }
}

/// A finding that is believed for a while. Times are of any clock of the owner.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    found: Option<(Found, Duration)>,
    /// Whether nothing has confirmed it yet.
    is_guess: bool,
}

impl Memory {
    /// What is known, if that is still to be believed.
    pub fn recall(&self, now: Duration) -> Option<Found> {
        self.found.filter(|(_, until)| now < *until).map(|(found, _)| found)
    }

    /// Notes a finding; `fresh` is how long the server says that it stays true.
    pub fn learn(&mut self, found: Found, fresh: Duration, now: Duration) {
        let lasts = match found {
            Found::Stateless(_) => fresh.clamp(SHORTEST, LONGEST),
            Found::Handshake | Found::OldSse => LONGEST,
        };
        // What was learnt before keeps its end: being used proves nothing.
        let is_known = self.recall(now) == Some(found) && !std::mem::take(&mut self.is_guess);
        if !is_known {
            self.found = Some((found, now + lasts));
        }
    }

    /// Notes a finding that nothing has confirmed yet.
    pub fn guess(&mut self, found: Found, now: Duration) {
        (self.found, self.is_guess) = (Some((found, now + SHORTEST)), true);
    }

    /// Forgets what the server contradicted.
    pub fn forget(&mut self) {
        self.found = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole_proto::revision::Revision;

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    #[test]
    fn an_old_server_is_asked_again_after_a_day_however_much_it_is_used() {
        let mut memory = Memory::default();
        for hour in 0..24 {
            memory.learn(Found::Handshake, Duration::ZERO, hours(hour));
            assert_eq!(memory.recall(hours(hour)), Some(Found::Handshake));
        }
        assert_eq!(memory.recall(hours(24)), None);
    }

    #[test]
    fn a_guess_is_believed_briefly_unless_it_is_confirmed() {
        let mut memory = Memory::default();
        memory.guess(Found::Handshake, Duration::ZERO);
        assert_eq!(memory.recall(Duration::ZERO), Some(Found::Handshake));
        assert_eq!(memory.recall(SHORTEST), None);
        memory.guess(Found::Handshake, Duration::ZERO);
        memory.learn(Found::Handshake, Duration::ZERO, Duration::ZERO);
        assert_eq!(memory.recall(hours(23)), Some(Found::Handshake));
    }

    #[test]
    fn a_new_server_is_believed_for_as_long_as_it_says() {
        let found = Found::Stateless(Revision::newest(Era::Stateless).rules());
        let mut memory = Memory::default();
        memory.learn(found, Duration::ZERO, Duration::ZERO);
        assert_eq!(memory.recall(SHORTEST), None);
        memory.learn(found, hours(2), hours(1));
        assert_eq!(memory.recall(hours(2)), Some(found));
        assert_eq!(memory.recall(hours(3)), None);
        memory.learn(found, hours(2), hours(4));
        memory.forget();
        assert_eq!(memory.recall(hours(4)), None);
    }
}
