//! Counts one call of a server, and measures its duration.

use std::sync::Arc;
use std::time::Instant;

use creole_proto::operation::{Operation, Outcome};
use creole_proto::revision::Opening;

use super::ServiceCore;
use super::server_telemetry::ServerTelemetry;
use crate::call::{Call, Canceller};
use crate::telemetry::error_type::server_error_type;
use crate::telemetry::metrics::{NetworkTransport, OperationSeries, ServerMetrics, TracedCall};
use crate::telemetry::outcome::CallOutcome;

/// One call that runs and is counted. Dropping it ends the call as cancelled.
pub(super) struct CallMeter<'a> {
    telemetry: &'a ServerTelemetry,
    metrics: &'a ServerMetrics,
    /// What measures the calls of its tool or prompt, if that is listed.
    item: Option<Arc<OperationSeries>>,
    method: &'static str,
    transport: NetworkTransport,
    started: Instant,
    call: Canceller,
    is_ended: bool,
}

impl ServiceCore {
    /// Counts a call that starts, if calls are counted.
    #[inline]
    pub(super) fn start_meter(&self, call: &Call) -> Option<CallMeter<'_>> {
        match call.context.is_observed() {
            false => None,
            true => self.start_counting(call),
        }
    }

    #[cold]
    fn start_counting(&self, call: &Call) -> Option<CallMeter<'_>> {
        let Call { operation, context } = call;
        let transport = context.telemetry()?.transport;
        let metrics = self.telemetry.metrics()?;
        metrics.calls_active().increment();
        let is_handshake = matches!(operation, Operation::Discover)
            && context.caller().rules.opening == Opening::Initialize;
        Some(CallMeter {
            telemetry: &self.telemetry,
            metrics,
            item: self.registry.item_series(operation),
            method: if is_handshake { "initialize" } else { operation.method() },
            transport,
            started: Instant::now(),
            call: context.canceller(),
            is_ended: false,
        })
    }
}

impl CallMeter<'_> {
    /// Measures the call, which has this outcome.
    #[cold]
    pub(super) fn end(mut self, outcome: &Outcome) {
        let (is_tool, rules) = (self.method == "tools/call", self.call.caller().rules);
        let outcome = self.telemetry.outcome(outcome, is_tool, rules);
        self.record(outcome);
    }

    fn record(&mut self, outcome: CallOutcome) {
        self.is_ended = true;
        let (error, duration) = (server_error_type(outcome), self.started.elapsed());
        let (rules, traced) = (self.call.caller().rules, self.traced());
        match &self.item {
            Some(item) => item.record(rules, self.transport, error, duration, traced),
            None => {
                let series = self.metrics.method_series(self.method);
                series.record(rules, self.transport, error, duration, traced);
            }
        }
    }

    /// The ids of the call, if its trace is exported.
    fn traced(&self) -> Option<TracedCall> {
        let trace = self.call.record()?.trace.as_ref().filter(|trace| trace.is_sampled)?;
        Some(TracedCall { trace_id: trace.trace_id, span_id: trace.span_id })
    }
}

impl Drop for CallMeter<'_> {
    fn drop(&mut self) {
        if !self.is_ended {
            let (is_tool, rules) = (self.method == "tools/call", self.call.caller().rules);
            self.record(match self.call.abort_fault() {
                Some(kind) => self.telemetry.fault_outcome(kind, is_tool, rules),
                None => CallOutcome::Cancelled,
            });
        }
        self.metrics.calls_active().decrement();
    }
}
