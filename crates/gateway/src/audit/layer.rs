//! The layer that records calls, and the reader that records the calls that never reach it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole::internal::telemetry::{
    CallOutcome, CallRecord, CallStart, Detail, PayloadView, ReaderGuard, RecordReader, StepKind,
    Telemetry,
};
use creole::{BoxFuture, Call, Context, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::Outcome;
use tokio::time::Instant;

use crate::audit::line;
use crate::audit::line::{Line, LineFormat};
use crate::audit::queue::{AuditCounters, HandOver, KIND, LineQueue, WriterThread};
use crate::audit::settings::AuditSettings;
use crate::audit::sink::Sink;

/// Which calls a log records.
#[derive(Clone, Debug)]
pub enum AuditScope {
    /// All calls of the server, also those that are refused before its chain. A server that replaces another one records
    /// these calls only while the flag is set, so that they are recorded once.
    Server(Arc<AtomicBool>),
    /// The calls that reach the layer, such as those of one upstream.
    Layer,
}

/// A layer that writes an audit log.
pub struct Audit {
    log: Arc<AuditLog>,
    is_required: bool,
    /// Makes the records of calls available.
    _reader: ReaderGuard,
    /// Writes the rest when it is dropped.
    _writer: WriterThread,
}

/// What the layer and the reader share.
struct AuditLog {
    format: LineFormat,
    queue: LineQueue,
    scope: AuditScope,
}

impl Audit {
    /// A layer around the server or upstream of this name.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn new(
        server: &str,
        settings: AuditSettings,
        scope: AuditScope,
        telemetry: &Telemetry,
    ) -> io::Result<Self> {
        let sink = Sink::open(&settings)?;
        let (of_server, of_upstream) = match &scope {
            AuditScope::Server(_) => (server, ""),
            AuditScope::Layer => ("", server),
        };
        let counters = AuditCounters::new(telemetry.metrics(), of_server, of_upstream);
        let (queue, writer) = LineQueue::start(sink, counters)?;
        let AuditSettings { arguments, required, remote, replica, .. } = settings;
        let server = server.to_owned();
        let format = LineFormat { server, arguments, has_remote: remote, replica };
        let log = Arc::new(AuditLog { format, queue, scope });
        let reader = telemetry.subscribe(Arc::clone(&log) as Arc<dyn RecordReader>);
        Ok(Self { log, is_required: required, _reader: reader, _writer: writer })
    }

    /// Writes the line of a call before the call runs.
    async fn hand_over(&self, line: &Line) -> HandOver {
        match self.is_required {
            true => self.log.queue.hand_over(line.started(), line.trace).await,
            false => HandOver::Done,
        }
    }
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Audit").field("format", &self.log.format).finish_non_exhaustive()
    }
}

impl AuditLog {
    /// Whether this log records the calls that are refused before the chain.
    fn records_refusals_of(&self, record: &CallRecord) -> bool {
        match &self.scope {
            AuditScope::Server(is_current) => {
                *record.server == *self.format.server && is_current.load(Ordering::Acquire)
            }
            AuditScope::Layer => false,
        }
    }
}

impl RecordReader for AuditLog {
    fn wants(&self, start: &CallStart<'_>) -> Detail {
        let is_own = match &self.scope {
            AuditScope::Server(_) => start.server == self.format.server,
            AuditScope::Layer => true,
        };
        match is_own && !start.via.is_own_work() {
            true => Detail::Steps,
            false => Detail::None,
        }
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        let Some(end) = record.end() else { return };
        let CallOutcome::Fault(kind @ FaultKind::InsufficientScope, _) = end.outcome else {
            return;
        };
        let is_layer = |kind: &StepKind| matches!(kind, StepKind::Layer { .. });
        if self.records_refusals_of(record)
            && !record.steps().iter().any(|step| is_layer(&step.kind))
        {
            let line = self.format.refused(record, kind);
            self.queue.push(line.text(), line.trace);
        }
    }

    fn payloads_viewed(&self, view: &PayloadView<'_>) {
        let is_own = match &self.scope {
            AuditScope::Server(is_current) => {
                view.server == self.format.server && is_current.load(Ordering::Acquire)
            }
            AuditScope::Layer => view.upstreams.contains(&self.format.server.as_str()),
        };
        if is_own {
            self.queue.push(self.format.viewed(view).text(), None);
        }
    }
}

/// A running call. It is written when it ends, also if it is cancelled.
struct RunningCall<'a> {
    log: &'a AuditLog,
    context: Context,
    line: Line,
    started: Instant,
    outcome: (&'static str, Option<FaultKind>),
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let (outcome, fault) = self.outcome;
        self.line.add_refusal(&self.context, fault.is_some());
        self.line.end(outcome, fault, self.started.elapsed());
        self.log.queue.push(self.line.text(), self.line.trace);
    }
}

impl Middleware for Audit {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let started = Instant::now();
            let line = self.log.format.start(&call);
            let handed_over = self.hand_over(&line).await;
            if handed_over == HandOver::Failed {
                return unavailable();
            }
            let context = call.context.clone();
            let outcome = ("cancelled", None);
            let mut running = RunningCall { log: &self.log, context, line, started, outcome };
            let outcome = match handed_over {
                HandOver::Done => next.call(call).await,
                _ => unavailable(),
            };
            running.outcome = line::outcome(&outcome);
            outcome
        })
    }
}

/// The outcome of a call whose line cannot be written.
fn unavailable() -> Outcome {
    let detail = "the audit log cannot be written, and the server requires it";
    Fault::new(FaultKind::BackendUnavailable, detail).into()
}
