//! The time by the clock that all users of a state share.

use std::time::Duration;

#[cfg(any(feature = "postgres", feature = "valkey"))]
use super::Backend;
use super::State;
use super::clock::system_time;
#[cfg(any(feature = "postgres", feature = "valkey"))]
use super::store_clock::StoreClock;

impl State {
    /// The time since 1970 by the clock that the users of the state share: that of the store, as far as it is known, and
    /// otherwise that of this machine.
    #[doc(hidden)]
    #[must_use]
    pub fn time(&self) -> Duration {
        #[cfg(any(feature = "postgres", feature = "valkey"))]
        if let Some(time) = self.store_clock().and_then(StoreClock::now) {
            return time;
        }
        system_time()
    }

    /// How many milliseconds the clock of this machine is ahead of that of the store; negative if it is behind. `None` if
    /// the state is not in a store on the network, or if the store was not reached yet.
    #[must_use]
    pub fn clock_skew_ms(&self) -> Option<i64> {
        #[cfg(any(feature = "postgres", feature = "valkey"))]
        return self.store_clock()?.skew_ms();
        #[cfg(not(any(feature = "postgres", feature = "valkey")))]
        None
    }

    /// The clock of the store, if the state is in one on the network.
    #[cfg(any(feature = "postgres", feature = "valkey"))]
    fn store_clock(&self) -> Option<&StoreClock> {
        match &self.backend {
            #[cfg(feature = "valkey")]
            Backend::Valkey(valkey) => Some(valkey.clock()),
            #[cfg(feature = "postgres")]
            Backend::Postgres(postgres) => Some(postgres.clock()),
            _ => None,
        }
    }
}
