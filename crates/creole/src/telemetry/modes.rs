//! What the telemetry does for each call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the telemetry of a process does for each call. Empty: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes(u8);

impl Modes {
    /// Calls are counted and measured.
    pub const METRICS: Self = Self(1);
    /// A reader may want the records of calls.
    pub const RECORDS: Self = Self(1 << 1);
    /// A reader may want the messages of calls.
    pub const FRAMES: Self = Self(1 << 2);
    /// Calls may belong to traces.
    pub const TRACES: Self = Self(1 << 3);
    /// A reader may want a call only when it has ended.
    pub const LATE: Self = Self(1 << 4);
    /// A reader may want the records of calls that are not sampled.
    pub const UNSAMPLED: Self = Self(1 << 5);

    /// Whether everything is off.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a reader may want to know more of a call than its count.
    #[inline]
    pub(crate) fn reads_calls(self) -> bool {
        self.0 & !Self::METRICS.0 != 0
    }

    /// Whether one of these modes is on.
    pub fn contains(self, mode: Self) -> bool {
        self.0 & mode.0 != 0
    }
}

/// The modes of a telemetry, which may change at any time.
#[derive(Clone, Default)]
pub(crate) struct SharedModes(Arc<AtomicU8>);

impl SharedModes {
    #[inline]
    pub(crate) fn load(&self) -> Modes {
        Modes(self.0.load(Ordering::Relaxed))
    }

    /// The modes as a number, which is zero if everything is off.
    pub(crate) fn number(&self) -> Arc<AtomicU8> {
        Arc::clone(&self.0)
    }

    /// Turns a mode on or off.
    pub(super) fn set(&self, mode: Modes, is_on: bool) {
        match is_on {
            true => self.0.fetch_or(mode.0, Ordering::Relaxed),
            false => self.0.fetch_and(!mode.0, Ordering::Relaxed),
        };
    }
}
