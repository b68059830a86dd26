//! The telemetry of one server: the records of its calls, their traces and their counters.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::dialect::Dialect;
use creole_proto::fault::{ErrorChannel, Fault, FaultKind};
use creole_proto::model::Implementation;
use creole_proto::operation::{Caller, Operation, Outcome};
use creole_proto::revision::Rules;
use creole_proto::server::{Observation, error_code};
use creole_proto::wire::Raw;

use super::late_call::LateCall;
use crate::call::{CallTelemetry, Canceller};
use crate::principal::Principal;
use crate::telemetry::error_type::server_error_type;
use crate::telemetry::facts::{RequestFacts, Transport};
use crate::telemetry::frames::{FrameDirection, FrameRedactor};
use crate::telemetry::metrics::{NetworkTransport, ServerMetrics, table};
use crate::telemetry::outcome::{CallEnd, CallOutcome};
use crate::telemetry::record::{CallRecord, NewRecord};
use crate::telemetry::trace::{CallTrace, IncomingTrace, TraceHeaders};
use crate::telemetry::{Modes, Telemetry};

/// The method of a request whose method the protocol does not have.
const OTHER_METHOD: &str = "_OTHER";

/// Calls may belong to traces.
const TRACED: usize = 1;
/// Calls are counted.
const COUNTED: usize = 2;
/// The transport is HTTP.
const TCP: usize = 4;

/// The telemetry of one server.
pub(crate) struct ServerTelemetry {
    telemetry: Telemetry,
    /// The name of the server.
    server: Arc<str>,
    dialect: Dialect,
    redactor: Option<FrameRedactor>,
    /// Counts its calls, if metrics are counted.
    metrics: Option<Arc<ServerMetrics>>,
    /// What the telemetry follows of calls without a record, which share it: by [`TRACED`], [`COUNTED`] and [`TCP`].
    unrecorded: [Arc<CallTelemetry>; 8],
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
            let transport = match bits & TCP != 0 {
                true => NetworkTransport::Tcp,
                false => NetworkTransport::Pipe,
            };
            let is_traced = bits & TRACED != 0;
            Arc::new(CallTelemetry { metrics, is_traced, transport, ..CallTelemetry::default() })
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
        if !self.telemetry.modes().contains(Modes::RECORDS) {
            return None;
        }
        let method = facts.method.unwrap_or_else(|| operation.method());
        let meta = caller.extra.as_ref().and_then(|extra| extra.meta.as_ref());
        let trace = self.trace_of(meta, principal, facts);
        if !self.telemetry.may_record(trace.as_ref()) {
            return None;
        }
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
        let received = IncomingTrace::read(meta, facts.trace_headers.as_deref());
        if received.is_malformed {
            self.telemetry.metrics().count(&table::TRACE_CONTEXT_INVALID, &[]);
        }
        self.telemetry.tracing().as_ref()?.start_call(received, is_known(principal, facts))
    }

    /// What the telemetry follows of a call with this record and these trace headers.
    pub(super) fn call_telemetry(
        &self,
        record: Option<Arc<CallRecord>>,
        trace_headers: Option<Arc<TraceHeaders>>,
        transport: NetworkTransport,
    ) -> Arc<CallTelemetry> {
        let is_traced = self.traces();
        let trace_headers = trace_headers.filter(|_| is_traced);
        if record.is_none() && trace_headers.is_none() {
            return self.unrecorded(transport);
        }
        let metrics = self.metrics().cloned();
        Arc::new(CallTelemetry { record, metrics, is_traced, trace_headers, transport })
    }

    /// What the telemetry follows of a call without a record.
    pub(super) fn unrecorded(&self, transport: NetworkTransport) -> Arc<CallTelemetry> {
        let traced = if self.traces() { TRACED } else { 0 };
        let counted = if self.metrics().is_some() { COUNTED } else { 0 };
        let tcp = if transport == NetworkTransport::Tcp { TCP } else { 0 };
        Arc::clone(&self.unrecorded[traced | counted | tcp])
    }

    /// Whether calls may belong to traces.
    pub(super) fn traces(&self) -> bool {
        self.telemetry.modes().contains(Modes::TRACES)
    }

    /// What is kept of a call without a record, if a reader may want it at its end.
    pub(super) fn keep_late(
        &self,
        operation: &Operation,
        call: &CallTelemetry,
        facts: RequestFacts,
    ) -> Option<LateCall> {
        let is_wanted = self.telemetry.modes().contains(Modes::LATE) && call.record.is_none();
        is_wanted.then(|| LateCall::of(operation, facts))
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
        match (is_refused, outcome, self.metrics()) {
            (true, CallOutcome::Fault(kind, _), Some(metrics)) => metrics.message_refused(kind),
            _ => self.count_answer(method, rules, facts.transport, outcome),
        }
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

    /// Counts a call that is refused before it runs.
    #[cold]
    pub(crate) fn count_refusal(
        &self,
        operation: &Operation,
        rules: &'static Rules,
        transport: Transport,
        kind: FaultKind,
    ) {
        let is_tool = matches!(operation, Operation::CallTool { .. });
        let outcome = self.fault_outcome(kind, is_tool, rules);
        self.count_answer(operation.method(), rules, transport, outcome);
    }

    /// How a call ended for its client.
    pub(super) fn outcome(
        &self,
        outcome: &Outcome,
        is_tool: bool,
        rules: &'static Rules,
    ) -> CallOutcome {
        CallOutcome::of(outcome, |fault| self.code(fault, is_tool, rules))
    }

    pub(super) fn fault_outcome(
        &self,
        kind: FaultKind,
        is_tool: bool,
        rules: &'static Rules,
    ) -> CallOutcome {
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

/// Whether the caller is authenticated, or started this process, as the caller on a pipe did.
fn is_known(principal: &Principal, facts: &RequestFacts) -> bool {
    facts.transport == Transport::Pipe || !principal.is_local()
}
