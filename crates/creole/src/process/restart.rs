//! When a program that ended may be started again: after ever longer pauses, until it has run well for a while.

use std::time::Duration;

/// The pause after the first failure; it doubles with each further one.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// How long a program must have run to be started again at once after its first failure.
const BRIEF: Duration = Duration::from_secs(1);

/// How long a program must have run for its failures to be forgotten.
const HEALTHY: Duration = Duration::from_secs(60);

/// Whether a program may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Start,
    /// Not before this much time has passed; calls fail meanwhile, without waiting.
    Wait(Duration),
}

/// Failures of one program, and what follows from them. Times are of any clock of the owner.
#[derive(Clone, Debug, Default)]
pub struct Restarts {
    failures: u32,
    started: Option<Duration>,
    not_before: Duration,
}

impl Restarts {
    /// Whether the program may be started now.
    pub fn verdict(&self, now: Duration) -> Verdict {
        match self.not_before.checked_sub(now) {
            Some(wait) if !wait.is_zero() => Verdict::Wait(wait),
            _ => Verdict::Start,
        }
    }

    /// It was started.
    pub fn started(&mut self, now: Duration) {
        self.started = Some(now);
    }

    /// It ended, or could not be started. `dice` is any random number: pauses differ, so that programs which
    /// failed together do not come back together.
    pub fn ended(&mut self, now: Duration, dice: u64) {
        let ran = self.started.take().map_or(Duration::ZERO, |started| now.saturating_sub(started));
        if ran >= HEALTHY {
            self.failures = 0;
        }
        let pause = match self.failures {
            0 if ran >= BRIEF => Duration::ZERO,
            failures => FIRST.saturating_mul(1 << failures.min(6)).min(LONGEST),
        };
        self.failures = self.failures.saturating_add(1);
        // Between three quarters of the pause and all of it.
        let quarter = pause.as_millis() as u64 / 4;
        let less = Duration::from_millis(dice % (quarter + 1));
        self.not_before = now + pause - less;
    }

    /// How often it failed since it last ran well.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_never_exceed_it() {
        let (mut restarts, mut now) = (Restarts::default(), Duration::ZERO);
        assert_eq!(restarts.verdict(now), Verdict::Start);
        for expected in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            restarts.started(now);
            restarts.ended(now, 0);
            assert_eq!(restarts.verdict(now), Verdict::Wait(seconds(expected)));
            now += seconds(expected);
            assert_eq!(restarts.verdict(now), Verdict::Start);
        }
    }

    #[test]
    fn a_storm_of_a_thousand_deaths_starts_at_most_ten_times_a_minute() {
        for dice in [0, 1, 249, 250, u64::MAX, 0x5555_5555_5555] {
            let (mut restarts, mut now, mut starts) = (Restarts::default(), Duration::ZERO, 0);
            while now < seconds(60) {
                match restarts.verdict(now) {
                    Verdict::Start => {
                        starts += 1;
                        restarts.started(now);
                        restarts.ended(now, dice);
                    }
                    Verdict::Wait(wait) => now += wait,
                }
            }
            assert!((5..=10).contains(&starts), "{starts} starts with {dice}");
        }
    }

    #[test]
    fn a_healthy_minute_forgives_everything() {
        let mut restarts = Restarts::default();
        (0..20).for_each(|_| restarts.ended(seconds(1), 0));
        assert_eq!(restarts.failures(), 20);
        restarts.started(seconds(100));
        restarts.ended(seconds(159), 0);
        assert_eq!(restarts.verdict(seconds(159)), Verdict::Wait(seconds(60)));
        restarts.started(seconds(300));
        restarts.ended(seconds(360), 0);
        assert_eq!(restarts.failures(), 1);
        assert_eq!(restarts.verdict(seconds(360)), Verdict::Start, "it ran well until now");
        restarts.started(seconds(360));
        restarts.ended(seconds(360), 0);
        assert_eq!(restarts.verdict(seconds(360)), Verdict::Wait(seconds(2)));
    }
}
