//! What operators see of a session.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Session;

impl Session {
    /// How long it is open.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// The number of connections that read its streams.
    pub(crate) fn reader_count(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }
}
