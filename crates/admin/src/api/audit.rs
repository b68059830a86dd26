//! The search in the audit log.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use creole_gateway::audit::{AuditPage, AuditQuery, search};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::Admin;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::reply::Reply;
use crate::request::ApiRequest;
use crate::routes::{Answer, Route, schema};
use crate::settings::Role;

/// Maximum number of lines of a page.
const MAX_LINES: usize = 500;

pub(super) fn routes() -> Vec<Route> {
    let route = Route::new(
        (Method::GET, "/audit"),
        Role::Approve,
        "Searches the audit log, the newest lines first",
        Answer::Json(StatusCode::OK, schema::<AuditLines>),
        show,
    );
    vec![route.query(&[
        "principal",
        "tool",
        "outcome",
        "since",
        "until",
        "trace",
        "q",
        "limit",
        "cursor",
    ])]
}

/// A page of lines.
#[derive(Serialize, JsonSchema)]
struct AuditLines {
    /// The lines as they were written.
    items: Vec<Value>,
    /// Where the search continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// How many bytes were read.
    searched_bytes: u64,
    /// Whether the page is full or the log was read to its end. Otherwise the time of the page was over.
    complete: bool,
}

async fn show(admin: Arc<Admin>, request: ApiRequest) -> Result<Reply, Problem> {
    let text = |name: &str| request.query.text(name).map(str::to_owned);
    let query = AuditQuery {
        principal: text("principal"),
        tool: text("tool"),
        outcome: text("outcome"),
        since: request.query.time("since")?,
        until: request.query.time("until")?,
        trace: text("trace"),
        text: text("q"),
        limit: request.query.limit()?.min(MAX_LINES),
        cursor: text("cursor"),
    };
    let files = admin.host.audit_files();
    if files.is_empty() {
        return Err(Problem::new(ProblemCode::Conflict, "No audit log is configured")
            .detail("add a layer of the kind `audit` with a file"));
    }
    let cannot = |detail: String| {
        Problem::new(ProblemCode::Unavailable, "The audit log cannot be searched").detail(detail)
    };
    let found = spawn_blocking(move || search(&files, &query)).await;
    let page: AuditPage = found
        .map_err(|error| cannot(error.to_string()))?
        .map_err(|error| cannot(error.to_string()))?;
    if request.accepts_lines {
        let lines: String = page.lines.iter().map(|line| format!("{line}\n")).collect();
        return Ok(Reply::bytes(StatusCode::OK, "application/x-ndjson", lines.into()));
    }
    let lines = AuditLines {
        items: page.lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        next: page.next,
        searched_bytes: page.searched_bytes,
        complete: page.is_complete,
    };
    Reply::json(StatusCode::OK, &lines)
}
