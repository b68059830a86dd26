//! What a process exports of its telemetry: started with the process, replaced by a reload, sent to its end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use creole::internal::sync::Mutex;
use creole::internal::telemetry::Telemetry;
use creole::internal::telemetry::trace::{hex, new_trace_id};
use creole_gateway::audit::{AuditExport, AuditExporter};
use creole_telemetry::otlp::{LogEntry, LogSender, OtlpExport, OtlpSettings};

use crate::plan::telemetry::{CollectorPlan, TelemetryPlan};

/// How long the last export may take when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The name of the log records that are lines of audit logs.
const AUDIT_EVENT: &str = "creole.audit";

/// Tells the log of the program where its events are exported to.
pub type SetEventExport = fn(Option<LogSender>);

/// The export of a process. Clones share it.
#[derive(Clone)]
pub struct TelemetryExport {
    shared: Arc<ExportState>,
}

struct ExportState {
    telemetry: Telemetry,
    set_event_export: SetEventExport,
    /// The id of this process.
    instance_id: String,
    running: Mutex<Option<RunningExport>>,
}

struct RunningExport {
    plan: TelemetryPlan,
    export: OtlpExport,
}

impl TelemetryExport {
    /// The export of this telemetry. Nothing is exported until a plan is [applied](Self::apply).
    pub fn new(telemetry: &Telemetry, set_event_export: SetEventExport) -> Self {
        let shared = ExportState {
            telemetry: telemetry.clone(),
            set_event_export,
            instance_id: hex(&new_trace_id()),
            running: Mutex::new(None),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The telemetry that is exported.
    pub fn telemetry(&self) -> &Telemetry {
        &self.shared.telemetry
    }

    /// Exports what a plan says from now on. Must be called within a tokio runtime. An export with an equal plan goes
    /// on; another one sends what waits and ends.
    pub fn apply(&self, plan: &TelemetryPlan) {
        let state = &*self.shared;
        state.telemetry.metrics().set_tool_labels(plan.has_tool_labels);
        let mut running = state.running.lock();
        let is_same = running.as_ref().map(|running| &running.plan) == Some(plan);
        if is_same || running.is_none() && !plan.exports() {
            return;
        }
        let before = running.take();
        let traces = plan.traces.as_ref().map(|(_, traces)| traces.settings.clone());
        state.telemetry.set_tracing(traces.map(Arc::new));
        if plan.metrics.is_some() {
            state.telemetry.enable_metrics();
        }
        for warning in &plan.warnings {
            tracing::warn!(target: "creole", "{warning}");
        }
        if plan.exports() {
            let export = OtlpExport::start(settings(plan, &state.instance_id), &state.telemetry);
            let events = export.logs().filter(|_| plan.exports_events);
            (state.set_event_export)(events.cloned());
            *running = Some(RunningExport { plan: plan.clone(), export });
        } else {
            (state.set_event_export)(None);
        }
        if let Some(RunningExport { export, .. }) = before {
            tokio::spawn(export.shut_down(FLUSH_TIMEOUT));
        }
    }

    /// Where log records go, if there is a collector for them.
    pub fn logs(&self) -> Option<LogSender> {
        self.shared.running.lock().as_ref()?.export.logs().cloned()
    }

    /// Where the lines of audit logs go, if there is a collector for log records.
    pub fn audit_exporter(&self) -> Option<AuditExporter> {
        self.logs()?;
        let export = self.clone();
        Some(AuditExporter::new(move |line: AuditExport| {
            let AuditExport { time, line, trace } = line;
            let entry = LogEntry { time, event_name: AUDIT_EVENT, body: line, trace_id: trace };
            export.logs().is_some_and(|logs| logs.send(entry))
        }))
    }

    /// Sends what waits and ends the export.
    pub async fn shut_down(&self) {
        let running = self.shared.running.lock().take();
        if let Some(RunningExport { export, .. }) = running {
            export.shut_down(FLUSH_TIMEOUT).await;
            (self.shared.set_event_export)(None);
        }
    }
}

impl fmt::Debug for TelemetryExport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TelemetryExport").finish_non_exhaustive()
    }
}

/// The settings of the exporter.
fn settings(plan: &TelemetryPlan, instance_id: &str) -> OtlpSettings {
    let collector = |signal: &str, plan: &CollectorPlan| match plan.collector() {
        Ok(collector) => Some(collector),
        Err(reason) => {
            tracing::warn!(target: "creole", signal, reason, "telemetry is not exported");
            None
        }
    };
    let mut resource = plan.resource.clone();
    let key = "service.instance.id";
    if resource.iter().all(|(known, _)| known != key) {
        resource.push((key.to_owned(), instance_id.to_owned()));
    }
    OtlpSettings {
        resource,
        traces: plan
            .traces
            .as_ref()
            .and_then(|(to, traces)| Some((collector("traces", to)?, traces.spans))),
        metrics: plan
            .metrics
            .as_ref()
            .and_then(|(to, interval)| Some((collector("metrics", to)?, *interval))),
        logs: plan.logs.as_ref().and_then(|(to, batches)| Some((collector("logs", to)?, *batches))),
    }
}
