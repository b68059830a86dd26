//! What is kept of a call that no reader wants at its start, for readers that want it if it fails or is slow.

use creole_proto::operation::{Caller, Operation};

use crate::telemetry::facts::RequestFacts;
use crate::telemetry::trace::{CallTrace, IncomingTrace, TraceSettings};

/// What is kept of a call that has no record.
pub(super) struct LateCall {
    target: Box<str>,
    facts: RequestFacts,
}

impl LateCall {
    /// What is kept of a call.
    pub(super) fn of(operation: &Operation, facts: RequestFacts) -> Self {
        Self { target: operation.target().into(), facts }
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
        let received = IncomingTrace::read(meta, self.facts.trace_headers.as_deref());
        settings.late_call(received, is_known)
    }
}
