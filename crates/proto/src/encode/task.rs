//! Tasks for a peer's rules: the same task has other names, and other ends, in each kind.

use alloc::format;
use alloc::vec::Vec;

use super::frame::write_fault;
use super::question::input_requests;
use super::result::{Target, write_result};
use super::{key, raw_member, text_member};
use crate::fault::{Channel, Fault};
use crate::model::{Task, TaskEnd, TaskState, ToolResult, moment};
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
