//! Counts the tasks of this process by their status.

use std::sync::Arc;

use creole_proto::model::{TaskOutcome, TaskState};

use crate::telemetry::metrics::{GaugeGuard, Metrics, UpDownGauge, table};

/// The numbers of tasks by their status, if metrics are counted.
pub(super) struct TaskGauges(Option<[UpDownGauge; 4]>);

/// The statuses that are counted. A task that waits for input counts as working.
const STATUSES: [&str; 4] = ["working", "completed", "failed", "cancelled"];

impl TaskGauges {
    pub(super) fn new(metrics: Option<&Arc<Metrics>>) -> Self {
        let gauge = |metrics: &Arc<Metrics>| {
            STATUSES.map(|status| metrics.up_down(&table::TASKS, &[status]))
        };
        Self(metrics.map(gauge))
    }

    /// Counts a task in this state until the guard is dropped.
    pub(super) fn count(&self, state: &TaskState) -> Option<GaugeGuard> {
        let status = match state {
            TaskState::Working | TaskState::InputRequired(_) => 0,
            TaskState::Ended(TaskOutcome::Result(result)) if result.is_error => 2,
            TaskState::Ended(TaskOutcome::Relayed(relayed)) if relayed.is_error() => 2,
            TaskState::Ended(TaskOutcome::Fault(_)) => 2,
            TaskState::Ended(_) => 1,
            TaskState::Cancelled => 3,
        };
        self.0.as_ref().map(|gauges| gauges[status].hold())
    }
}
