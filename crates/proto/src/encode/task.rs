//! Encodes tasks for a peer's rules. Both task models name the members and the final states differently.

use alloc::format;
use alloc::vec::Vec;

use super::frame::write_fault;
use super::input_request::write_input_requests;
use super::result::write_result;
use super::result_target::ResultTarget;
use super::{write_key, write_raw_member, write_text_member};
use crate::fault::{ErrorChannel, Fault};
use crate::model::{Task, TaskOutcome, TaskState, ToolResult, format_timestamp};
use crate::operation::Payload;
use crate::revision::TaskModel;

/// Writes the members of a task, with its input requests or its result where tasks contain them.
pub(crate) fn write_task(out: &mut Vec<u8>, task: &Task, target: &ResultTarget<'_>) {
    write_task_head(out, task, target);
    if target.rules.tasks != TaskModel::Extension {
        return;
    }
    match &task.state {
        TaskState::Working | TaskState::Cancelled => {}
        TaskState::InputRequired(input_requests) => {
            write_input_requests(out, input_requests, target.rules)
        }
        TaskState::Ended(TaskOutcome::Result(result)) => {
            write_task_outcome(out, &Payload::Tool(result.clone()), target);
        }
        TaskState::Ended(TaskOutcome::Relayed(relayed)) => {
            write_task_outcome(out, &Payload::Relayed(relayed.clone()), target);
        }
        TaskState::Ended(TaskOutcome::Fault(fault)) => match fault_as_result(fault, target) {
            Some(result) => write_task_outcome(out, &Payload::Tool(result), target),
            None => {
                write_key(out, "error");
                write_fault(out, fault, target.dialect, target.rules);
            }
        },
    }
}

/// Writes the members that every message about a task has (2025-11-25 schema, `Task`).
pub(crate) fn write_task_head(out: &mut Vec<u8>, task: &Task, target: &ResultTarget<'_>) {
    write_text_member(out, "taskId", &task.id);
    write_text_member(out, "status", task_status(&task.state, target));
    if let Some(message) = &task.message {
        write_text_member(out, "statusMessage", message);
    }
    write_text_member(out, "createdAt", &format_timestamp(task.created_ms));
    write_text_member(out, "lastUpdatedAt", &format_timestamp(task.updated_ms));
    let (ttl, poll) = match target.rules.tasks {
        TaskModel::Extension => ("ttlMs", "pollIntervalMs"),
        TaskModel::ClientRequested | TaskModel::Absent => ("ttl", "pollInterval"),
    };
    write_raw_member(out, ttl, &format!("{}", task.ttl_ms));
    write_raw_member(out, poll, &format!("{}", task.poll_ms));
}

/// The status of a task. A failure that is reported in a result means `completed` in the extension and `failed` before
/// it (2025-11-25 basic/utilities/tasks, task execution errors; SEP-2663, task status).
fn task_status(state: &TaskState, target: &ResultTarget<'_>) -> &'static str {
    let failed = match state {
        TaskState::Working => return "working",
        TaskState::InputRequired(_) => return "input_required",
        TaskState::Cancelled => return "cancelled",
        TaskState::Ended(TaskOutcome::Result(result)) => {
            result.is_error && target.rules.tasks != TaskModel::Extension
        }
        TaskState::Ended(TaskOutcome::Relayed(relayed)) => {
            relayed.is_error() && target.rules.tasks != TaskModel::Extension
        }
        TaskState::Ended(TaskOutcome::Fault(fault)) => {
            target.rules.tasks != TaskModel::Extension || fault_as_result(fault, target).is_none()
        }
    };
    if failed { "failed" } else { "completed" }
}

/// The tool result that reports a fault, if the fault is reported in a result.
fn fault_as_result(fault: &Fault, target: &ResultTarget<'_>) -> Option<ToolResult> {
    let row = target.dialect.error_row(fault.kind, target.rules);
    let in_result = matches!(row.channel, ErrorChannel::ToolResult { .. });
    in_result.then(|| ToolResult::error(row.format_message(fault)))
}

fn write_task_outcome(out: &mut Vec<u8>, result: &Payload, target: &ResultTarget<'_>) {
    write_key(out, "result");
    write_result(out, result, target);
}
