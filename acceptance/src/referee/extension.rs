//! The referee of the tasks extension (SEP-2663), whose messages are in no revision's schema.
//!
//! They are checked against the extension's document and, if `MCP_SPEC_DIR` has a folder `ext-tasks`, against the
//! `schema.json` in it. Parts that belong to the protocol itself (the result of the call, the input requests) are
//! checked against the revision, like the message that would have carried them otherwise.

use creole::proto::revision::{Revision, TaskModel};
use serde_json::{Map, Value, json};

use super::{ServerMessageKind, schema, types};

/// The results of the extension's methods and its messages, with their definitions in its schema.
const DEFINITIONS: &[(&str, &str)] = &[
    ("tasks/get", "GetTaskResult"),
    ("tasks/update", "UpdateTaskResult"),
    ("tasks/cancel", "CancelTaskResult"),
    ("notifications/tasks", "TaskStatusNotification"),
];

/// The members of every task, and of each state.
const HEAD: [&str; 7] =
    ["taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"];
const STATES: &[(&str, Option<&str>)] = &[
    ("working", None),
    ("input_required", Some("inputRequests")),
    ("completed", Some("result")),
    ("failed", Some("error")),
    ("cancelled", None),
];

/// Whether a message belongs to the extension.
pub(super) fn is_of(revision: Revision, kind: ServerMessageKind<'_>) -> bool {
    let named = |method: &str| DEFINITIONS.iter().any(|(name, _)| *name == method);
    revision.rules().tasks == TaskModel::Extension
        && match kind {
            ServerMessageKind::Task { .. } => true,
            ServerMessageKind::Answer { method, .. }
            | ServerMessageKind::Notification { method } => named(method),
            ServerMessageKind::Error
            | ServerMessageKind::Asking { .. }
            | ServerMessageKind::Request { .. } => false,
        }
}

/// Checks one message of the extension.
pub(super) fn check_extension(
    revision: Revision,
    kind: ServerMessageKind<'_>,
    message: &Value,
) -> Result<(), String> {
    let definition = |method: &str| {
        DEFINITIONS
            .iter()
            .find(|(name, _)| *name == method)
            .map_or("", |(_, definition)| definition)
    };
    let (definition, judged) = match kind {
        ServerMessageKind::Task { result } => {
            check_created(result)?;
            ("CreateTaskResult", result)
        }
        ServerMessageKind::Answer { method: "tasks/get", result } => {
            check_result_type(result, "complete")?;
            check_detailed(revision, result, &["resultType", "_meta"])?;
            ("GetTaskResult", result)
        }
        ServerMessageKind::Answer { method, result } => {
            check_result_type(result, "complete")?;
            check_members(result, &["resultType", "_meta"])?;
            (definition(method), result)
        }
        ServerMessageKind::Notification { method } => {
            check_detailed(revision, &message["params"], &["_meta"])?;
            (definition(method), message)
        }
        ServerMessageKind::Error
        | ServerMessageKind::Asking { .. }
        | ServerMessageKind::Request { .. } => return Ok(()),
    };
    schema::validate_extension(definition, judged)
        .map_err(|reason| format!("the extension's schema rejects it: {reason}"))
}

/// A result that creates a task has the task's common members, and none of its later states.
fn check_created(result: &Value) -> Result<(), String> {
    check_result_type(result, "task")?;
    check_head(result)?;
    let allowed: Vec<&str> = HEAD.into_iter().chain(["resultType", "_meta"]).collect();
    check_members(result, &allowed)
}

/// A task with the members of its state, and none of another state.
fn check_detailed(revision: Revision, task: &Value, around: &[&str]) -> Result<(), String> {
    check_head(task)?;
    let status = task["status"].as_str().unwrap_or_default();
    let state = STATES.iter().find(|(name, _)| *name == status);
    let (_, detail) = state.ok_or_else(|| format!("{status:?} is not a status of a task"))?;
    let allowed: Vec<&str> =
        HEAD.into_iter().chain(*detail).chain(around.iter().copied()).collect();
    check_members(task, &allowed)?;
    let Some(detail) = *detail else { return Ok(()) };
    let value = task.get(detail).ok_or_else(|| format!("a {status} task has no `{detail}`"))?;
    match detail {
        "error" => {
            let error = json!({"jsonrpc": "2.0", "id": 1, "error": value});
            check_by_revision(revision, ServerMessageKind::Error, &error)
        }
        "result" => {
            let response = json!({"jsonrpc": "2.0", "id": 1, "result": value});
            let kind = ServerMessageKind::Answer { method: "tools/call", result: value };
            check_by_revision(revision, kind, &response)
        }
        _ => {
            if value.as_object().is_none_or(Map::is_empty) {
                return Err(format!("an {status} task has no input requests"));
            }
            let asking = json!({"resultType": "input_required", "inputRequests": value});
            let response = json!({"jsonrpc": "2.0", "id": 1, "result": asking});
            check_by_revision(revision, ServerMessageKind::Asking { result: &asking }, &response)
        }
    }
}

fn check_by_revision(
    revision: Revision,
    kind: ServerMessageKind<'_>,
    message: &Value,
) -> Result<(), String> {
    types::check_types(revision, kind, message)?;
    schema::check_schema(revision, kind, message)
}

fn check_head(task: &Value) -> Result<(), String> {
    if task["taskId"].as_str().is_none_or(|id| id.len() < 16) {
        return Err("`taskId` must be an unguessable string".to_owned());
    }
    for key in ["createdAt", "lastUpdatedAt"] {
        if !task[key].as_str().is_some_and(is_moment) {
            return Err(format!("`{key}` must be an ISO 8601 time"));
        }
    }
    let positive = |value: &Value| value.as_u64().is_some_and(|number| number > 0);
    if task.get("ttlMs").is_none_or(|ttl| !ttl.is_null() && !positive(ttl)) {
        return Err("`ttlMs` must be a number of milliseconds or null".to_owned());
    }
    if task.get("pollIntervalMs").is_some_and(|poll| !positive(poll)) {
        return Err("`pollIntervalMs` must be a number of milliseconds".to_owned());
    }
    Ok(())
}

fn check_result_type(result: &Value, expected: &str) -> Result<(), String> {
    match result["resultType"] == expected {
        true => Ok(()),
        false => Err(format!("`resultType` must be {expected:?}")),
    }
}

fn check_members(value: &Value, allowed: &[&str]) -> Result<(), String> {
    let members = value.as_object().ok_or("it must be an object")?;
    match members.keys().find(|key| !allowed.contains(&key.as_str())) {
        None => Ok(()),
        Some(stranger) => Err(format!("`{stranger}` does not belong here")),
    }
}

/// `2026-07-28T12:34:56.789Z`, with or without the fraction.
fn is_moment(text: &str) -> bool {
    let pattern = "dddd-dd-ddTdd:dd:dd";
    let Some((whole, rest)) = text.split_at_checked(pattern.len()) else { return false };
    let fits = |(expected, character): (char, char)| match expected {
        'd' => character.is_ascii_digit(),
        other => character == other,
    };
    let fraction = rest.strip_suffix('Z').and_then(|rest| rest.strip_prefix('.').or(Some(rest)));
    pattern.chars().zip(whole.chars()).all(fits)
        && fraction.is_some_and(|digits| digits.chars().all(|character| character.is_ascii_digit()))
}
