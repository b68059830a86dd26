//! Follows calls for the telemetry: from their start to their outcome, or until they are dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use std::time::{Duration, Instant};

use creole_proto::dialect::Dialect;
use creole_proto::fault::{ErrorChannel, Fault, FaultKind};
use creole_proto::model::Implementation;
use creole_proto::operation::{Caller, Operation, Outcome};
use creole_proto::revision::Rules;
use creole_proto::server::{Call as Started, Observation, error_code};
use creole_proto::wire::Raw;

use super::ServiceCore;
use super::late_call::LateCall;
use crate::call::{CallTelemetry, Canceller, Origin};
use crate::chain::BoxFuture;
use crate::principal::Principal;
use crate::telemetry::call_meter::{CallMeter, server_error_type};
use crate::telemetry::facts::{RequestFacts, Transport};
use crate::telemetry::frames::{FrameDirection, FrameRedactor};
use crate::telemetry::metrics::{ServerMetrics, TracedCall, table};
use crate::telemetry::outcome::{CallEnd, CallOutcome};
use crate::telemetry::record::{CallRecord, NewRecord};
use crate::telemetry::trace::{CallTrace, CurrentSpan, IncomingTrace, TraceContext, TraceHeaders};
use crate::telemetry::{Modes, Telemetry};

/// The method of a request whose method the protocol does not have.
const OTHER_METHOD: &str = "_OTHER";

/// The telemetry of one server.
pub(crate) struct ServerTelemetry {
    telemetry: Telemetry,
    /// The name of the server.
    server: Arc<str>,
    dialect: Dialect,
    redactor: Option<FrameRedactor>,
    /// Counts its calls, if metrics are counted.
    metrics: Option<Arc<ServerMetrics>>,
    /// What the telemetry follows of calls without a record, which share it: not counted and not traced, traced,
    /// counted, both.
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
        let unrecorded = [(false, false), (false, true), (true, false), (true, true)];
        let unrecorded = unrecorded.map(|(is_counted, is_traced)| {
            let metrics = metrics.clone().filter(|_| is_counted);
            Arc::new(CallTelemetry { metrics, is_traced, ..CallTelemetry::default() })
        });
        let dialect = dialect.clone();
        Self { telemetry, server: server.into(), dialect, redactor, metrics, unrecorded }
    }

    /// Counts its calls, if metrics are counted.
    pub(super) fn metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.metrics.as_ref().filter(|_| self.telemetry.modes().contains(Modes::METRICS))
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The record of a call that starts, if a reader wants it.
    pub(super) fn start_record(
        &self,
        operation: &Operation,
        caller: &Caller,
        principal: &Principal,
        facts: &RequestFacts,
    ) -> Option<Arc<CallRecord>> {
        let method = facts.method.unwrap_or_else(|| operation.method());
        let meta = caller.extra.as_ref().and_then(|extra| extra.meta.as_ref());
        let trace = self.trace_of(meta, principal, facts);
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
    ) -> Option<CallTrace> {
        if !self.telemetry.modes().contains(Modes::TRACES) {
            return None;
        }
        let received = IncomingTrace::read(meta, facts.trace_headers.as_ref());
        if received.is_malformed {
            self.telemetry.metrics().count(&table::TRACE_CONTEXT_INVALID, &[]);
        }
        self.telemetry.tracing().as_ref()?.start_call(received, is_known(principal, facts))
    }

    /// What the telemetry follows of a call with this record and these trace headers.
    fn call_telemetry(
        &self,
        record: Option<Arc<CallRecord>>,
        trace_headers: Option<TraceHeaders>,
    ) -> Arc<CallTelemetry> {
        let (metrics, is_traced) = (self.metrics(), self.traces());
        let trace_headers = trace_headers.filter(|_| is_traced);
        if record.is_none() && trace_headers.is_none() {
            let index = 2 * usize::from(metrics.is_some()) + usize::from(is_traced);
            return Arc::clone(&self.unrecorded[index]);
        }
        let (metrics, trace_headers) = (metrics.cloned(), trace_headers.map(Arc::new));
        Arc::new(CallTelemetry { record, metrics, is_traced, trace_headers })
    }

    /// Whether calls may belong to traces.
    pub(super) fn traces(&self) -> bool {
        self.telemetry.modes().contains(Modes::TRACES)
    }

    /// What is kept of a call without a record, if a reader may want it at its end.
    fn keep_late(
        &self,
        operation: &Operation,
        call: &CallTelemetry,
        facts: RequestFacts,
    ) -> Option<Box<LateCall>> {
        let is_wanted = self.telemetry.modes().contains(Modes::LATE) && call.record.is_none();
        is_wanted.then(|| LateCall::of(operation, call, facts))
    }

    /// Reports a call at its end, if a reader wants it only now.
    pub(super) fn report_late(
        &self,
        method: &'static str,
        late: &LateCall,
        call: &Canceller,
        end: CallEnd,
    ) {
        let readers = self.telemetry.late_readers(&end);
        if readers.is_empty() {
            return;
        }
        let (caller, principal) = (call.caller(), call.principal());
        let facts = late.facts();
        let settings = self.telemetry.tracing();
        let is_known = is_known(principal, facts);
        let client =
            || caller.client.as_ref().and_then(|raw| serde_json::from_str(raw.as_str()).ok());
        let new = NewRecord {
            server: &self.server,
            method,
            target: late.target(),
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
            Some(kind) => self.fault_outcome(kind, false, rules),
        };
        let method = method.unwrap_or(OTHER_METHOD);
        let is_refused = matches!(observation, Observation::Refused { .. });
        self.count_answer(method, rules, &facts, outcome, is_refused);
        let trace = match is_refused {
            true => None,
            false => self.trace_of(meta, principal, &facts),
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

    /// Counts a request without a call. `is_refused`: it could not even be read as a request.
    fn count_answer(
        &self,
        method: &'static str,
        rules: &'static Rules,
        facts: &RequestFacts,
        outcome: CallOutcome,
        is_refused: bool,
    ) {
        let Some(metrics) = self.metrics() else { return };
        if let (true, CallOutcome::Fault(kind, _)) = (is_refused, outcome) {
            return metrics.message_refused(kind);
        }
        let (transport, error) = (facts.transport.into(), server_error_type(outcome));
        metrics.method_series(method).record(rules, transport, error, Duration::ZERO, None);
    }

    /// How a call ended for its client.
    fn outcome(&self, outcome: &Outcome, is_tool: bool, rules: &'static Rules) -> CallOutcome {
        CallOutcome::of(outcome, |fault| self.code(fault, is_tool, rules))
    }

    fn fault_outcome(&self, kind: FaultKind, is_tool: bool, rules: &'static Rules) -> CallOutcome {
        let fault = Fault::new(kind, "");
        CallOutcome::Fault(kind, self.code(&fault, is_tool, rules))
    }

    /// The code of a fault on the wire. `None` if it is part of a tool result.
    fn code(&self, fault: &Fault, is_tool: bool, rules: &'static Rules) -> Option<i64> {
        let row = self.dialect.error_row(fault.kind, rules);
        let is_result = is_tool && matches!(row.channel, ErrorChannel::ToolResult { .. });
        (!is_result).then(|| error_code(fault, &self.dialect, rules))
    }
}

/// A call that starts and that the telemetry follows.
pub(super) struct ObservedStart {
    server: Arc<ServerTelemetry>,
    method: &'static str,
    /// What the context of the call holds.
    pub(super) telemetry: Arc<CallTelemetry>,
    meter: Option<CallMeter>,
    late: Option<Box<LateCall>>,
}

impl ServiceCore {
    /// Begins to follow a call.
    #[cold]
    pub(super) fn observe_start(
        &self,
        started: &Started,
        origin: &Origin,
        mut facts: RequestFacts,
    ) -> Box<ObservedStart> {
        let (server, operation) = (Arc::clone(&self.telemetry), &started.operation);
        let record = server.start_record(operation, &started.caller, &origin.principal, &facts);
        let telemetry = server.call_telemetry(record, facts.trace_headers.take());
        let method = facts.method.unwrap_or_else(|| operation.method());
        let meter = server.metrics().map(|metrics| {
            CallMeter::start(metrics, self.registry.item_series(operation), facts.transport)
        });
        let late = server.keep_late(operation, &telemetry, facts);
        Box::new(ObservedStart { server, method, telemetry, meter, late })
    }
}

impl ObservedStart {
    /// Follows the call from its start to its outcome.
    #[cold]
    pub(super) fn follow(
        self,
        running: BoxFuture<'static, Outcome>,
        canceller: &Canceller,
    ) -> BoxFuture<'static, Outcome> {
        let Self { server, method, late, meter, .. } = self;
        Box::pin(ObservedCall::start(server, method, canceller, late, meter).run(running))
    }
}

/// Whether the caller is authenticated, or started this process, as the caller on a pipe did.
fn is_known(principal: &Principal, facts: &RequestFacts) -> bool {
    facts.transport == Transport::Pipe || !principal.is_local()
}

/// A call that the telemetry follows. Dropping it ends the call as cancelled.
pub(super) struct ObservedCall {
    server: Arc<ServerTelemetry>,
    method: &'static str,
    rules: &'static Rules,
    started: Instant,
    /// Counts the call, if metrics are counted.
    meter: Option<CallMeter>,
    canceller: Canceller,
    record: Option<Arc<CallRecord>>,
    /// What a reader may want at the end of the call.
    late: Option<Box<LateCall>>,
    is_ended: bool,
}

impl ObservedCall {
    /// Follows a call that starts now.
    pub(super) fn start(
        server: Arc<ServerTelemetry>,
        method: &'static str,
        call: &Canceller,
        late: Option<Box<LateCall>>,
        meter: Option<CallMeter>,
    ) -> Self {
        let call = Self {
            server,
            method,
            rules: call.caller().rules,
            started: Instant::now(),
            meter,
            canceller: call.clone(),
            record: call.record().cloned(),
            late,
            is_ended: false,
        };
        if let Some(record) = &call.record {
            record.report_start();
        }
        call
    }

    /// Runs the call to its outcome.
    pub(super) fn run(
        self,
        running: BoxFuture<'static, Outcome>,
    ) -> impl Future<Output = Outcome> + Send {
        let trace = self.record.as_ref().and_then(|record| record.trace.as_ref());
        let span = trace.and_then(CallTrace::context);
        ObservedFuture { running, call: self, span }
    }

    fn end(&mut self, outcome: CallOutcome) {
        self.is_ended = true;
        if let Some(meter) = self.meter.take() {
            let trace = self.record.as_ref().and_then(|record| record.trace.as_ref());
            let traced = trace
                .filter(|trace| trace.is_sampled)
                .map(|trace| TracedCall { trace_id: trace.trace_id, span_id: trace.span_id });
            meter.end(self.method, self.rules, outcome, self.started.elapsed(), traced);
        }
        if let Some(record) = &self.record {
            record.finish(outcome, self.canceller.denied_by().cloned());
        }
        if let Some(late) = self.late.take() {
            let (duration, denied_by) =
                (self.started.elapsed(), self.canceller.denied_by().cloned());
            let end = CallEnd { duration, outcome, denied_by };
            self.server.report_late(self.method, &late, &self.canceller, end);
        }
    }
}

/// Runs a call that the telemetry follows. It is not an async function: the future of one would contain that of the
/// call several times.
struct ObservedFuture {
    /// It is dropped before the call ends, and with it the steps that still run.
    running: BoxFuture<'static, Outcome>,
    call: ObservedCall,
    /// The span of the call, if it is sampled.
    span: Option<TraceContext>,
}

impl Future for ObservedFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Outcome> {
        let _current = self.span.map(CurrentSpan::enter);
        let outcome = ready!(self.running.as_mut().poll(context));
        let is_tool = self.call.method == "tools/call";
        let seen = self.call.server.outcome(&outcome, is_tool, self.call.rules);
        self.call.end(seen);
        Poll::Ready(outcome)
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if !self.is_ended {
            let is_tool = self.method == "tools/call";
            let outcome = match self.canceller.abort_fault() {
                Some(kind) => self.server.fault_outcome(kind, is_tool, self.rules),
                None => CallOutcome::Cancelled,
            };
            self.end(outcome);
        }
    }
}
