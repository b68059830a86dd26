//! Measures the calls of a host, from the request to the response: counts them, and reports those that a reader wants
//! only at their end.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::operation::{Operation, Outcome};
use creole_proto::revision::Opening;
use creole_proto::server::{Call as Started, CallKey};
use tokio::time::Instant;

use super::late_call::LateCall;
use super::server_telemetry::ServerTelemetry;
use crate::call::Canceller;
use crate::telemetry::error_type::server_error_type;
use crate::telemetry::metrics::{NetworkTransport, TracedCall};
use crate::telemetry::outcome::{CallEnd, CallOutcome};

/// The calls of a host that are measured. Empty if the telemetry is off.
pub(crate) struct MeasuredCalls {
    /// The start of the host's clock.
    clock: Instant,
    counted: Vec<MeasuredCall<CountedCall>>,
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

/// What is kept of a call that is counted.
struct CountedCall {
    method: &'static str,
    transport: NetworkTransport,
}

impl MeasuredCalls {
    /// No calls yet, of a host whose clock started at this time.
    pub(crate) fn new(clock: Instant) -> Self {
        Self { clock, counted: Vec::new(), late: Vec::new() }
    }

    /// Whether no call is measured.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.counted.is_empty() && self.late.is_empty()
    }

    /// Counts a call that the host received at this time, if calls are counted.
    #[inline]
    pub(crate) fn count(
        &mut self,
        server: &Arc<ServerTelemetry>,
        call: &Started,
        received: Duration,
        transport: NetworkTransport,
    ) {
        let Some(metrics) = server.metrics() else { return };
        metrics.calls_active().increment();
        let operation = &call.operation;
        let is_handshake = matches!(operation, Operation::Discover)
            && call.caller.rules.opening == Opening::Initialize;
        let method = if is_handshake { "initialize" } else { operation.method() };
        let (server, kept) = (Arc::clone(server), CountedCall { method, transport });
        self.counted.push(MeasuredCall { key: call.key, received, server, kept });
    }

    /// Keeps what a late record of a call needs that the host received at this time.
    #[inline]
    pub(crate) fn keep_late(
        &mut self,
        server: &Arc<ServerTelemetry>,
        key: CallKey,
        received: Duration,
        kept: LateCall,
    ) {
        self.late.push(MeasuredCall { key, received, server: Arc::clone(server), kept });
    }

    /// Ends a call that has this outcome at this time.
    #[inline]
    pub(crate) fn end(&mut self, call: &Canceller, key: CallKey, outcome: &Outcome, now: Duration) {
        self.end_with(key, MeasuredEnd { call, outcome: Some(outcome), now });
    }

    /// Ends a call that is not run to its end.
    #[cold]
    pub(crate) fn abort(&mut self, call: &Canceller, key: CallKey) {
        let now = self.clock.elapsed();
        self.end_with(key, MeasuredEnd { call, outcome: None, now });
    }

    #[inline]
    fn end_with(&mut self, key: CallKey, end: MeasuredEnd<'_>) {
        if !self.counted.is_empty() {
            remove(&mut self.counted, key, |counted| counted.count(end));
        }
        if !self.late.is_empty() {
            remove(&mut self.late, key, |late| late.report(end));
        }
    }

    /// Frees the capacity that calls needed.
    pub(crate) fn free_capacity(&mut self) {
        self.counted.shrink_to_fit();
        self.late.shrink_to_fit();
    }
}

/// Ends a call, if it is one of these calls, and removes it.
#[inline(never)]
fn remove<T>(calls: &mut Vec<MeasuredCall<T>>, key: CallKey, end: impl FnOnce(&MeasuredCall<T>)) {
    // Mostly it is the latest one, which is dropped in its place.
    let is_last = calls.last().is_some_and(|call| call.key == key);
    let index = match is_last {
        true => Some(calls.len() - 1),
        false => calls.iter().position(|call| call.key == key),
    };
    let Some(index) = index else { return };
    end(&calls[index]);
    let last = calls.len() - 1;
    if index < last {
        calls.swap(index, last);
    }
    calls.truncate(last);
}

/// The end of a measured call.
#[derive(Clone, Copy)]
struct MeasuredEnd<'a> {
    call: &'a Canceller,
    /// How it ended. `None`: it was not run to its end.
    outcome: Option<&'a Outcome>,
    /// The time, by the clock of the host.
    now: Duration,
}

impl MeasuredEnd<'_> {
    /// How the call ended for its client.
    #[inline]
    fn outcome(self, server: &ServerTelemetry, method: &str) -> CallOutcome {
        match self.outcome {
            Some(outcome) => server.outcome(outcome, method, self.call.caller().rules),
            None => server.abort_outcome(self.call, method),
        }
    }
}

impl MeasuredCall<CountedCall> {
    #[inline]
    fn count(&self, end: MeasuredEnd<'_>) {
        let (call, &CountedCall { method, transport }) = (end.call, &self.kept);
        let Some(metrics) = call.server_metrics() else { return };
        let duration = end.now.saturating_sub(self.received);
        let error = server_error_type(end.outcome(&self.server, method));
        let (rules, traced) = (call.caller().rules, traced(call));
        match call.take_item_series() {
            Some(series) => series.record(rules, transport, error, duration, traced),
            None => metrics.method_series(method).record(rules, transport, error, duration, traced),
        }
        metrics.calls_active().decrement();
    }
}

impl MeasuredCall<LateCall> {
    #[inline]
    fn report(&self, end: MeasuredEnd<'_>) {
        let duration = end.now.saturating_sub(self.received);
        let outcome = end.outcome(&self.server, self.kept.method);
        if self.server.telemetry().may_want_late(outcome, duration) {
            let denied_by = end.call.denied_by().cloned();
            let end_of_call = CallEnd { duration, outcome, denied_by };
            self.server.report_late(&self.kept, end.call, end_of_call);
        }
    }
}

/// The ids of a call, if its trace is exported.
#[inline]
fn traced(call: &Canceller) -> Option<TracedCall> {
    let trace = call.record()?.trace.as_ref().filter(|trace| trace.is_sampled)?;
    Some(TracedCall { trace_id: trace.trace_id, span_id: trace.span_id })
}
