//! What is wrong with the process.

use std::sync::Arc;
use std::time::SystemTime;

use creole::internal::telemetry::metrics::{Snapshot, table};
use creole_gateway::upstream::Upstream;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::process;
use crate::api::upstreams::{self, UpstreamStateName, UpstreamSummary, total};
use crate::{Admin, clock};

/// Something that is wrong.
#[derive(Serialize, JsonSchema)]
pub(super) struct Alert {
    /// `upstream-failed`, `breaker-open`, `tools-withheld`, `config-refused`, `config-differs`, `audit-lost`,
    /// `state-down` or `list-failed`.
    code: &'static str,
    /// `info`, `warning` or `error`.
    severity: &'static str,
    /// What is wrong, in a sentence.
    text: String,
    /// The upstream or server.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
}

impl Alert {
    fn new(code: &'static str, severity: &'static str, text: String) -> Self {
        Self { code, severity, text, target: None, since: None }
    }

    fn warning(code: &'static str, text: String) -> Self {
        Self::new(code, "warning", text)
    }

    /// The same about an upstream.
    fn about(self, upstream: &str) -> Self {
        Self { target: Some(upstream.to_owned()), ..self }
    }

    /// The same since this time.
    fn since(self, since: Option<SystemTime>) -> Self {
        Self { since: since.map(clock::text), ..self }
    }
}

/// What is wrong, the most severe first.
pub(super) fn alerts(
    admin: &Admin,
    upstreams: &[UpstreamSummary],
    snapshot: &Snapshot,
    withheld: usize,
) -> Vec<Alert> {
    let mut alerts = Vec::new();
    alerts.extend(state_down(admin));
    alerts.extend(audit_lost(snapshot));
    alerts.extend(tools_withheld(withheld));
    alerts.extend(upstreams.iter().filter_map(upstream_unusable));
    alerts.extend(lists_failed(admin));
    alerts.extend(config_refused(admin));
    alerts.extend(config_differs(admin));
    alerts
}

fn state_down(admin: &Admin) -> Option<Alert> {
    let outage = process::state_of(admin).outage()?;
    let text = "The state does not answer: sessions that are not known here get 503".to_owned();
    let since = SystemTime::now().checked_sub(outage);
    Some(Alert::new("state-down", "error", text).since(since))
}

fn audit_lost(snapshot: &Snapshot) -> Option<Alert> {
    let lost = total(snapshot, &table::AUDIT_LOST);
    let lines = if lost == 1 { "line" } else { "lines" };
    let text = format!("The audit logs lost {lost} {lines} since the start of the process");
    (lost > 0).then(|| Alert::new("audit-lost", "error", text))
}

fn tools_withheld(withheld: usize) -> Option<Alert> {
    let (tools, verb) = if withheld == 1 { ("tool", "is") } else { ("tools", "are") };
    let text = format!("{withheld} changed {tools} {verb} not approved");
    (withheld > 0).then(|| Alert::warning("tools-withheld", text))
}

fn upstream_unusable(upstream: &UpstreamSummary) -> Option<Alert> {
    let name = &upstream.name;
    let alert = match upstream.state {
        UpstreamStateName::Backoff => {
            let reason = upstream.note.as_deref().unwrap_or("no reason is known");
            let text = format!("The upstream {name} cannot be used: {reason}");
            Alert::warning("upstream-failed", text)
        }
        UpstreamStateName::Open => {
            let text = format!("The circuit breaker of the upstream {name} is open");
            Alert::warning("breaker-open", text)
        }
        _ => return None,
    };
    Some(alert.about(name))
}

/// The lists that upstreams do not give, one alert for each upstream.
fn lists_failed(admin: &Admin) -> Vec<Alert> {
    let alert = |upstream: &Arc<Upstream>| {
        let (name, status) = (upstream.name(), upstream.status());
        let (kinds, reasons): (Vec<_>, Vec<_>) =
            status.failed_lists().map(|(kind, reason)| (kind.member(), reason)).unzip();
        let (lists, reason) = (kinds.join(" and "), reasons.first()?);
        let text = format!("The upstream {name} does not list its {lists}: {reason}");
        Some(Alert::warning("list-failed", text).about(name))
    };
    upstreams::all(admin).iter().filter_map(alert).collect()
}

fn config_refused(admin: &Admin) -> Option<Alert> {
    let refused = admin.host.config().refused?;
    let first = refused.diagnostics.first().map_or("", |it| it.message.as_str());
    let text = format!("The changed configuration was refused: {first}");
    Some(Alert::warning("config-refused", text).since(Some(refused.at)))
}

fn config_differs(admin: &Admin) -> Option<Alert> {
    let names = process::replicas::with_other_config(admin);
    let first = names.first()?;
    let text = match names.len() {
        1 => format!("The replica {first} has another configuration than this one"),
        count => {
            format!("{count} replicas have another configuration than this one, such as {first}")
        }
    };
    Some(Alert::warning("config-differs", text))
}
