//! The metrics of one server.

use std::sync::Arc;
use std::time::Instant;

use creole_proto::fault::FaultKind;
use creole_proto::model::ListKind;
use creole_proto::revision::Rules;

use super::instruments::{GaugeGuard, UpDownGauge};
use super::operations::{NetworkTransport, OperationSeries, Operations};
use super::owned_series::OwnedSeries;
use super::registry::Metrics;
use super::table;

/// The metrics of one server. A replacement of the server continues them.
pub(crate) struct ServerMetrics {
    metrics: Arc<Metrics>,
    name: Arc<str>,
    operations: Operations,
    calls_active: UpDownGauge,
    sessions: UpDownGauge,
    streams: UpDownGauge,
    owned: OwnedSeries,
}

impl ServerMetrics {
    /// The metrics of the server with this name.
    pub(crate) fn new(metrics: &Arc<Metrics>, name: &str) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            name: Arc::from(name),
            operations: Operations::of_server(metrics, name),
            calls_active: metrics.up_down(&table::CALLS_ACTIVE, &[name]),
            sessions: metrics.up_down(&table::SESSIONS, &[name]),
            streams: metrics.up_down(&table::STREAMS, &[name]),
            owned: metrics.owned_series(),
        }
    }

    /// The metrics of a server, if they are counted: those of its predecessor, or new ones.
    pub(crate) fn of_server(
        metrics: &Arc<Metrics>,
        name: &str,
        before: Option<&Arc<Self>>,
    ) -> Option<Arc<Self>> {
        let known = before.filter(|known| known.name() == name).cloned();
        metrics.is_enabled().then(|| known.unwrap_or_else(|| Arc::new(Self::new(metrics, name))))
    }

    /// The metrics of the process.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The name of the server.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What measures the calls of a listed item, if items of this kind have series of their own.
    pub(crate) fn item_series(&self, kind: ListKind, name: &str) -> Option<Arc<OperationSeries>> {
        match kind {
            ListKind::Tools => Some(self.operations.tool(name)),
            ListKind::Prompts => Some(self.operations.prompt(name)),
            _ => None,
        }
    }

    /// What measures a method without an item.
    pub(crate) fn method_series(&self, method: &str) -> &OperationSeries {
        self.operations.method(method)
    }

    /// The number of calls without a response.
    pub(crate) fn calls_active(&self) -> &UpDownGauge {
        &self.calls_active
    }

    /// Counts a stream until the guard is dropped.
    #[cfg(feature = "http")]
    pub(crate) fn stream(&self) -> GaugeGuard {
        self.streams.hold()
    }

    /// Counts a session until the meter is dropped.
    pub(crate) fn session(self: &Arc<Self>, transport: NetworkTransport) -> SessionMeter {
        let is_open = self.sessions.hold();
        SessionMeter {
            server: Arc::clone(self),
            transport,
            started: Instant::now(),
            _open: is_open,
        }
    }

    /// Counts a message that was refused before a request could be read from it.
    pub(crate) fn message_refused(&self, kind: FaultKind) {
        self.owned.count(&table::MESSAGES_REFUSED, &[&self.name, kind.name()]);
    }

    /// Counts a call that a layer around the server, or around an upstream, did not simply pass on.
    pub(crate) fn layer_decision(
        &self,
        upstream: Option<&str>,
        layer: &str,
        decision: &'static str,
    ) {
        let (server, upstream) = upstream.map_or((&*self.name, ""), |upstream| ("", upstream));
        self.owned.count(&table::LAYER_DECISIONS, &[server, upstream, layer, decision]);
    }
}

/// One session of a client.
pub(crate) struct SessionMeter {
    server: Arc<ServerMetrics>,
    transport: NetworkTransport,
    started: Instant,
    _open: GaugeGuard,
}

impl SessionMeter {
    /// Measures the session, which has ended.
    pub(crate) fn end(self, rules: &'static Rules) {
        let labels = [rules.name, self.transport.name(), ""];
        let duration = self.started.elapsed();
        self.server.metrics.record(&table::SERVER_SESSION_DURATION, &labels, duration);
    }
}
