//! Reads the tasks of both eras into one shape.
//!
//! In 2025-11-25 a finished task does not contain its result: `tasks/result` fetches it
//! (2025-11-25 schema, `GetTaskPayloadRequest`). Such a task is read as an empty result, or as a fault with only the
//! status message.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::sync::Arc;

use super::errors;
use super::input_requests::read_input_requests;
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::model::{Task, TaskOutcome, TaskState, ToolResult, milliseconds};
use crate::operation::{Outcome, RelayedKind, RelayedResult, TaskPage};
use crate::revision::{Rules, TaskModel};
use crate::wire::{Object, Raw};

/// The polling interval if the server does not state one.
const DEFAULT_POLL_MS: u64 = 1000;

/// Reads the result that turns a call into a task.
pub(super) fn read_created(
    result: Object<'_>,
    rules: &'static Rules,
    dialect: &Dialect,
    max_input_requests: usize,
) -> Option<Task> {
    match rules.tasks {
        TaskModel::ClientRequested => {
            let task = result.get("task").and_then(Object::new)?;
            read_task(task, rules, dialect, max_input_requests)
        }
        TaskModel::Extension | TaskModel::Absent => {
            read_task(result, rules, dialect, max_input_requests)
        }
    }
}

/// Reads a task and its state.
pub(super) fn read_task(
    task: Object<'_>,
    rules: &'static Rules,
    dialect: &Dialect,
    max_input_requests: usize,
) -> Option<Task> {
    let text = |name: &str| task.string(name).ok().flatten().map(Cow::into_owned);
    let time = |name: &str| text(name).as_deref().and_then(parse_timestamp).unwrap_or(0);
    let number =
        |names: [&str; 2]| task.get_many(names).into_iter().flatten().find_map(milliseconds);
    let message = text("statusMessage");
    let state = read_state(task, message.as_deref(), rules, dialect, max_input_requests)?;
    Some(Task {
        id: text("taskId")?,
        state,
        message,
        created_ms: time("createdAt"),
        updated_ms: time("lastUpdatedAt"),
        // A null ttl means that the task never expires (2025-11-25 schema, `Task`). A missing one is read alike.
        ttl_ms: number(["ttlMs", "ttl"]).unwrap_or(u64::MAX),
        poll_ms: number(["pollIntervalMs", "pollInterval"]).unwrap_or(DEFAULT_POLL_MS),
    })
}

/// Reads a page of tasks. Incomplete tasks are dropped.
pub(super) fn read_tasks(result: Object<'_>, rules: &'static Rules, dialect: &Dialect) -> TaskPage {
    let tasks = result.array("tasks").ok().flatten().unwrap_or_default();
    let tasks = tasks.into_iter().filter_map(Object::new);
    TaskPage {
        tasks: tasks.filter_map(|task| read_task(task, rules, dialect, 0)).map(Arc::new).collect(),
        next: result.string("nextCursor").ok().flatten().map(Cow::into_owned),
    }
}

fn read_state(
    task: Object<'_>,
    message: Option<&str>,
    rules: &'static Rules,
    dialect: &Dialect,
    max_input_requests: usize,
) -> Option<TaskState> {
    Some(match task.string("status").ok().flatten()?.as_ref() {
        "working" => TaskState::Working,
        "cancelled" => TaskState::Cancelled,
        "input_required" => {
            let requests = task.get("inputRequests").and_then(Object::new);
            let input_requests =
                requests.map(|requests| read_input_requests(requests, None, max_input_requests));
            TaskState::InputRequired(input_requests.transpose().ok()?.unwrap_or_default())
        }
        "completed" => {
            let result = task.get("result").and_then(Object::new);
            TaskState::Ended(match result {
                None => TaskOutcome::Result(ToolResult::default()),
                Some(result) => {
                    let (result, kind) = (Raw::from_validated(result.text()), RelayedKind::Tool);
                    TaskOutcome::Relayed(RelayedResult::new(result, rules, kind))
                }
            })
        }
        "failed" => {
            let detail = message.unwrap_or("the task failed");
            let unknown = || Fault::new(FaultKind::ToolFailed, detail);
            let fault = match task
                .get("error")
                .map(|error| errors::read_error_outcome(error, "tools/call", "", rules, dialect))
            {
                Some(Outcome::Fail(fault)) => fault,
                _ => unknown(),
            };
            TaskState::Ended(TaskOutcome::Fault(fault))
        }
        _ => return None,
    })
}

/// The milliseconds since 1970 of an RFC 3339 time; `None` if it is earlier or invalid.
pub fn parse_timestamp(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_sound =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_sound || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let rest = text.get(19..)?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let seconds = ((days_since_epoch(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let ms = seconds * 1000 + fraction_ms(&rest[..zone])?;
    to_utc(ms, &rest[zone..])
}

/// The milliseconds of `.123456`.
fn fraction_ms(text: &str) -> Option<u64> {
    let Some(digits) = text.strip_prefix('.') else { return text.is_empty().then_some(0) };
    let digits: String = digits.chars().chain("000".chars()).take(3).collect();
    digits.parse().ok()
}

/// Converts a local time to UTC.
fn to_utc(ms: u64, zone: &str) -> Option<u64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(ms);
    }
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let shift =
        (hours.parse::<u64>().ok()?.min(24) * 60 + minutes.parse::<u64>().ok()?.min(59)) * 60_000;
    match zone.starts_with('-') {
        true => Some(ms + shift),
        false => ms.checked_sub(shift),
    }
}

/// The number of days from 1970-01-01 to a date, counted in years that begin in March.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, in_era) = (year / 400, year % 400);
    let in_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_any_zone() {
        let rows = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T00:00:00.000Z", Some(951_782_400_000)),
            ("2026-07-27T23:59:59.999999Z", Some(1_785_196_799_999)),
            ("2100-03-01T01:00:00.001+01:00", Some(4_107_542_400_001)),
            ("2100-02-28T23:00:00.001-01:00", Some(4_107_542_400_001)),
            ("1970-01-01T00:00:00+01:00", None),
            ("1969-12-31T23:59:59Z", None),
            ("yesterday", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-01T00:00:00", None),
            ("2026-01-01T00:00:00é", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse_timestamp(text), expected, "{text}");
        }
    }
}
