//! Remembers when a state was unavailable.

use std::time::Duration;

use tokio::time::Instant;

use super::{Result, StateError};
use crate::sync::Mutex;

/// When a state was last unavailable to this process.
///
/// A missing heartbeat proves nothing after an outage: its process may not have reached the state.
#[derive(Debug, Default)]
pub(super) struct Availability {
    last_failure: Mutex<Option<Instant>>,
}

impl Availability {
    /// Records the result of an operation.
    pub(super) fn record<T>(&self, result: &Result<T>) {
        if matches!(result, Err(StateError::Unavailable { .. })) {
            *self.last_failure.lock() = Some(Instant::now());
        }
    }

    /// Whether an operation failed within this time.
    pub(super) fn has_failed_within(&self, time: Duration) -> bool {
        self.last_failure.lock().is_some_and(|last| last.elapsed() < time)
    }
}
