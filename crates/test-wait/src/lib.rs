//! How tests wait: [`eventually`] for a condition, [`never_within`] for its absence, [`delay`] for a time.
//!
//! This is the only file whose tests' code sleeps. A test that sleeps and then looks is slow on a fast machine and
//! fails on a slow one. A test that waits for a condition is neither. `cargo xtask tidy` checks it.
//!
//! The functions here use tokio's clock. With `start_paused` the clock moves when all tasks are idle, so a wait takes
//! no real time. The functions of [`blocking`] are for threads and processes, which have the real clock.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long a condition may take to become true. A test that fails takes this long, a test that passes does not.
pub const PATIENCE: Duration = Duration::from_secs(60);

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(16);

/// A condition: `bool`, or an `Option` whose value the wait returns.
pub trait Condition {
    /// The result of the wait.
    type Value;

    /// The value, if the condition is met.
    fn value(self) -> Option<Self::Value>;
}

impl Condition for bool {
    type Value = ();

    fn value(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Condition for Option<T> {
    type Value = T;

    fn value(self) -> Self {
        self
    }
}

/// The text of a failure: a string, or a closure that is called when the test fails.
pub trait Description {
    /// The text.
    fn text(&self) -> String;
}

impl Description for &str {
    fn text(&self) -> String {
        (*self).to_owned()
    }
}

impl<F: Fn() -> String> Description for F {
    fn text(&self) -> String {
        self()
    }
}

/// Waits until the condition is met.
///
/// # Panics
/// When [`PATIENCE`] is over. `what` says what is missing then.
pub async fn eventually<C: Condition>(
    what: impl Description,
    mut condition: impl FnMut() -> C,
) -> C::Value {
    eventually_async(what, async || condition()).await
}

/// Like [`eventually`], for a condition that takes a request or a connection to look at.
///
/// # Panics
/// When [`PATIENCE`] is over. `what` says what is missing then.
pub async fn eventually_async<C: Condition>(
    what: impl Description,
    mut condition: impl AsyncFnMut() -> C,
) -> C::Value {
    let end = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(value) = condition().await.value() {
            return value;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {}", what.text());
        sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// Asserts that the condition is not met for this time.
///
/// # Panics
/// When it is met. `what` says what happened then.
pub async fn never_within(
    time: Duration,
    what: impl Description,
    mut condition: impl FnMut() -> bool,
) {
    let end = Instant::now() + time;
    loop {
        assert!(!condition(), "{}", what.text());
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        sleep(left.min(LONGEST_PAUSE)).await;
    }
}

/// Lets time pass: in a test double that is slow, or on a paused clock until something expires.
///
/// On the real clock it is for what no condition shows: the age of a list, or the processor time of an idle process.
pub async fn delay(time: Duration) {
    sleep(time).await;
}

/// The same waits for threads and processes, on the real clock.
pub mod blocking {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::{Condition, Description, FIRST_PAUSE, LONGEST_PAUSE, PATIENCE};

    /// Waits until the condition is met.
    ///
    /// # Panics
    /// When [`PATIENCE`] is over. `what` says what is missing then.
    #[track_caller]
    pub fn eventually<C: Condition>(
        what: impl Description,
        condition: impl FnMut() -> C,
    ) -> C::Value {
        match within(PATIENCE, condition) {
            Some(value) => value,
            None => panic!("not within {PATIENCE:?}: {}", what.text()),
        }
    }

    /// Waits until the condition is met, at most for this time. `None` if it is not met by then.
    pub fn within<C: Condition>(
        time: Duration,
        mut condition: impl FnMut() -> C,
    ) -> Option<C::Value> {
        let end = Instant::now() + time;
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(value) = condition().value() {
                return Some(value);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            sleep(pause.min(left));
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }

    /// Asserts that the condition is not met for this time.
    ///
    /// # Panics
    /// When it is met. `what` says what happened then.
    #[track_caller]
    pub fn never_within(time: Duration, what: impl Description, condition: impl FnMut() -> bool) {
        assert!(within(time, condition).is_none(), "{}", what.text());
    }

    /// Lets time pass: in a test double that is slow, or for what no condition shows, such as the age of a list or the
    /// processor time of an idle process.
    pub fn delay(time: Duration) {
        sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_when_its_condition_is_met_and_returns_its_value() {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let value = eventually("a second", || (began.elapsed() >= second).then_some(7)).await;
        assert_eq!(value, 7);
        assert!(began.elapsed() < second + LONGEST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 60s: the sun")]
    async fn a_condition_that_is_never_met_fails_with_its_description() {
        eventually(|| "the sun".to_owned(), || false).await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "it ended")]
    async fn a_late_event_fails_a_check_that_it_must_not_happen() {
        let began = Instant::now();
        let late = Duration::from_millis(900);
        never_within(late, "too early", || began.elapsed() >= late * 2).await;
        never_within(late, "it ended", || began.elapsed() >= late * 2).await;
    }

    #[test]
    fn a_thread_waits_in_the_same_way() {
        let mut looks = 0..3;
        blocking::eventually("three looks", || looks.next().is_none());
        assert_eq!(blocking::within(Duration::ZERO, || None::<u8>), None);
        let fails = || blocking::never_within(Duration::from_secs(9), "it ended", || true);
        let failure = catch_unwind(AssertUnwindSafe(fails)).unwrap_err();
        assert_eq!(failure.downcast_ref::<String>().map(String::as_str), Some("it ended"));
    }
}
