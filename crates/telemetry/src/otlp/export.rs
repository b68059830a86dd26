//! The export of a process: its tasks, and their end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use creole::internal::telemetry::metrics::{Metrics, table};
use creole::internal::telemetry::{ReaderGuard, Telemetry};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::batches::{BatchExport, ExportReport, ReportedCount};
use super::client::{CollectorClient, SendRequest};
use super::encode::Sender;
use super::logs::{LogMessages, LogSender};
use super::metrics::MetricExport;
use super::queue::queue;
use super::settings::{BatchSettings, OtlpCollector, OtlpSettings, Signal, SpanSettings};
use super::span_reader::SpanReader;
use super::spans::SpanMessages;

/// A running export. Dropping it ends it without sending what waits.
pub struct OtlpExport {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    /// Stops the export of metrics, which counts what the other tasks did to their end.
    stop_metrics: watch::Sender<bool>,
    metrics_task: JoinSet<()>,
    reader: Option<ReaderGuard>,
    logs: Option<LogSender>,
}

impl OtlpExport {
    /// Starts the export of a process. Must be called within a tokio runtime. The settings of traces and the metrics of
    /// the telemetry are the caller's.
    pub fn start(settings: OtlpSettings, telemetry: &Telemetry) -> Self {
        let OtlpSettings { resource, traces, metrics, logs } = settings;
        let sender = Sender::new(&resource);
        let export = Self {
            stop: watch::Sender::new(false),
            tasks: JoinSet::new(),
            stop_metrics: watch::Sender::new(false),
            metrics_task: JoinSet::new(),
            reader: None,
            logs: None,
        };
        let mut starting = Starting { export, sender, metrics: Arc::clone(telemetry.metrics()) };
        if let Some((collector, settings)) = traces {
            starting.start_traces(collector, settings, telemetry);
        }
        if let Some((collector, interval)) = metrics {
            starting.start_metrics(collector, interval);
        }
        if let Some((collector, settings)) = logs {
            starting.start_logs(collector, settings);
        }
        starting.export
    }

    /// Where log records go, if they are exported.
    pub fn logs(&self) -> Option<&LogSender> {
        self.logs.as_ref()
    }

    /// Sends what waits, for this long at most, and ends.
    pub async fn shut_down(mut self, patience: Duration) {
        drop(self.reader.take());
        let sending = async {
            self.stop.send_replace(true);
            while self.tasks.join_next().await.is_some() {}
            self.stop_metrics.send_replace(true);
            while self.metrics_task.join_next().await.is_some() {}
        };
        // What is not sent in time is lost, as the process ends.
        let _ = timeout(patience, sending).await;
    }
}

impl fmt::Debug for OtlpExport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OtlpExport").finish_non_exhaustive()
    }
}

/// An export while it starts.
struct Starting {
    export: OtlpExport,
    sender: Sender,
    metrics: Arc<Metrics>,
}

impl Starting {
    fn start_traces(
        &mut self,
        collector: OtlpCollector,
        settings: SpanSettings,
        telemetry: &Telemetry,
    ) {
        let batches = settings.batches;
        let (queue_sender, queue) = queue(batches.max_queue, batches.max_batch);
        let export = BatchExport {
            queue,
            maker: SpanMessages { sender: self.sender.clone(), settings },
            client: client(collector),
            settings: batches,
            report: self.report(Signal::Traces),
            stop: self.export.stop.subscribe(),
        };
        self.export.tasks.spawn(export.run());
        let reader = Arc::new(SpanReader { queue: queue_sender, settings });
        self.export.reader = Some(telemetry.subscribe(reader));
    }

    fn start_metrics(&mut self, collector: OtlpCollector, interval: Duration) {
        let export = MetricExport {
            metrics: Arc::clone(&self.metrics),
            sender: self.sender.clone(),
            client: client(collector),
            interval,
            report: self.report(Signal::Metrics),
            stop: self.export.stop_metrics.subscribe(),
        };
        self.export.metrics_task.spawn(export.run());
    }

    fn start_logs(&mut self, collector: OtlpCollector, settings: BatchSettings) {
        let (queue_sender, queue) = queue(settings.max_queue, settings.max_batch);
        let export = BatchExport {
            queue,
            maker: LogMessages(self.sender.clone()),
            client: client(collector),
            settings,
            report: self.report(Signal::Logs),
            stop: self.export.stop.subscribe(),
        };
        self.export.tasks.spawn(export.run());
        self.export.logs = Some(LogSender { queue: queue_sender });
    }

    fn report(&self, signal: Signal) -> ExportReport {
        let metrics = Arc::clone(&self.metrics);
        let count = move |count| match count {
            ReportedCount::Export(signal, outcome) => {
                metrics.count(&table::OTLP_EXPORTS, &[signal.name(), outcome]);
            }
            ReportedCount::Dropped(signal, number) => {
                metrics.add(&table::OTLP_DROPPED, &[signal.name()], number);
            }
        };
        ExportReport::new(signal, Arc::new(count))
    }
}

fn client(collector: OtlpCollector) -> Arc<dyn SendRequest> {
    Arc::new(CollectorClient::new(collector))
}
