//! The telemetry of one server: the records of its calls, their traces and their counters.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::dialect::Dialect;
use creole_proto::fault::{ErrorChannel, Fault, FaultKind};
use creole_proto::model::Implementation;
use creole_proto::operation::Outcome;
use creole_proto::revision::Rules;
use creole_proto::server::{Call as Started, Observation, error_code};
use creole_proto::wire::Raw;

use super::late_call::LateCall;
use crate::call::{CallTelemetry, Canceller};
use crate::principal::Principal;
use crate::telemetry::error_type::server_error_type;
use crate::telemetry::facts::{RequestFacts, Transport};
use crate::telemetry::frames::{FrameDirection, FrameRedactor};
use crate::telemetry::metrics::{ServerMetrics, table};
use crate::telemetry::outcome::{CallEnd, CallOutcome};
use crate::telemetry::record::{CallRecord, NewRecord};
use crate::telemetry::trace::{CallTrace, IncomingTrace, SpanId, TraceHeaders, new_span_id};
use crate::telemetry::{Modes, Telemetry};

/// The method of a request whose method the protocol does not have.
const OTHER_METHOD: &str = "_OTHER";

/// Calls may belong to traces.
const TRACED: usize = 1;
/// Calls are counted.
const COUNTED: usize = 2;

/// The telemetry of one server.
pub(crate) struct ServerTelemetry {
    telemetry: Telemetry,
    /// The name of the server.
    server: Arc<str>,
    dialect: Dialect,
    redactor: Option<FrameRedactor>,
    /// Counts its calls, if metrics are counted.
    metrics: Option<Arc<ServerMetrics>>,
    /// What the telemetry follows of calls without a record, which share it: by [`TRACED`] and [`COUNTED`].
    unrecorded: [Arc<CallTelemetry>; 4],
}

impl ServerTelemetry {
    pub(crate) fn new(
        telemetry: Telemetry,
        server: &str,
        dialect: &Dialect,
        redactor: Option<FrameRedactor>,
        metrics: Option<Arc<ServerMetrics>>,
    ) -> Self {
        let unrecorded = std::array::from_fn(|bits| {
            let metrics = metrics.clone().filter(|_| bits & COUNTED != 0);
            let is_traced = bits & TRACED != 0;
            Arc::new(CallTelemetry { metrics, is_traced, ..CallTelemetry::default() })
        });
        let dialect = dialect.clone();
        Self { telemetry, server: server.into(), dialect, redactor, metrics, unrecorded }
    }

    /// Counts its calls, if metrics are counted.
    #[inline]
    pub(super) fn metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.metrics.as_ref().filter(|_| self.telemetry.modes().contains(Modes::METRICS))
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// What the telemetry follows of a call that starts, with the facts that are known, or else made when a reader may
    /// want the call.
    #[inline]
    pub(crate) fn follow_call(
        &self,
        modes: Modes,
        call: &Started,
        principal: &Principal,
        known: Option<&RequestFacts>,
        make_facts: impl FnOnce() -> RequestFacts,
    ) -> Arc<CallTelemetry> {
        let headers = known.and_then(|facts| facts.trace_headers.as_ref());
        let record = match modes.contains(Modes::RECORDS) {
            true => self.start_record(modes, call, principal, known, make_facts),
            false => None,
        };
        match (record, headers) {
            (None, None) => self.follow_unrecorded(modes),
            (record, headers) => self.call_telemetry(modes, record, headers.cloned()),
        }
    }

    /// The record of a call that starts, if a reader wants it.
    #[inline]
    fn start_record(
        &self,
        modes: Modes,
        call: &Started,
        principal: &Principal,
        known: Option<&RequestFacts>,
        make_facts: impl FnOnce() -> RequestFacts,
    ) -> Option<Arc<CallRecord>> {
        let meta = call.caller.extra.as_ref().and_then(|extra| extra.meta.as_ref());
        let new_half = new_span_id();
        let is_plain = meta.is_none() && known.is_none_or(|facts| facts.trace_headers.is_none());
        // Most calls have no context, are not sampled, and end here.
        if is_plain && !modes.contains(Modes::UNSAMPLED) && !self.telemetry.samples(new_half) {
            return None;
        }
        match known {
            Some(facts) => self.start_traced_record(call, meta, principal, facts, new_half),
            None => self.start_traced_record(call, meta, principal, &make_facts(), new_half),
        }
    }

    /// The same for a call whose new trace, if it gets one, has this second half of its id.
    #[cold]
    fn start_traced_record(
        &self,
        call: &Started,
        meta: Option<&Raw>,
        principal: &Principal,
        facts: &RequestFacts,
        new_half: SpanId,
    ) -> Option<Arc<CallRecord>> {
        let Started { operation, caller, .. } = call;
        let trace = self.trace_of(meta, principal, facts, new_half);
        if !self.telemetry.may_record(trace.as_ref()) {
            return None;
        }
        let method = facts.method.unwrap_or_else(|| operation.method());
        let client =
            || caller.client.as_ref().and_then(|raw| serde_json::from_str(raw.as_str()).ok());
        let target = operation.target();
        let new = self.new_record(method, target, caller.rules, principal, facts, trace, client);
        self.started_record(new, facts)
    }

    /// The place of a request in a trace, if calls are traced.
    fn trace_of(
        &self,
        meta: Option<&Raw>,
        principal: &Principal,
        facts: &RequestFacts,
        new_half: SpanId,
    ) -> Option<CallTrace> {
        if !self.telemetry.modes().contains(Modes::TRACES) {
            return None;
        }
        let received = IncomingTrace::read(meta, facts.trace_headers.as_deref());
        if received.is_malformed {
            self.telemetry.metrics().count(&table::TRACE_CONTEXT_INVALID, &[]);
        }
        let is_known = is_known(principal, facts);
        self.telemetry.tracing().as_ref()?.start_call(received, is_known, new_half)
    }

    /// What the telemetry follows of a call with this record and these trace headers.
    #[cold]
    fn call_telemetry(
        &self,
        modes: Modes,
        record: Option<Arc<CallRecord>>,
        trace_headers: Option<Arc<TraceHeaders>>,
    ) -> Arc<CallTelemetry> {
        let is_traced = modes.contains(Modes::TRACES);
        let metrics = self.metrics().cloned();
        let trace_headers = trace_headers.filter(|_| is_traced);
        Arc::new(CallTelemetry { record, metrics, is_traced, trace_headers })
    }

    /// What the telemetry follows of a call that no reader may want.
    #[inline]
    pub(crate) fn follow_unrecorded(&self, modes: Modes) -> Arc<CallTelemetry> {
        Arc::clone(self.unrecorded(modes))
    }

    /// What the telemetry follows of a call without a record.
    #[inline]
    fn unrecorded(&self, modes: Modes) -> &Arc<CallTelemetry> {
        let traced = if modes.contains(Modes::TRACES) { TRACED } else { 0 };
        let counted = if modes.contains(Modes::METRICS) { COUNTED } else { 0 };
        &self.unrecorded[traced | counted]
    }

    /// Reports a call at its end, if a reader wants it only now.
    #[cold]
    pub(super) fn report_late(&self, late: &LateCall, call: &Canceller, end: CallEnd) {
        let readers = self.telemetry.late_readers(&end);
        if readers.is_empty() {
            return;
        }
        let (caller, principal) = (call.caller(), call.principal());
        let facts = &*late.facts();
        let settings = self.telemetry.tracing();
        let is_known = is_known(principal, facts);
        let client =
            || caller.client.as_ref().and_then(|raw| serde_json::from_str(raw.as_str()).ok());
        let new = NewRecord {
            server: &self.server,
            method: late.method,
            target: late.target.as_str(),
            rules: caller.rules,
            principal,
            facts,
            trace: settings.as_ref().and_then(|settings| late.trace(caller, settings, is_known)),
            client,
            earlier: None,
            redactor: None,
        };
        Telemetry::report_late(new, end, readers);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one record")]
    fn new_record<'a, C: FnOnce() -> Option<Implementation>>(
        &'a self,
        method: &'static str,
        target: &'a str,
        rules: &'static Rules,
        principal: &'a Principal,
        facts: &'a RequestFacts,
        trace: Option<CallTrace>,
        client: C,
    ) -> NewRecord<'a, C> {
        NewRecord {
            server: &self.server,
            method,
            target,
            rules,
            principal,
            facts,
            trace,
            client,
            earlier: None,
            redactor: self.redactor.as_ref(),
        }
    }

    /// The record, if a reader wants it, with the message of the client.
    fn started_record<C: FnOnce() -> Option<Implementation>>(
        &self,
        new: NewRecord<'_, C>,
        facts: &RequestFacts,
    ) -> Option<Arc<CallRecord>> {
        let record = self.telemetry.start_record(new)?;
        if let Some(frame) = &facts.frame {
            record.add_frame(FrameDirection::ClientIn, None, frame.as_bytes());
        }
        Some(record)
    }

    /// Records a request that got its response without a call, a notification, or a message that was rejected.
    pub(crate) fn observe(
        &self,
        observation: &Observation,
        principal: &Principal,
        facts: impl FnOnce() -> RequestFacts,
    ) {
        if self.telemetry.modes().is_empty() {
            return;
        }
        let (method, id, rules, fault, meta) = match observation {
            Observation::Answered { method, id, rules, fault, meta } => {
                (*method, Some(id), *rules, *fault, meta.as_ref())
            }
            Observation::Notified { method, rules, meta } => {
                (*method, None, *rules, None, meta.as_ref())
            }
            Observation::Refused { kind, rules } => (None, None, *rules, Some(*kind), None),
            // These are the log's: the telemetry follows the call.
            Observation::Received { .. } | Observation::Done { .. } => return,
        };
        let facts = RequestFacts { request_id: id.map(|id| (**id).into()), ..facts() };
        let outcome = match fault {
            None => CallOutcome::Success,
            Some(kind) => self.fault_outcome(kind, "", rules),
        };
        let method = method.unwrap_or(OTHER_METHOD);
        let is_refused = matches!(observation, Observation::Refused { .. });
        match (is_refused, outcome, self.metrics()) {
            (true, CallOutcome::Fault(kind, _), Some(metrics)) => metrics.message_refused(kind),
            _ => self.count_answer(method, rules, facts.transport, outcome),
        }
        let trace = match is_refused {
            true => None,
            false => self.trace_of(meta, principal, &facts, new_span_id()),
        };
        let new = self.new_record(method, "", rules, principal, &facts, trace, || None);
        let record = match observation {
            Observation::Notified { .. } => self.telemetry.start_notification(new),
            _ => self.started_record(new, &facts),
        };
        if let Some(record) = record {
            record.finish(outcome, None);
        }
    }

    /// Counts a request that got its response without a call that ran.
    fn count_answer(
        &self,
        method: &'static str,
        rules: &'static Rules,
        transport: Transport,
        outcome: CallOutcome,
    ) {
        let Some(metrics) = self.metrics() else { return };
        let (transport, error) = (transport.into(), server_error_type(outcome));
        metrics.method_series(method).record(rules, transport, error, Duration::ZERO, None);
    }

    /// How a call ended for its client.
    pub(super) fn outcome(
        &self,
        outcome: &Outcome,
        method: &str,
        rules: &'static Rules,
    ) -> CallOutcome {
        CallOutcome::of(outcome, |fault| self.code(fault, method, rules))
    }

    /// How a call ended that was not run to its end.
    pub(super) fn abort_outcome(&self, call: &Canceller, method: &str) -> CallOutcome {
        match call.abort_fault() {
            Some(kind) => self.fault_outcome(kind, method, call.caller().rules),
            None => CallOutcome::Cancelled,
        }
    }

    fn fault_outcome(&self, kind: FaultKind, method: &str, rules: &'static Rules) -> CallOutcome {
        let fault = Fault::new(kind, "");
        CallOutcome::Fault(kind, self.code(&fault, method, rules))
    }

    /// The code of a fault on the wire. `None` if it is part of a tool result.
    #[cold]
    fn code(&self, fault: &Fault, method: &str, rules: &'static Rules) -> Option<i64> {
        let row = self.dialect.error_row(fault.kind, rules);
        let is_result =
            method == "tools/call" && matches!(row.channel, ErrorChannel::ToolResult { .. });
        (!is_result).then(|| error_code(fault, &self.dialect, rules))
    }
}

/// Whether the caller is authenticated, or started this process, as the caller on a pipe did.
fn is_known(principal: &Principal, facts: &RequestFacts) -> bool {
    facts.transport == Transport::Pipe || !principal.is_local()
}
