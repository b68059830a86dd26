//! What is kept of a call that no reader wants at its start, for readers that want it if it fails or is slow.

use std::sync::Arc;

use creole_proto::operation::{Caller, Operation};

use crate::call::CallTelemetry;
use crate::telemetry::facts::RequestFacts;
use crate::telemetry::trace::{CallTrace, IncomingTrace, TraceHeaders, TraceSettings};

/// What is kept of a call that has no record.
pub(super) struct LateCall {
    target: Box<str>,
    facts: RequestFacts,
    headers: Option<Arc<TraceHeaders>>,
}

impl LateCall {
    /// What is kept of a call.
    pub(super) fn of(
        operation: &Operation,
        call: &CallTelemetry,
        facts: RequestFacts,
    ) -> Box<Self> {
        let target = operation.target().into();
        Box::new(Self { target, facts, headers: call.trace_headers.clone() })
    }

    pub(super) fn target(&self) -> &str {
        &self.target
    }

    pub(super) fn facts(&self) -> &RequestFacts {
        &self.facts
    }

    /// The place of the call in the trace of its client, if it is in one.
    pub(super) fn trace(
        &self,
        caller: &Caller,
        settings: &TraceSettings,
        is_known: bool,
    ) -> Option<CallTrace> {
        let meta = caller.extra.as_ref().and_then(|extra| extra.meta.as_ref());
        let received = IncomingTrace::read(meta, self.headers.as_deref());
        settings.late_call(received, is_known)
    }
}
