//! Decides when a program that ended may be restarted: after increasing pauses, until it has run well for a while.

use std::time::Duration;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How long a program must have run to be restarted at once after its first failure.
const MIN_RUN: Duration = Duration::from_secs(1);

/// How long a program must have run for its failures to be forgotten.
const HEALTHY_RUN: Duration = Duration::from_secs(60);

/// Whether a program may be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// It may be started.
    Start,
    /// Not before this time has passed; calls fail meanwhile, without waiting.
    Wait(Duration),
}

/// The failures of one program, and the resulting pauses. Times are of any clock of the owner.
#[derive(Clone, Debug, Default)]
pub struct RestartPolicy {
    failures: u32,
    started_at: Option<Duration>,
    not_before: Duration,
}

impl RestartPolicy {
    /// Whether the program may be started now.
    pub fn decide(&self, now: Duration) -> RestartDecision {
        match self.not_before.checked_sub(now) {
            Some(wait) if !wait.is_zero() => RestartDecision::Wait(wait),
            _ => RestartDecision::Start,
        }
    }

    /// Records a start.
    pub fn record_start(&mut self, now: Duration) {
        self.started_at = Some(now);
    }

    /// Records an end, or a failed start. `dice` is any random number: pauses differ, so that programs that failed
    /// together do not restart together.
    pub fn record_end(&mut self, now: Duration, dice: u64) {
        let ran =
            self.started_at.take().map_or(Duration::ZERO, |started| now.saturating_sub(started));
        if ran >= HEALTHY_RUN {
            self.failures = 0;
        }
        let pause = match self.failures {
            0 if ran >= MIN_RUN => Duration::ZERO,
            failures => FIRST_PAUSE.saturating_mul(1 << failures.min(6)).min(MAX_PAUSE),
        };
        self.failures = self.failures.saturating_add(1);
        // Between three quarters of the pause and all of it.
        let quarter = pause.as_millis() as u64 / 4;
        let less = Duration::from_millis(dice % (quarter + 1));
        self.not_before = now + pause - less;
    }

    /// The number of failures since it last ran well.
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
        let (mut restarts, mut now) = (RestartPolicy::default(), Duration::ZERO);
        assert_eq!(restarts.decide(now), RestartDecision::Start);
        for expected in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            restarts.record_start(now);
            restarts.record_end(now, 0);
            assert_eq!(restarts.decide(now), RestartDecision::Wait(seconds(expected)));
            now += seconds(expected);
            assert_eq!(restarts.decide(now), RestartDecision::Start);
        }
    }

    #[test]
    fn a_storm_of_a_thousand_deaths_starts_at_most_ten_times_a_minute() {
        for dice in [0, 1, 249, 250, u64::MAX, 0x5555_5555_5555] {
            let (mut restarts, mut now, mut starts) = (RestartPolicy::default(), Duration::ZERO, 0);
            while now < seconds(60) {
                match restarts.decide(now) {
                    RestartDecision::Start => {
                        starts += 1;
                        restarts.record_start(now);
                        restarts.record_end(now, dice);
                    }
                    RestartDecision::Wait(wait) => now += wait,
                }
            }
            assert!((5..=10).contains(&starts), "{starts} starts with {dice}");
        }
    }

    #[test]
    fn a_healthy_minute_forgives_everything() {
        let mut restarts = RestartPolicy::default();
        (0..20).for_each(|_| restarts.record_end(seconds(1), 0));
        assert_eq!(restarts.failures(), 20);
        restarts.record_start(seconds(100));
        restarts.record_end(seconds(159), 0);
        assert_eq!(restarts.decide(seconds(159)), RestartDecision::Wait(seconds(60)));
        restarts.record_start(seconds(300));
        restarts.record_end(seconds(360), 0);
        assert_eq!(restarts.failures(), 1);
        assert_eq!(
            restarts.decide(seconds(360)),
            RestartDecision::Start,
            "the process ran long enough"
        );
        restarts.record_start(seconds(360));
        restarts.record_end(seconds(360), 0);
        assert_eq!(restarts.decide(seconds(360)), RestartDecision::Wait(seconds(2)));
    }
}
