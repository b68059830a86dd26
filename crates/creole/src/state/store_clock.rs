//! What a process knows of the clock of its store, and how fast the store answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::clock::system_time;
use crate::sync::Mutex;

/// The greatest difference between the clocks that is not reported.
const MAX_SKEW: Duration = Duration::from_secs(5);

/// The longest time to an answer that is not reported.
const MAX_LATENCY: Duration = Duration::from_millis(20);

/// How often the store is asked until it answers fast: the machine may be busy at that moment.
const ATTEMPTS: usize = 3;

/// After this time it is not asked again: it is slow, and the connection is waited for.
const MAX_TIME: Duration = Duration::from_millis(100);

/// The clock of a store, as of the last connection to it.
#[derive(Debug, Default)]
pub(super) struct StoreClock {
    reading: Mutex<Option<Reading>>,
    is_skew_reported: AtomicBool,
    is_latency_reported: AtomicBool,
}

/// What the store's clock showed at a moment of this process.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The time since 1970.
    time: Duration,
    at: Instant,
    /// How long the store took to tell it.
    latency: Duration,
}

impl StoreClock {
    /// Reads the clock with `ask`, which returns the time since 1970, and logs what is unusual about it. A store that does
    /// not tell the time leaves what was known.
    pub(super) async fn read<F>(&self, store: &str, mut ask: impl FnMut() -> F)
    where
        F: Future<Output = Option<Duration>>,
    {
        let (mut fastest, began): (Option<Reading>, _) = (None, Instant::now());
        for _ in 0..ATTEMPTS {
            let asked = Instant::now();
            let Some(answer) = ask().await else { break };
            let (at, latency) = (Instant::now(), asked.elapsed());
            if fastest.is_none_or(|reading| latency < reading.latency) {
                // The store told the time about in the middle between question and answer.
                fastest = Some(Reading { time: answer + latency / 2, at, latency });
            }
            if latency <= MAX_LATENCY || began.elapsed() >= MAX_TIME {
                break;
            }
        }
        if let Some(reading) = fastest {
            *self.reading.lock() = Some(reading);
            self.report(store, reading);
        }
    }

    /// The time that the store's clock shows now, since 1970. It does not depend on the clock of this machine.
    pub(super) fn now(&self) -> Option<Duration> {
        self.reading.lock().map(|reading| reading.time + reading.at.elapsed())
    }

    /// How many milliseconds the clock of this machine is ahead of that of the store; negative if it is behind.
    pub(super) fn skew_ms(&self) -> Option<i64> {
        self.now().map(|store_time| difference_ms(system_time(), store_time))
    }

    /// Logs each fact once, not with every connection.
    fn report(&self, store: &str, reading: Reading) {
        let skew_ms = difference_ms(system_time(), reading.time + reading.at.elapsed());
        let is_skewed = Duration::from_millis(skew_ms.unsigned_abs()) > MAX_SKEW;
        if is_skewed && !self.is_skew_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                store,
                skew_ms,
                "the clock of this machine differs from that of the state store; synchronize both"
            );
        }
        let is_slow = reading.latency > MAX_LATENCY;
        if is_slow && !self.is_latency_reported.swap(true, Ordering::Relaxed) {
            let latency_ms = u64::try_from(reading.latency.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(
                store,
                latency_ms,
                "the state store answers slowly; requests that need it wait for it"
            );
        }
    }
}

fn difference_ms(one: Duration, other: Duration) -> i64 {
    let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    milliseconds(one.saturating_sub(other)) - milliseconds(other.saturating_sub(one))
}

#[cfg(test)]
mod tests {
    use creole_test_wait::delay;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn the_fastest_answer_counts_and_the_time_goes_on_without_the_store() {
        let clock = StoreClock::default();
        assert_eq!((clock.now(), clock.skew_ms()), (None, None));
        let (mut latencies, told) = ([50, 30, 40].into_iter(), system_time() + SECOND * 600);
        let ask = || {
            let latency = Duration::from_millis(latencies.next().unwrap());
            async move {
                delay(latency).await;
                Some(told)
            }
        };
        clock.read("store", ask).await;
        // The last question took 40 ms, after the fastest answer.
        let expected = told + Duration::from_millis(30 / 2 + 40);
        assert_eq!(clock.now(), Some(expected));
        assert!(clock.is_latency_reported.load(Ordering::Relaxed));
        assert!(clock.is_skew_reported.load(Ordering::Relaxed));
        let skew = clock.skew_ms().unwrap();
        assert!((-600_100..-590_000).contains(&skew), "{skew}");
        advance(SECOND).await;
        assert_eq!(clock.now(), Some(expected + SECOND));
        // A store that does not tell the time changes nothing.
        clock.read("store", async || None).await;
        assert_eq!(clock.now(), Some(expected + SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_store_with_the_same_clock_is_asked_once_and_not_reported() {
        let (clock, mut questions) = (StoreClock::default(), 0);
        let ask = || {
            questions += 1;
            async { Some(system_time()) }
        };
        clock.read("store", ask).await;
        assert_eq!(questions, 1);
        let skew = clock.skew_ms().unwrap();
        assert!(skew.abs() < 1_000, "{skew}");
        let are_reported = [&clock.is_skew_reported, &clock.is_latency_reported];
        assert!(are_reported.iter().all(|it| !it.load(Ordering::Relaxed)));
    }
}
