//! The metrics of one upstream. They disappear with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use creole::client::Address;
use creole::internal::client::{Connection, OnViolation};
use creole::internal::process::ProgramMeter;
use creole::internal::sync::RwLock;
use creole::internal::telemetry::metrics::{
    CollectedValues, Metrics, NetworkTransport, OperationSeries, Operations, OwnedSeries, table,
};
use creole::internal::telemetry::{CallOutcome, ErrorType, client_error_type};
use creole::proto::client::ProtocolViolation;
use creole::proto::model::{Definition, ListKind};
use creole::proto::operation::{Operation, Outcome};
use creole::proto::revision::{InputRequestStyle, Rules};

use crate::upstream::settings::UpstreamSettings;

/// The metrics of one upstream.
pub(crate) struct UpstreamMetrics {
    metrics: Arc<Metrics>,
    name: Arc<str>,
    transport: NetworkTransport,
    operations: Operations,
    owned: OwnedSeries,
    /// What measures the calls of its tools and prompts, by their names there.
    items: RwLock<BTreeMap<ListKind, ItemSeries>>,
    program: Option<Arc<ProgramMeter>>,
}

type ItemSeries = HashMap<Box<str>, Arc<OperationSeries>>;

impl UpstreamMetrics {
    /// The metrics of an upstream, if metrics are counted. Its program is measured.
    pub(crate) fn attach(settings: &mut UpstreamSettings) -> Option<Arc<Self>> {
        let metrics = settings.telemetry.metrics();
        if !metrics.is_enabled() {
            return None;
        }
        let (metrics, name) = (Arc::clone(metrics), Arc::<str>::from(settings.address.name()));
        let mut measured = Self {
            operations: Operations::of_upstream(&metrics, &name),
            owned: metrics.owned_series(),
            transport: NetworkTransport::Tcp,
            items: RwLock::default(),
            program: None,
            metrics,
            name,
        };
        if let Address::Child(program) = &mut settings.address {
            let dropped = [&*measured.name, "stderr_dropped"];
            let meter =
                ProgramMeter::new(measured.metrics.counter(&table::UPSTREAM_NOISE, &dropped));
            program.meter = Some(Arc::clone(&meter));
            (measured.transport, measured.program) = (NetworkTransport::Pipe, Some(meter));
        }
        for outcome in ["ready", "failed"] {
            measured.owned.add(&table::UPSTREAM_STARTS, &[&measured.name, outcome], 0);
        }
        Some(Arc::new(measured))
    }

    /// The metrics of the process.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Counts an attempt to open the gateway's own session, and measures any session.
    pub(crate) fn connection_opened<E>(&self, opened: &Result<Connection, E>, is_own: bool) {
        if is_own {
            let outcome = if opened.is_ok() { "ready" } else { "failed" };
            self.owned.count(&table::UPSTREAM_STARTS, &[&self.name, outcome]);
        }
        if let Ok(connection) = opened
            && connection.greeting().rules.has_handshake()
        {
            self.measure_session(connection);
        }
    }

    /// Measures a session until its connection is gone. One that the upstream ended has failed.
    fn measure_session(&self, connection: &Connection) {
        let (metrics, name) = (Arc::clone(&self.metrics), Arc::clone(&self.name));
        let (version, transport) = (connection.greeting().rules.name, self.transport.name());
        let (closed, started) = (connection.closed_future(), Instant::now());
        tokio::spawn(async move {
            let lost = closed.await.filter(|closed| !closed.by_us);
            let error = lost.map(|closed| ErrorType::Fault(closed.fault.kind).name());
            let labels = [version, transport, error.as_deref().unwrap_or_default(), &*name];
            metrics.record(&table::CLIENT_SESSION_DURATION, &labels, started.elapsed());
        });
    }

    /// What hears of messages that violate the protocol.
    pub(crate) fn on_violation(self: &Arc<Self>) -> OnViolation {
        let measured = Arc::downgrade(self);
        Arc::new(move |violation| {
            let kind = match violation {
                ProtocolViolation::Unreadable(..) | ProtocolViolation::NotAMessage(_) => "not_json",
                ProtocolViolation::UnknownResponse(_) => "unknown_id",
                ProtocolViolation::UnexpectedRequest(_)
                | ProtocolViolation::UnknownNotification(_) => "unexpected",
                ProtocolViolation::LimitReached => return,
            };
            if let Some(measured) = measured.upgrade() {
                measured.owned.count(&table::UPSTREAM_NOISE, &[&measured.name, kind]);
            }
        })
    }

    /// Sets the items that are listed. Their calls are measured from now on.
    pub(crate) fn set_items(&self, kind: ListKind, items: &[Arc<Definition>]) {
        let series = |item: &Arc<Definition>| {
            let name = item.name();
            match kind {
                ListKind::Tools => Some((Box::from(name), self.operations.tool(name))),
                ListKind::Prompts => Some((Box::from(name), self.operations.prompt(name))),
                _ => None,
            }
        };
        // Made before the earlier ones are dropped, so that the series of items that stay continue.
        let listed = items.iter().filter_map(series).collect();
        self.items.write().insert(kind, listed);
    }

    /// Lets a function count with what measures this request.
    fn with_series(&self, operation: &Operation, count: impl FnOnce(&OperationSeries)) {
        let target = match operation {
            Operation::CallTool { name, .. } => Some((ListKind::Tools, name)),
            Operation::GetPrompt { name, .. } => Some((ListKind::Prompts, name)),
            _ => None,
        };
        let items = self.items.read();
        let item = target.and_then(|(kind, name)| items.get(&kind)?.get(name.as_str()));
        match item {
            Some(item) => count(item),
            None => count(self.operations.method(operation.method())),
        }
    }

    /// The last lines of the standard error of its program.
    pub(crate) fn stderr_lines(&self, max: usize) -> Vec<String> {
        self.program.as_ref().map_or_else(Vec::new, |program| program.stderr_lines(max))
    }

    /// Reports its processes.
    pub(crate) fn collect_processes(&self, values: &mut CollectedValues) {
        let Some(usage) = self.program.as_ref().map(|program| program.usage()) else { return };
        let (name, number) = (&*self.name, |number| i64::try_from(number).unwrap_or(i64::MAX));
        values.integer(&table::UPSTREAM_PROCESSES, &[name], number(usage.processes));
        values.integer(&table::UPSTREAM_PROCESS_MEMORY, &[name], number(usage.memory_bytes));
        values.float(&table::UPSTREAM_PROCESS_CPU, &[name], usage.cpu_seconds);
    }
}

/// One request to an upstream, which is measured until its outcome. Dropping it means that it was cancelled.
pub(crate) struct RequestMeter<'a> {
    metrics: &'a UpstreamMetrics,
    rules: &'static Rules,
    operation: &'a Operation,
    started: Instant,
    is_ended: bool,
}

impl<'a> RequestMeter<'a> {
    /// Measures a request that is sent now, in a session with these rules.
    pub(crate) fn start(
        metrics: &'a UpstreamMetrics,
        rules: &'static Rules,
        operation: &'a Operation,
    ) -> Self {
        Self { metrics, rules, operation, started: Instant::now(), is_ended: false }
    }

    /// Counts the request, which has this outcome, for a caller with these rules.
    pub(crate) fn end(mut self, outcome: &Outcome, caller: &'static Rules) {
        self.record(CallOutcome::of(outcome, |fault| fault.foreign_code));
        let how = translation(caller, self.rules, outcome);
        let labels = [caller.era.name(), self.rules.era.name(), how];
        self.metrics.metrics.count(&table::TRANSLATIONS, &labels);
    }

    /// Counts a request of the gateway itself, which has this outcome.
    pub(crate) fn end_own(mut self, outcome: &Outcome) {
        self.record(CallOutcome::of(outcome, |fault| fault.foreign_code));
    }

    fn record(&mut self, outcome: CallOutcome) {
        self.is_ended = true;
        let (error, duration) = (client_error_type(outcome), self.started.elapsed());
        let transport = self.metrics.transport;
        self.metrics.with_series(self.operation, |series| {
            series.record(self.rules, transport, error, duration, None);
        });
    }
}

impl Drop for RequestMeter<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            self.record(CallOutcome::Cancelled);
        }
    }
}

/// How a request and its outcome are translated between the eras of the caller and of the upstream.
fn translation(
    caller: &'static Rules,
    upstream: &'static Rules,
    outcome: &Outcome,
) -> &'static str {
    let needs_input = matches!(outcome, Outcome::InputRequired { .. });
    match (caller.input_request_style, upstream.input_request_style) {
        (InputRequestStyle::MultiRoundTrip, InputRequestStyle::Inline) if needs_input => "parked",
        (InputRequestStyle::MultiRoundTrip, InputRequestStyle::Inline) => "lowered",
        (InputRequestStyle::Inline, InputRequestStyle::MultiRoundTrip) if needs_input => "driven",
        (InputRequestStyle::Inline, InputRequestStyle::MultiRoundTrip) => "raised",
        _ => "none",
    }
}
