//! The clock of a state. Every operation carries the time at which it happens, so that tests decide it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The clock by which the values of a state expire.
#[derive(Debug, Clone)]
pub(super) enum Clock {
    /// The monotonic clock of the process: the time since this moment.
    Process(Instant),
    /// That of the machine, which other processes share: the time since 1970.
    #[cfg(feature = "sqlite")]
    System,
    /// That of the store, which all its clients share.
    #[cfg(any(feature = "postgres", feature = "valkey"))]
    Store,
    /// That of a test, which alone moves it.
    #[cfg(test)]
    Manual(ManualClock),
}

impl Clock {
    /// The clock of the process.
    pub(super) fn process() -> Self {
        Self::Process(Instant::now())
    }

    /// The time.
    pub(super) fn now(&self) -> Duration {
        match self {
            Self::Process(start) => start.elapsed(),
            #[cfg(feature = "sqlite")]
            Self::System => system_time(),
            // Not that of the store, which alone decides what has expired.
            #[cfg(any(feature = "postgres", feature = "valkey"))]
            Self::Store => system_time(),
            #[cfg(test)]
            Self::Manual(clock) => clock.now(),
        }
    }

    /// The time that a store uses instead of its own clock: only that of a test.
    #[cfg(any(feature = "postgres", feature = "valkey"))]
    pub(super) fn given(&self) -> Option<Duration> {
        match self {
            #[cfg(test)]
            Self::Manual(clock) => Some(clock.now()),
            _ => None,
        }
    }
}

/// The time since 1970 by the clock of the machine.
pub(super) fn system_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A clock that stands still until it is moved.
#[cfg(test)]
#[derive(Debug, Clone)]
pub(super) struct ManualClock(std::sync::Arc<crate::sync::Mutex<Duration>>);

#[cfg(test)]
impl ManualClock {
    /// A clock that shows the present time.
    pub(super) fn start() -> Self {
        Self(std::sync::Arc::new(crate::sync::Mutex::new(system_time())))
    }

    /// Moves it forward.
    pub(super) fn advance(&self, by: Duration) {
        *self.0.lock() += by;
    }

    fn now(&self) -> Duration {
        *self.0.lock()
    }
}
