//! Resolves the table `[telemetry]` together with the variables `OTEL_…` of the environment.
//!
//! The environment alone switches the export on, as the platforms expect that set these variables. Values of the table
//! win. A variable that cannot be used is reported when the export starts, and never refuses a configuration.

mod collector;
mod environment;
mod traces;

use std::path::Path;
use std::time::Duration;

use creole_telemetry::otlp::{BatchSettings, Signal};

pub use collector::CollectorPlan;
pub use traces::TracesPlan;

use crate::plan::DEFAULT_VERSION;
use crate::syntax::environment::Lookup;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::telemetry::{MetricsTable, TelemetryTable};
use collector::CollectorDefaults;
use environment::OtelVariables;

/// The maximum number of configured attributes.
const MAX_ATTRIBUTES: usize = 64;

/// The telemetry of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetryPlan {
    /// The attributes of the process.
    pub resource: Vec<(String, String)>,
    /// The export of spans.
    pub traces: Option<(CollectorPlan, TracesPlan)>,
    /// The export of metrics, and how often.
    pub metrics: Option<(CollectorPlan, Duration)>,
    /// The export of log records.
    pub logs: Option<(CollectorPlan, BatchSettings)>,
    /// Whether events of the log are exported. Lines of the audit log may be exported without them.
    pub exports_events: bool,
    /// Whether metrics have the names of tools.
    pub has_tool_labels: bool,
    /// What was wrong with variables of the environment, for the log.
    pub warnings: Vec<String>,
}

impl Default for TelemetryPlan {
    fn default() -> Self {
        Self {
            resource: Vec::new(),
            traces: None,
            metrics: None,
            logs: None,
            exports_events: false,
            has_tool_labels: true,
            warnings: Vec::new(),
        }
    }
}

impl TelemetryPlan {
    /// Whether anything is exported.
    pub fn exports(&self) -> bool {
        self.traces.is_some() || self.metrics.is_some() || self.logs.is_some()
    }

    /// The files that it includes.
    pub fn included_files(&self) -> impl Iterator<Item = &Path> {
        let traces = self.traces.iter().map(|(collector, _)| collector);
        let metrics = self.metrics.iter().map(|(collector, _)| collector);
        let logs = self.logs.iter().map(|(collector, _)| collector);
        traces.chain(metrics).chain(logs).filter_map(CollectorPlan::certificate_file)
    }
}

/// The telemetry of a configuration.
pub(super) fn resolve(
    table: Option<TelemetryTable>,
    folder: &Path,
    lookup: Lookup<'_>,
) -> Result<TelemetryPlan, ConfigProblem> {
    let variables = OtelVariables::new(lookup);
    let TelemetryTable {
        endpoint,
        protocol,
        headers,
        ca_file,
        timeout_seconds,
        attributes,
        traces,
        metrics,
        logs,
    } = table.unwrap_or_default();
    let (traces, metrics) = (traces.unwrap_or_default(), metrics.unwrap_or_default());
    let has_endpoint = endpoint.is_some();
    let timeout = timeout_seconds.map(Ranged::get);
    let defaults = CollectorDefaults::new(endpoint, protocol, headers, ca_file, timeout, folder)?;
    let configured = attributes.map(check_attributes).transpose()?.unwrap_or_default();
    let exports_traces = traces.otlp;
    let traces_plan = traces::resolve(&traces, &variables)?;
    let MetricsTable { otlp: exports_metrics, interval_seconds, tools } = metrics;
    let mut plan =
        TelemetryPlan { has_tool_labels: tools.unwrap_or(true), ..TelemetryPlan::default() };
    if !variables.is_disabled() {
        let collector = |signal: Signal, is_wanted: Option<bool>| {
            let is_on = is_wanted.unwrap_or_else(|| has_endpoint || variables.exports(signal));
            if is_on { defaults.collector(signal, &variables) } else { None }
        };
        let events = logs.unwrap_or_default().otlp;
        plan.exports_events = events.unwrap_or_else(|| variables.wants_logs());
        plan.traces = collector(Signal::Traces, exports_traces).map(|it| (it, traces_plan));
        let interval = interval_seconds.map(|seconds| super::seconds(seconds.get()));
        let interval = interval.unwrap_or_else(|| variables.metric_interval());
        plan.metrics = collector(Signal::Metrics, exports_metrics).map(|it| (it, interval));
        // Without events, the audit log may still export its lines.
        let logs = collector(Signal::Logs, events.filter(|wanted| *wanted));
        plan.logs = logs.map(|it| (it, variables.batches("OTEL_BLRP")));
    }
    if plan.exports() {
        plan.resource = resource(configured, &variables);
    }
    plan.exports_events &= plan.logs.is_some();
    plan.warnings = variables.into_warnings();
    Ok(plan)
}

/// The attributes of the table.
fn check_attributes(
    attributes: Entries<Spanned<String>>,
) -> Result<Vec<(String, String)>, ConfigProblem> {
    if let Some((name, _)) = attributes.0.get(MAX_ATTRIBUTES) {
        let message = format!("`attributes` has more than {MAX_ATTRIBUTES} entries");
        return Err(ConfigProblem::new(message).at(name.span.clone()));
    }
    attributes
        .0
        .into_iter()
        .map(|(name, value)| match name.value.trim().is_empty() {
            true => Err(ConfigProblem::new("an attribute has no name").at(name.span)),
            false => Ok((name.value, value.value)),
        })
        .collect()
}

/// The attributes of the process: those of the table win, then those of the environment.
fn resource(
    configured: Vec<(String, String)>,
    variables: &OtelVariables<'_>,
) -> Vec<(String, String)> {
    let own = [
        ("service.name", "creole"),
        ("service.version", DEFAULT_VERSION),
        ("telemetry.sdk.name", "creole"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", DEFAULT_VERSION),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut all: Vec<(String, String)> = Vec::new();
    for (key, value) in configured.into_iter().chain(variables.resource()).chain(own) {
        if all.iter().all(|(known, _)| *known != key) {
            all.push((key, value));
        }
    }
    all.sort();
    all
}
