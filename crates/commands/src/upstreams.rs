//! The state of the upstreams of a configuration, as text and as JSON.

use std::time::Duration;

use creole::proto::model::ListKind;
use creole_config::Plan;
use creole_gateway::upstream::{UpstreamState, UpstreamStatus};
use creole_tools::recipe::Recipe;
use serde_json::{Map, Value, json};

use crate::output;
use crate::output::printable;
use crate::output::render::first_line;

/// The maximum number of lines of a program's standard error output that are shown.
const MAX_STDERR_LINES: usize = 20;

/// The state of one upstream or of one OpenAPI document.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpstreamRow {
    pub(crate) name: String,
    /// `ready`, `starting`, `waiting` or `failed`.
    pub(crate) state: &'static str,
    pub(crate) revision: Option<String>,
    pub(crate) transport: &'static str,
    /// The number of items in each list.
    pub(crate) lists: Vec<(ListKind, usize)>,
    pub(crate) latency: Option<Duration>,
    pub(crate) error: Option<String>,
    /// The last lines that its program wrote to standard error.
    pub(crate) stderr: Option<String>,
    /// The lists whose last fetch failed, and why.
    pub(crate) failed_lists: Vec<(ListKind, String)>,
    /// Items that are excluded from the lists, each with the reason.
    pub(crate) excluded: Vec<String>,
}

impl UpstreamRow {
    /// Whether it is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.state == "ready"
    }
}

impl From<&UpstreamStatus> for UpstreamRow {
    fn from(status: &UpstreamStatus) -> Self {
        let (state, reason) = match &status.state {
            UpstreamState::Waiting => ("waiting", None),
            UpstreamState::Starting => ("starting", None),
            UpstreamState::Ready => ("ready", None),
            UpstreamState::Failed(reason) => ("failed", Some(reason.clone())),
        };
        let last = status.last_error.as_ref();
        Self {
            name: status.name.clone(),
            state,
            revision: status.revision.clone(),
            transport: status.transport,
            lists: status.lists.iter().map(|list| (list.kind, list.items)).collect(),
            latency: status.latency,
            error: last.map(|error| error.message.clone()).or(reason),
            stderr: last.and_then(|error| error.stderr.clone()),
            failed_lists: status
                .failed_lists()
                .map(|(kind, cause)| (kind, cause.to_owned()))
                .collect(),
            excluded: status.excluded.clone(),
        }
    }
}

/// The state of the OpenAPI documents of a plan.
pub(crate) fn documents(plan: &Plan) -> Vec<UpstreamRow> {
    let row = |recipe: &Recipe| {
        let api = recipe.api()?;
        Some(UpstreamRow {
            name: api.name.clone(),
            state: if api.failure.is_some() { "failed" } else { "ready" },
            transport: "openapi",
            lists: vec![(ListKind::Tools, api.tools.len())],
            error: api.failure.clone(),
            ..UpstreamRow::default()
        })
    };
    plan.offered_recipes().filter_map(row).collect()
}

/// Reports unusable upstreams with the reasons on stderr.
pub(crate) fn report_missing(rows: &[UpstreamRow]) {
    for row in rows {
        output::write_messages(&problem_lines(row));
    }
}

/// The problems of an upstream, in sentences.
pub(crate) fn problem_lines(row: &UpstreamRow) -> Vec<String> {
    let name = &row.name;
    let mut lines = Vec::new();
    if !row.is_ready() {
        let reason = row.error.as_deref().unwrap_or("it did not respond in time");
        let reason = reason.strip_prefix(&format!("upstream `{name}`: ")).unwrap_or(reason);
        lines.push(format!("upstream `{name}` is not available: {reason}"));
        lines.extend(row.stderr.iter().flat_map(|text| last_lines(text)));
    }
    lines.extend(row.failed_lists.iter().map(|(kind, reason)| {
        format!("upstream `{name}`: the list of {} failed: {reason}", kind.member())
    }));
    lines
        .extend(row.excluded.iter().map(|reason| format!("upstream `{name}`: excluded: {reason}")));
    lines.into_iter().map(|line| printable(&line)).collect()
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(MAX_STDERR_LINES)..];
    last.iter().map(|line| format!("  {line}")).collect()
}

/// A line for each upstream, followed by the problems of its lists.
pub(crate) fn table(rows: &[UpstreamRow]) -> String {
    let head = ["UPSTREAM", "STATE", "REVISION", "TRANSPORT", "TOOLS", "LATENCY", "LAST ERROR"]
        .map(String::from);
    let cells: Vec<[String; 7]> = rows.iter().map(cells).collect();
    let all = || std::iter::once(&head).chain(&cells);
    let width =
        |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String; 7]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(&head)];
    for (row, cells) in rows.iter().zip(&cells) {
        lines.push(line(cells));
        lines.extend(
            row.stderr.iter().filter(|_| !row.is_ready()).flat_map(|text| last_lines(text)),
        );
        lines.extend(
            row.failed_lists
                .iter()
                .map(|(kind, reason)| format!("  the list of {} failed: {reason}", kind.member())),
        );
        lines.extend(row.excluded.iter().map(|reason| format!("  excluded: {reason}")));
    }
    lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
}

fn cells(row: &UpstreamRow) -> [String; 7] {
    let dash = || "-".to_owned();
    let tools = row.lists.iter().find(|(kind, _)| *kind == ListKind::Tools);
    [
        first_line(&row.name),
        row.state.to_owned(),
        row.revision.as_deref().map_or_else(dash, first_line),
        row.transport.to_owned(),
        tools.map_or_else(dash, |(_, count)| count.to_string()),
        row.latency.map_or_else(dash, |latency| format!("{} ms", latency.as_millis())),
        row.error.as_deref().map_or_else(dash, first_line),
    ]
}

/// The same as JSON.
pub(crate) fn document(rows: &[UpstreamRow]) -> Value {
    let row = |row: &UpstreamRow| {
        let lists: Map<String, Value> = row
            .lists
            .iter()
            .map(|(kind, count)| (kind.member().to_owned(), json!(count)))
            .collect();
        let failed: Map<String, Value> = row
            .failed_lists
            .iter()
            .map(|(kind, reason)| (kind.member().to_owned(), json!(reason)))
            .collect();
        let latency = row.latency.and_then(|latency| u64::try_from(latency.as_millis()).ok());
        json!({
            "name": row.name,
            "state": row.state,
            "revision": row.revision,
            "transport": row.transport,
            "items": lists,
            "latencyMs": latency,
            "lastError": row.error,
            "stderr": row.stderr,
            "failedLists": failed,
            "excluded": row.excluded,
        })
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<UpstreamRow> {
        let ready = UpstreamRow {
            name: "files".to_owned(),
            state: "ready",
            revision: Some("2025-11-25".to_owned()),
            transport: "stdio",
            lists: vec![(ListKind::Tools, 12)],
            latency: Some(Duration::from_millis(3)),
            failed_lists: vec![(ListKind::Resources, "not known".to_owned())],
            excluded: vec!["`x`: no schema".to_owned()],
            ..UpstreamRow::default()
        };
        let failed = UpstreamRow {
            name: "wiki".to_owned(),
            state: "failed",
            transport: "http",
            error: Some("refused\u{1b}[2J".to_owned()),
            stderr: Some("first\nlast".to_owned()),
            ..UpstreamRow::default()
        };
        vec![ready, failed]
    }

    #[test]
    fn each_upstream_is_a_line_with_its_problems_below() {
        let expected = "\
UPSTREAM  STATE   REVISION    TRANSPORT  TOOLS  LATENCY  LAST ERROR
files     ready   2025-11-25  stdio      12     3 ms     -
  the list of resources failed: not known
  excluded: `x`: no schema
wiki      failed  -           http       -      -        refused\\u{1b}[2J
  first
  last";
        assert_eq!(table(&rows()), expected);
    }

    #[test]
    fn a_missing_upstream_is_named_with_its_reason() {
        let messages: Vec<String> = rows().iter().flat_map(problem_lines).collect();
        let expected = [
            "upstream `files`: the list of resources failed: not known",
            "upstream `files`: excluded: `x`: no schema",
            "upstream `wiki` is not available: refused\\u{1b}[2J",
            "  first",
            "  last",
        ];
        assert_eq!(messages, expected);
    }
}
