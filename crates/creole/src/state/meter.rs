//! Measures the operations on a state.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::{Result, StateError, StateFileError};
use crate::telemetry::metrics::{Gauge, Histogram, Metrics, table};

/// Counts the operations on a state by their outcome.
pub(super) struct StateMeter {
    metrics: Arc<Metrics>,
    is_up: Gauge,
    /// Exists from the start: an alert sees its first increase.
    _full: Histogram,
}

impl StateMeter {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        let is_up = metrics.gauge(&table::STATE_UP, &[]);
        is_up.set(1);
        let full = metrics.histogram(&table::STATE_OPERATIONS, &["write", "full"]);
        Self { metrics: Arc::clone(metrics), is_up, _full: full }
    }
}

/// Runs an operation and counts it, if there is a meter. `is_lost`: another writer was faster.
pub(super) async fn measure<T>(
    meter: Option<&StateMeter>,
    verb: &'static str,
    is_lost: fn(&T) -> bool,
    operation: impl Future<Output = Result<T>>,
) -> Result<T> {
    let Some(meter) = meter.filter(|meter| meter.metrics.is_enabled()) else {
        return operation.await;
    };
    let started = Instant::now();
    let result = operation.await;
    let outcome = match &result {
        Ok(value) if is_lost(value) => "lost",
        Ok(_) => "done",
        Err(error) => error_outcome(error),
    };
    meter.is_up.set(i64::from(!matches!(outcome, "timeout" | "failed")));
    meter.metrics.record(&table::STATE_OPERATIONS, &[verb, outcome], started.elapsed());
    result
}

fn error_outcome(error: &StateError) -> &'static str {
    match error {
        StateError::Full { .. } => "full",
        StateError::File { error: StateFileError::DiskFull(_), .. } => "full",
        StateError::File { error: StateFileError::Busy(_), .. }
        | StateError::Unavailable { is_unknown: true, .. } => "timeout",
        StateError::File { .. }
        | StateError::Stopped
        | StateError::Unavailable { .. }
        | StateError::Misconfigured { .. } => "failed",
        // The caller's values are at fault, and the state works.
        StateError::TooLong { .. }
        | StateError::RetentionTooLong { .. }
        | StateError::Contended
        | StateError::UnknownFormat { .. }
        | StateError::Trimmed { .. } => "lost",
    }
}

impl fmt::Debug for StateMeter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StateMeter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::state::{State, StateLimits};
    use crate::telemetry::metrics::SeriesValue;

    #[tokio::test]
    async fn operations_are_counted_by_their_outcome() {
        let metrics = Arc::new(Metrics::default());
        metrics.enable();
        let state = State::memory(StateLimits::default()).measured(&metrics);
        state.put("a", Bytes::from_static(b"1"), None).await.unwrap();
        assert_eq!(state.swap("a", None, Bytes::new(), None).await, Ok(None));
        state.get("a").await.unwrap();
        let snapshot = metrics.collect();
        for labels in [["write", "done"], ["write", "lost"], ["get", "done"]] {
            let value = snapshot.value(&table::STATE_OPERATIONS, &labels);
            assert!(
                matches!(value, Some(SeriesValue::Histogram(value)) if value.count == 1),
                "{labels:?}: {value:?}"
            );
        }
        assert_eq!(snapshot.value(&table::STATE_UP, &[]), Some(&SeriesValue::Integer(1)));
    }
}
