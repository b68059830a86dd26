//! Documents that are made from the table of metrics: the reference, the Grafana dashboard, the alert rules and their
//! test. `cargo xtask docs` and `cargo xtask dashboards` write them.

mod alerts;
mod dashboard;
mod panels;
mod reference;
mod rules;
#[cfg(test)]
mod tests;

pub use dashboard::grafana_dashboard;
pub use reference::metrics_reference;
pub use rules::{prometheus_rules, prometheus_rules_test};

use alerts::ALERTS;
use panels::ROWS;

/// Every query of the dashboard and of the alerts, with the title or name that it has there. `$__rate_interval` stands
/// for the range that Grafana chooses.
pub fn queries() -> Vec<(&'static str, &'static str)> {
    let of_panels = ROWS
        .iter()
        .flat_map(|row| row.panels)
        .flat_map(|panel| panel.queries.iter().map(|(expression, _)| (panel.title, *expression)));
    of_panels.chain(ALERTS.iter().map(|alert| (alert.name, alert.expression))).collect()
}

/// The queries of the dashboard alone.
pub fn dashboard_queries() -> Vec<(&'static str, &'static str)> {
    let count = ROWS.iter().flat_map(|row| row.panels).map(|panel| panel.queries.len()).sum();
    queries().into_iter().take(count).collect()
}

/// A text as JSON, which is YAML too.
fn quoted(text: &str) -> String {
    let mut quoted = Vec::new();
    creole_proto::wire::quote(&mut quoted, text);
    String::from_utf8(quoted).unwrap_or_default()
}
