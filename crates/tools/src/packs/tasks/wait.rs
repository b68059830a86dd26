//! Waits until a task has a certain status, set by any process.

use std::time::Duration;

use creole::{Context, ToolError};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::packs::tasks::task::{Task, TaskStatus};
use crate::packs::tasks::{TaskTools, not_found};

/// The polling interval for changes by other processes. Reading one row takes microseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The interval between progress notifications of a waiting call.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
pub(crate) struct WaitInput {
    id: String,
    status: TaskStatus,
    timeout_seconds: Option<u64>,
}

pub(crate) async fn wait(
    tasks: TaskTools,
    input: WaitInput,
    context: Context,
) -> Result<String, ToolError> {
    let limit = Duration::from_secs(input.timeout_seconds.unwrap_or(60));
    let (start, mut signed) = (Instant::now(), None);
    let end = start + limit;
    let mut changes = tasks.store.changes();
    loop {
        // Marked as seen before the task is read, so that a change in between is not missed.
        changes.mark_unchanged();
        let task = tasks.store.task(&input.id).await?.ok_or_else(|| not_found(&input.id))?;
        if task.status == input.status {
            return Ok(task.to_json());
        }
        let now = Instant::now();
        if now >= end {
            return Err(timeout_error(&task, input.status));
        }
        if signed.is_none_or(|last| now - last >= PROGRESS_INTERVAL) {
            report_progress(&context, &task, now - start, limit).await;
            signed = Some(now);
        }
        // A change and the timeout both mean to read again.
        _ = timeout_at(end.min(now + POLL_INTERVAL), changes.changed()).await;
    }
}

async fn report_progress(context: &Context, task: &Task, waited: Duration, limit: Duration) {
    let message = format!("{} is {}", task.id, task.status);
    context.progress(waited.as_secs_f64(), Some(limit.as_secs_f64()), Some(&message)).await;
}

fn timeout_error(task: &Task, wanted: TaskStatus) -> ToolError {
    let Task { id, status, .. } = task;
    ToolError::Failed(format!("error: timed out waiting for {id} to be {wanted}; it is {status}"))
}
