//! How often logins are made. A server that refuses every token must not open a browser again and again.

use std::time::Duration;

use creole_oauth::scopes::Scopes;
use tokio::time::Instant;

/// The time in which logins are counted.
const PERIOD: Duration = Duration::from_secs(600);

/// How often a person is asked within [`PERIOD`].
const MAX_PERSON_LOGINS: usize = 5;

/// How often a program logs in within [`PERIOD`] after a refusal.
const MAX_PROGRAM_LOGINS: usize = 20;

/// How often the same further scopes are asked for within [`PERIOD`].
const MAX_STEP_UPS: usize = 2;

/// The logins of the last minutes.
#[derive(Debug, Default)]
pub(super) struct LoginLimits {
    logins: Vec<Instant>,
    step_ups: Vec<(Instant, Scopes)>,
}

impl LoginLimits {
    /// Counts a login. Returns whether it may be made.
    pub(super) fn count_login(&mut self, asks_person: bool, now: Instant) -> bool {
        self.forget(now);
        let max = if asks_person { MAX_PERSON_LOGINS } else { MAX_PROGRAM_LOGINS };
        let may = self.logins.len() < max;
        if may {
            self.logins.push(now);
        }
        may
    }

    /// Forgets the last login that was counted, because no person could be asked.
    pub(super) fn uncount_login(&mut self) {
        self.logins.pop();
    }

    /// Counts a request for further scopes. Returns whether it may be made.
    pub(super) fn count_step_up(&mut self, scopes: &Scopes, now: Instant) -> bool {
        self.forget(now);
        let known = self.step_ups.iter().filter(|(_, known)| known == scopes).count();
        let may = known < MAX_STEP_UPS && self.step_ups.len() < MAX_PROGRAM_LOGINS;
        if may {
            self.step_ups.push((now, scopes.clone()));
        }
        may
    }

    fn forget(&mut self, now: Instant) {
        let is_recent = |at: &Instant| now.duration_since(*at) < PERIOD;
        self.logins.retain(is_recent);
        self.step_ups.retain(|(at, _)| is_recent(at));
    }
}

#[cfg(test)]
mod tests {
    use creole_oauth::scopes::Scopes;
    use tokio::time::{Duration, Instant};

    use super::{LoginLimits, MAX_PERSON_LOGINS, MAX_PROGRAM_LOGINS, PERIOD};

    #[test]
    fn logins_are_counted_for_ten_minutes() {
        let (mut limits, now) = (LoginLimits::default(), Instant::now());
        let count = |limits: &mut LoginLimits, asks_person, later| {
            (0..100).filter(|_| limits.count_login(asks_person, now + later)).count()
        };
        assert_eq!(count(&mut limits, true, Duration::ZERO), MAX_PERSON_LOGINS);
        let rest = MAX_PROGRAM_LOGINS - MAX_PERSON_LOGINS;
        assert_eq!(count(&mut limits, false, Duration::ZERO), rest);
        assert_eq!(count(&mut limits, true, PERIOD), MAX_PERSON_LOGINS);
    }

    #[test]
    fn a_login_for_which_no_person_could_be_asked_is_not_counted() {
        let (mut limits, now) = (LoginLimits::default(), Instant::now());
        for _ in 0..100 {
            assert!(limits.count_login(true, now));
            limits.uncount_login();
        }
        let counted = (0..100).filter(|_| limits.count_login(true, now)).count();
        assert_eq!(counted, MAX_PERSON_LOGINS);
    }

    #[test]
    fn the_same_scopes_are_asked_for_twice() {
        let (mut limits, now) = (LoginLimits::default(), Instant::now());
        let (write, read) = (Scopes::parse("write"), Scopes::parse("read"));
        let counted = [&write, &write, &write, &read].map(|it| limits.count_step_up(it, now));
        assert_eq!(counted, [true, true, false, true]);
        for number in 0..100 {
            limits.count_step_up(&Scopes::parse(&number.to_string()), now);
        }
        assert_eq!(limits.step_ups.len(), MAX_PROGRAM_LOGINS);
        assert!(limits.count_step_up(&write, now + PERIOD));
    }
}
