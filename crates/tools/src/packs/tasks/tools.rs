//! The tools of the pack `tasks`: schemas and handlers.
//!
//! The schemas use only features that code generators understand: closed objects, a description on every property,
//! explicit `required`, no references, and a single type per property.

use std::future::Future;

use creole::{Context, Tool, ToolError};
use serde::{Deserialize, Serialize};

use crate::packs::tasks::database::TaskUpdate;
use crate::packs::tasks::task::{Task, TaskStatus};
use crate::packs::tasks::wait::wait;
use crate::packs::tasks::{TaskTools, check_description, cursor, not_found};
use crate::packs::tool;

const CREATE: &str = r#"{
    "type": "object",
    "properties": {
        "description": {"type": "string", "description": "Task description"}
    },
    "required": ["description"],
    "additionalProperties": false
}"#;

const ONE: &str = r#"{
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Task id, as create_task returned it"}
    },
    "required": ["id"],
    "additionalProperties": false
}"#;

const LIST: &str = r#"{
    "type": "object",
    "properties": {
        "status": {
            "type": "string",
            "description": "Only tasks with this status",
            "enum": ["pending", "in_progress", "done", "cancelled"]
        },
        "limit": {
            "type": "integer",
            "description": "Maximum number of tasks to return",
            "minimum": 1, "maximum": 100, "default": 50
        },
        "cursor": {
            "type": "string",
            "description": "Where to continue: next_cursor of the previous result"
        }
    },
    "required": [],
    "additionalProperties": false
}"#;

const UPDATE: &str = r#"{
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Task id, as create_task returned it"},
        "status": {
            "type": "string",
            "description": "New status; unchanged if not given",
            "enum": ["pending", "in_progress", "done", "cancelled"]
        },
        "description": {
            "type": "string",
            "description": "New description; unchanged if not given"
        }
    },
    "required": ["id"],
    "additionalProperties": false
}"#;

const WAIT: &str = r#"{
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Task id, as create_task returned it"},
        "status": {
            "type": "string",
            "description": "Status to wait for",
            "enum": ["pending", "in_progress", "done", "cancelled"]
        },
        "timeout_seconds": {
            "type": "integer",
            "description": "Maximum number of seconds to wait",
            "minimum": 0, "maximum": 540, "default": 60
        }
    },
    "required": ["id", "status"],
    "additionalProperties": false
}"#;

/// All tools of the pack.
pub(crate) fn all(tasks: &TaskTools) -> [Tool; 6] {
    [
        tool("create_task", "Create a new task", CREATE, with_tasks(tasks, create)).hints(
            |hints| (hints.destructive_hint, hints.open_world_hint) = (Some(false), Some(false)),
        ),
        tool("get_task", "Get a task", ONE, with_tasks(tasks, get)).read_only(),
        tool("list_tasks", "List tasks, the oldest first", LIST, with_tasks(tasks, list))
            .read_only(),
        tool(
            "update_task",
            "Change a task's status, its description, or both",
            UPDATE,
            with_tasks(tasks, update),
        )
        .hints(|hints| {
            (hints.destructive_hint, hints.open_world_hint) = (Some(false), Some(false));
            hints.idempotent_hint = Some(true);
        }),
        tool("delete_task", "Delete a task permanently", ONE, with_tasks(tasks, delete)).hints(
            |hints| {
                (hints.destructive_hint, hints.open_world_hint) = (Some(true), Some(false));
                hints.idempotent_hint = Some(true);
            },
        ),
        tool("wait_task", "Wait until a task has a status", WAIT, with_tasks(tasks, wait))
            .read_only(),
    ]
}

/// A handler that gets the tasks.
fn with_tasks<A, F, Fut>(
    tasks: &TaskTools,
    run: F,
) -> impl Fn(A, Context) -> Fut + Send + Sync + 'static
where
    F: Fn(TaskTools, A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, ToolError>>,
{
    let tasks = tasks.clone();
    move |arguments, context| run(tasks.clone(), arguments, context)
}

#[derive(Deserialize)]
struct CreateInput {
    description: String,
}

async fn create(tasks: TaskTools, new: CreateInput, _: Context) -> Result<String, ToolError> {
    check_description(&new.description)?;
    let task = tasks.store.create(new.description).await?;
    tasks.notify_changed(&task);
    Ok(task.to_json())
}

#[derive(Deserialize)]
struct TaskIdInput {
    id: String,
}

async fn get(tasks: TaskTools, input: TaskIdInput, _: Context) -> Result<String, ToolError> {
    let task = tasks.store.task(&input.id).await?;
    Ok(task.ok_or_else(|| not_found(&input.id))?.to_json())
}

async fn delete(tasks: TaskTools, unwanted: TaskIdInput, _: Context) -> Result<String, ToolError> {
    let task = tasks.store.delete(&unwanted.id).await?;
    let task = task.ok_or_else(|| not_found(&unwanted.id))?;
    tasks.notify_changed(&task);
    Ok(task.to_json())
}

#[derive(Deserialize)]
struct ListInput {
    status: Option<TaskStatus>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Serialize)]
struct ListOutput {
    tasks: Vec<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn list(tasks: TaskTools, input: ListInput, _: Context) -> Result<String, ToolError> {
    let after = match &input.cursor {
        None => 0,
        Some(text) => cursor::read(text)
            .ok_or_else(|| ToolError::failed("error: the cursor was not returned by list_tasks"))?,
    };
    let page = tasks.store.page(input.status, after, input.limit.unwrap_or(50)).await?;
    let listed = ListOutput { tasks: page.tasks, next_cursor: page.more_after.map(cursor::write) };
    Ok(serde_json::to_string(&listed)?)
}

#[derive(Deserialize)]
struct UpdateInput {
    id: String,
    status: Option<TaskStatus>,
    description: Option<String>,
}

async fn update(tasks: TaskTools, input: UpdateInput, _: Context) -> Result<String, ToolError> {
    let UpdateInput { id, status, description } = input;
    if status.is_none() && description.is_none() {
        return Err(ToolError::failed(
            "error: nothing to change: give a status, a description, or both",
        ));
    }
    description.as_deref().map_or(Ok(()), check_description)?;
    let task = tasks.store.update(&id, TaskUpdate { status, description }).await?;
    let task = task.ok_or_else(|| not_found(&id))?;
    tasks.notify_changed(&task);
    Ok(task.to_json())
}
