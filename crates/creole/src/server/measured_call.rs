//! Measures the calls of a host, from the request to the response: counts them, and reports those that a reader wants
//! only at their end.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::operation::{Operation, Outcome};
use creole_proto::revision::Opening;
use creole_proto::server::{Call as Started, CallKey};
use tokio::time::Instant;

use super::ServiceCore;
use super::late_call::{KeptTarget, LateCall};
use super::server_telemetry::ServerTelemetry;
use crate::call::Canceller;
use crate::telemetry::error_type::server_error_type;
use crate::telemetry::facts::RequestFacts;
use crate::telemetry::metrics::{NetworkTransport, OperationSeries, TracedCall};
use crate::telemetry::outcome::{CallEnd, CallOutcome};

/// The calls of a host that are measured. Empty if the telemetry is off.
pub(crate) struct MeasuredCalls {
    /// The start of the host's clock.
    clock: Instant,
    counted: Vec<MeasuredCall<CallMeter>>,
    late: Vec<MeasuredCall<LateCall>>,
}

/// A call that is measured, and what is kept of it.
struct MeasuredCall<T> {
    key: CallKey,
    /// When the host received the request, by the clock of the host.
    received: Duration,
    server: Arc<ServerTelemetry>,
    kept: T,
}

/// Counts one call.
struct CallMeter {
    method: &'static str,
    transport: NetworkTransport,
    /// What measures the calls of its tool or prompt, if that is listed.
    item: Option<Arc<OperationSeries>>,
}

impl MeasuredCalls {
    /// No calls yet, of a host whose clock started at this time.
    pub(crate) fn new(clock: Instant) -> Self {
        Self { clock, counted: Vec::new(), late: Vec::new() }
    }

    /// Counts a call that the host received at this time, if calls are counted.
    #[inline]
    pub(crate) fn count(
        &mut self,
        core: &ServiceCore,
        call: &Started,
        received: Duration,
        transport: NetworkTransport,
    ) {
        let Some(metrics) = core.telemetry.metrics() else { return };
        metrics.calls_active().increment();
        let operation = &call.operation;
        let is_handshake = matches!(operation, Operation::Discover)
            && call.caller.rules.opening == Opening::Initialize;
        let method = if is_handshake { "initialize" } else { operation.method() };
        let item = core.registry.item_series(operation);
        self.counted.push(MeasuredCall {
            key: call.key,
            received,
            server: Arc::clone(&core.telemetry),
            kept: CallMeter { method, transport, item },
        });
    }

    /// Keeps what a late record of a call needs that the host received at this time.
    #[inline]
    pub(crate) fn keep_late(
        &mut self,
        core: &ServiceCore,
        call: &Started,
        received: Duration,
        facts: RequestFacts,
    ) {
        self.late.push(MeasuredCall {
            key: call.key,
            received,
            server: Arc::clone(&core.telemetry),
            kept: LateCall { target: KeptTarget::from(call.operation.target()), facts },
        });
    }

    /// Whether no call is measured.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.counted.is_empty() && self.late.is_empty()
    }

    /// Ends a call that has this outcome at this time.
    pub(crate) fn end(&mut self, call: &Canceller, key: CallKey, outcome: &Outcome, now: Duration) {
        let rules = call.caller().rules;
        self.end_with(call, key, now, |server, method| server.outcome(outcome, method, rules));
    }

    /// Ends a call that is not run to its end.
    #[cold]
    pub(crate) fn abort(&mut self, call: &Canceller, key: CallKey) {
        let now = self.clock.elapsed();
        self.end_with(call, key, now, |server, method| server.abort_outcome(call, method));
    }

    #[inline]
    fn end_with(
        &mut self,
        call: &Canceller,
        key: CallKey,
        now: Duration,
        outcome: impl Fn(&ServerTelemetry, &str) -> CallOutcome,
    ) {
        remove(&mut self.counted, key, |counted| {
            let outcome = outcome(&counted.server, counted.kept.method);
            counted.record(call, outcome, now);
        });
        remove(&mut self.late, key, |late| {
            let outcome = outcome(&late.server, late.kept.method());
            late.report(call, outcome, now);
        });
    }

    /// Frees the capacity that calls needed.
    pub(crate) fn free_capacity(&mut self) {
        self.counted.shrink_to_fit();
        self.late.shrink_to_fit();
    }
}

/// Removes a call after its end.
#[inline]
fn remove<T>(calls: &mut Vec<MeasuredCall<T>>, key: CallKey, end: impl FnOnce(&MeasuredCall<T>)) {
    // Mostly it is the latest one.
    let Some(index) = calls.iter().rposition(|call| call.key == key) else { return };
    end(&calls[index]);
    let last = calls.len() - 1;
    if index < last {
        calls.swap(index, last);
    }
    calls.truncate(last);
}

impl MeasuredCall<CallMeter> {
    #[inline]
    fn record(&self, call: &Canceller, outcome: CallOutcome, now: Duration) {
        let Some(metrics) = self.server.metrics() else { return };
        let CallMeter { method, transport, item } = &self.kept;
        let duration = now.saturating_sub(self.received);
        let (rules, error) = (call.caller().rules, server_error_type(outcome));
        let series = item.as_deref().unwrap_or_else(|| metrics.method_series(method));
        series.record(rules, *transport, error, duration, traced(call));
        metrics.calls_active().decrement();
    }
}

impl MeasuredCall<LateCall> {
    #[inline]
    fn report(&self, call: &Canceller, outcome: CallOutcome, now: Duration) {
        let duration = now.saturating_sub(self.received);
        if self.server.telemetry().may_want_late(outcome, duration) {
            let end = CallEnd { duration, outcome, denied_by: call.denied_by().cloned() };
            self.server.report_late(&self.kept, call, end);
        }
    }
}

/// The ids of a call, if its trace is exported.
#[inline]
fn traced(call: &Canceller) -> Option<TracedCall> {
    let trace = call.record()?.trace.as_ref().filter(|trace| trace.is_sampled)?;
    Some(TracedCall { trace_id: trace.trace_id, span_id: trace.span_id })
}
