//! Tasks: calls that continue after their response.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::http::Method;
use creole::internal::task::InspectedTask;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::problem::{Problem, ProblemCode};
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, clock};

pub(super) fn routes() -> Vec<Route> {
    let page = &["limit", "cursor"];
    vec![
        Route::get("/tasks", Role::Read, "The tasks of this process", list).query(page),
        Route::act(Method::DELETE, "/tasks/{task}", Role::Operate, "Cancels a task", cancel),
    ]
}

/// A page of tasks.
#[derive(Serialize, JsonSchema)]
struct TaskList {
    /// Oldest first.
    items: Vec<TaskView>,
    /// Where the list continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A task.
#[derive(Serialize, JsonSchema)]
struct TaskView {
    /// The start of the digest of its id.
    id: String,
    /// The server.
    server: String,
    /// The tool.
    target: String,
    /// Who created it.
    principal: String,
    /// The client's revision of the protocol.
    revision: &'static str,
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    /// What it says about its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// When it was created.
    created: String,
    /// When it changed last.
    updated: String,
    /// How long ago it was created.
    age_ms: f64,
}

impl TaskView {
    fn new(server: &str, task: InspectedTask, now: SystemTime) -> Self {
        let created = UNIX_EPOCH + Duration::from_millis(task.created_ms);
        Self {
            id: task.digest,
            server: server.to_owned(),
            target: task.tool,
            principal: task.principal,
            revision: task.revision,
            status: task.status,
            message: task.message,
            created: clock::text(created),
            updated: clock::text(UNIX_EPOCH + Duration::from_millis(task.updated_ms)),
            age_ms: clock::ms(now.duration_since(created).unwrap_or_default()),
        }
    }
}

async fn list(admin: Arc<Admin>, request: ApiRequest) -> Result<TaskList, Problem> {
    let (skip, limit) = (request.query.offset()?, request.query.limit()?);
    let (mut all, now) = (Vec::new(), SystemTime::now());
    for server in admin.host.servers() {
        let tasks = server.service.registry().inspect_tasks().await;
        all.extend(tasks.into_iter().map(|task| TaskView::new(&server.name, task, now)));
    }
    let has_more = all.len() > skip.saturating_add(limit);
    Ok(TaskList {
        items: all.into_iter().skip(skip).take(limit).collect(),
        next: has_more.then(|| (skip + limit).to_string()),
    })
}

async fn cancel(admin: Arc<Admin>, request: ApiRequest) -> Result<(), Problem> {
    let (id, by) = (request.name(0), request.caller()?.name());
    for server in admin.host.servers() {
        let cancelled = server.service.registry().cancel_task(id).await.map_err(|fault| {
            Problem::new(ProblemCode::Unavailable, "The task cannot be cancelled")
                .detail(fault.detail)
        })?;
        match cancelled {
            None => {}
            Some(true) => {
                tracing::info!(target: "creole::admin", by, task = id, "an operator cancelled a task");
                return Ok(());
            }
            Some(false) => {
                return Err(Problem::new(ProblemCode::Conflict, "The task has already ended"));
            }
        }
    }
    Err(Problem::not_found("task", id))
}
