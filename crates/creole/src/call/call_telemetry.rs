//! What the telemetry follows of a call: its record, the counters of its server, and the layer that handles it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use creole_proto::model::InputRequest;
use creole_proto::operation::Outcome;
use creole_proto::wire::Raw;

use super::Context;
use crate::telemetry::metrics::{OperationSeries, ServerMetrics, table};
use crate::telemetry::record::{CallRecord, Detail, StepGuard};
use crate::telemetry::steps::StepKind;
use crate::telemetry::trace::{OutgoingTrace, Propagation, ReceivedTrace, SpanId, TraceHeaders};

/// What the telemetry follows of a call. A call that it does not follow has none, and costs one look at that.
#[derive(Clone, Default)]
pub(crate) struct CallTelemetry {
    /// The record of the call, if a reader wants it.
    pub(crate) record: Option<Arc<CallRecord>>,
    /// The metrics of the server, if the call is counted.
    pub(crate) metrics: Option<Arc<ServerMetrics>>,
    /// Whether calls are traced.
    pub(crate) is_traced: bool,
    /// The trace headers of the request, if calls are traced.
    pub(crate) trace_headers: Option<Arc<TraceHeaders>>,
}

impl CallTelemetry {
    /// The same for the task that the call runs as, which has its own record.
    pub(super) fn for_task(&self, record: Option<Arc<CallRecord>>) -> Self {
        Self { record, ..self.clone() }
    }
}

/// The layer that handles a call. Calls that the telemetry does not follow have none.
#[derive(Default)]
pub(crate) struct HandlingLayer {
    /// Its step in the record of the call.
    step: Option<u16>,
    /// The upstream that its chain is around. `None`: it is around the server.
    upstream: Option<Arc<str>>,
    /// How often it has passed the call on.
    passes: AtomicU8,
    /// Whether it changed the call or its outcome.
    is_changed: AtomicBool,
}

impl HandlingLayer {
    /// What the layer did with the call, if it did not simply pass it on.
    pub(crate) fn decision(&self, outcome: &Outcome) -> Option<&'static str> {
        match (self.passes.load(Ordering::Relaxed), outcome) {
            (0, Outcome::Fail(_)) => Some("refused"),
            (0, _) => Some("answered"),
            (1, _) => self.is_changed.load(Ordering::Relaxed).then_some("changed"),
            _ => Some("retried"),
        }
    }

    /// The upstream that its chain is around.
    pub(crate) fn upstream(&self) -> Option<&str> {
        self.upstream.as_deref()
    }
}

impl Context {
    /// Whether the telemetry follows the call.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.shared.telemetry.is_some()
    }

    pub(crate) fn telemetry(&self) -> Option<&CallTelemetry> {
        self.shared.telemetry.as_deref()
    }

    /// The metrics of the server, if the call is counted.
    pub(crate) fn server_metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.telemetry()?.metrics.as_ref()
    }

    /// Sets what measures the call: the series of its tool or prompt, if that is listed. The first one stays.
    #[inline]
    pub(crate) fn set_item_series(&self, find: impl FnOnce() -> Option<Arc<OperationSeries>>) {
        if self.server_metrics().is_some() {
            let mut series = self.shared.item_series.lock();
            if series.is_none() {
                *series = find();
            }
        }
    }

    /// The record of the call. `None` unless a reader of the telemetry wants this call.
    #[doc(hidden)]
    pub fn record(&self) -> Option<&Arc<CallRecord>> {
        self.telemetry()?.record.as_ref()
    }

    /// The record and the step that the next steps are parts of, if a reader wants the steps of the call.
    #[doc(hidden)]
    pub fn recorded_step(&self) -> Option<(&Arc<CallRecord>, Option<u16>)> {
        let record = self.record().filter(|record| record.detail() >= Detail::Steps)?;
        Some((record, self.step()))
    }

    /// The step of the layer that handles the call.
    fn step(&self) -> Option<u16> {
        self.layer.as_ref()?.step
    }

    /// Starts a step of the call, if it is recorded. It is a part of the innermost layer that handles the call.
    #[doc(hidden)]
    pub fn start_step(&self, kind: impl FnOnce() -> StepKind) -> Option<StepGuard> {
        self.record().map(|record| record.start_step(kind(), self.step()))
    }

    /// Whether it is recorded or counted what layers do with the call.
    #[doc(hidden)]
    pub fn observes_layers(&self) -> bool {
        self.layer.is_some()
    }

    /// Records and counts that the layer which handles the call changed it or its outcome.
    #[doc(hidden)]
    pub fn record_change(&self) {
        if let Some((record, step)) = self.recorded_step() {
            record.set_changed(step);
        }
        if let Some(layer) = &self.layer {
            layer.is_changed.store(true, Ordering::Relaxed);
        }
    }

    /// Starts a step for an input request to the client, if the call is recorded.
    pub(crate) fn start_input_request(&self, input_request: &InputRequest) -> Option<StepGuard> {
        let (record, parent) = self.recorded_step()?;
        Some(record.start_input_request(input_request.method(), parent))
    }

    /// Gives the call to a chain around this upstream.
    pub(crate) fn enter_chain(&mut self, upstream: &Arc<str>) {
        let (step, upstream) = (self.step(), Some(Arc::clone(upstream)));
        self.layer = Some(Arc::new(HandlingLayer { step, upstream, ..HandlingLayer::default() }));
    }

    /// Gives the call to a layer, whose step in the record is `step`.
    pub(crate) fn enter_layer(&mut self, step: Option<u16>) -> Arc<HandlingLayer> {
        let (step, outer) = (step.or(self.step()), self.layer.as_ref());
        let upstream = outer.and_then(|outer| outer.upstream.clone());
        let layer = HandlingLayer { step, upstream, ..HandlingLayer::default() };
        Arc::clone(self.layer.insert(Arc::new(layer)))
    }

    /// Counts that the layer which handles the call passes it on.
    pub(crate) fn count_pass(&self) {
        if let Some(layer) = &self.layer {
            // It wraps after 256 attempts, which no layer makes.
            layer.passes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an input request to the client.
    pub(crate) fn count_input_request(&self, method: &str, outcome: &'static str) {
        if let Some(server) = self.server_metrics() {
            server.metrics().count(&table::INPUT_REQUESTS, &[method, outcome]);
        }
    }

    /// The trace context for a request to an upstream, whose span is `span`.
    #[doc(hidden)]
    pub fn trace_for_upstream(
        &self,
        span: Option<SpanId>,
        propagation: &Propagation,
    ) -> OutgoingTrace {
        self.received_trace(span).to_upstream(propagation)
    }

    /// The members of `_meta` that the client gets with an input request, whose span is `span`.
    pub(super) fn trace_for_client(&self, span: Option<SpanId>) -> Option<Raw> {
        self.received_trace(span).to_client()
    }

    /// The context that the call received, and the span of a request that it causes.
    fn received_trace(&self, span: Option<SpanId>) -> ReceivedTrace<'_> {
        let extra = self.shared.caller.extra.as_deref();
        let meta = extra.and_then(|extra| extra.meta.as_ref());
        let Some(telemetry) = self.telemetry() else {
            return ReceivedTrace { meta, ..ReceivedTrace::default() };
        };
        let trace = telemetry.record.as_ref().and_then(|record| record.trace.as_ref());
        // A request without a span of its own belongs to that of the call.
        let span = trace.and_then(|trace| {
            let span = trace.context_of(span.unwrap_or(trace.span_id))?;
            Some((span, trace.tracestate.as_deref()))
        });
        let headers = telemetry.trace_headers.as_deref();
        ReceivedTrace { meta, headers, is_tracing: telemetry.is_traced, span }
    }
}
