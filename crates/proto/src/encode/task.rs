//! Tasks for a peer's rules: the same task has other names, and other ends, in each kind.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::frame::write_fault;
use super::question::input_requests;
use super::result::{Target, write_result};
use super::{key, raw_member, text_member};
use crate::fault::{Channel, Fault};
use crate::model::{Task, TaskEnd, TaskState, ToolResult};
use crate::op::Payload;
use crate::revision::Tasks;

/// Writes the members of a task, and what it asks or came to where tasks carry that.
pub(crate) fn write_task(out: &mut Vec<u8>, task: &Task, target: &Target<'_>) {
    write_task_head(out, task, target);
    if target.rules.tasks != Tasks::Extension {
        return;
    }
    match &task.state {
        TaskState::Working | TaskState::Cancelled => {}
        TaskState::InputRequired(asks) => input_requests(out, asks, target.rules),
        TaskState::Ended(TaskEnd::Result(result)) => {
            write_end(out, &Payload::Tool(result.clone()), target);
        }
        TaskState::Ended(TaskEnd::Relayed(relayed)) => {
            write_end(out, &Payload::Relayed(relayed.clone()), target);
        }
        TaskState::Ended(TaskEnd::Fault(fault)) => match told_as_result(fault, target) {
            Some(result) => write_end(out, &Payload::Tool(result), target),
            None => {
                key(out, "error");
                write_fault(out, fault, target.dialect, target.rules);
            }
        },
    }
}

/// Writes the members that every message about a task has.
pub(crate) fn write_task_head(out: &mut Vec<u8>, task: &Task, target: &Target<'_>) {
    text_member(out, "taskId", &task.id);
    text_member(out, "status", status(&task.state, target));
    if let Some(message) = &task.message {
        text_member(out, "statusMessage", message);
    }
    text_member(out, "createdAt", &moment(task.created_ms));
    text_member(out, "lastUpdatedAt", &moment(task.updated_ms));
    let (ttl, poll) = match target.rules.tasks {
        Tasks::Extension => ("ttlMs", "pollIntervalMs"),
        Tasks::Wanted | Tasks::Absent => ("ttl", "pollInterval"),
    };
    raw_member(out, ttl, &format!("{}", task.ttl_ms));
    raw_member(out, poll, &format!("{}", task.poll_ms));
}

/// The word for a task's state. A failure that is told as a result is a completed task of the extension and
/// a failed one before it (2025-11-25 basic/utilities/tasks, task execution errors; SEP-2663, task status).
fn status(state: &TaskState, target: &Target<'_>) -> &'static str {
    let failed = match state {
        TaskState::Working => return "working",
        TaskState::InputRequired(_) => return "input_required",
        TaskState::Cancelled => return "cancelled",
        TaskState::Ended(TaskEnd::Result(result)) => {
            result.is_error && target.rules.tasks != Tasks::Extension
        }
        TaskState::Ended(TaskEnd::Relayed(relayed)) => {
            relayed.is_error() && target.rules.tasks != Tasks::Extension
        }
        TaskState::Ended(TaskEnd::Fault(fault)) => {
            target.rules.tasks != Tasks::Extension || told_as_result(fault, target).is_none()
        }
    };
    if failed { "failed" } else { "completed" }
}

/// The result that a fault is told as, if it is told as one.
fn told_as_result(fault: &Fault, target: &Target<'_>) -> Option<ToolResult> {
    let row = target.dialect.error(fault.kind, target.rules);
    let in_result = matches!(row.channel, Channel::ToolResult { .. });
    in_result.then(|| ToolResult::error(row.message(fault)))
}

fn write_end(out: &mut Vec<u8>, result: &Payload, target: &Target<'_>) {
    key(out, "result");
    write_result(out, result, target);
}

/// A time as RFC 3339 writes it, in UTC.
fn moment(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The date so many days after the first of January 1970, counted in years that begin in March: there the day
/// that leap years have more is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, in_era) = (days / 146_097, days % 146_097);
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc_with_leap_days() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(moment(1_785_196_799_999), "2026-07-27T23:59:59.999Z");
        assert_eq!(moment(4_107_542_400_001), "2100-03-01T00:00:00.001Z");
    }
}
