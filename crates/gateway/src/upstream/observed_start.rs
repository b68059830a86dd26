//! Starts of an upstream, as the telemetry sees them.
//!
//! A start happens deep inside of the work that needs a connection, and mostly it does not happen. So the record is not
//! passed down to it: the task that works has it.

use std::ffi::OsString;
use std::sync::Arc;

use creole::internal::telemetry::{CallRecord, ErrorType, StepGuard, StepKind};
use creole::proto::fault::Fault;

tokio::task_local! {
    /// The record of the work, and the step that its starts are parts of.
    static PLACE: (Arc<CallRecord>, Option<u16>);
}

/// Runs a future. The starts that it causes become steps of this record.
pub(crate) async fn record_starts<F: Future>(
    record: &Arc<CallRecord>,
    parent: Option<u16>,
    future: F,
) -> F::Output {
    PLACE.scope((Arc::clone(record), parent), future).await
}

/// A start of an upstream. Dropping it means that nobody waits for the upstream any more.
pub(crate) struct ObservedStart(StepGuard);

impl ObservedStart {
    /// An attempt that begins now, if the work is recorded that causes it.
    pub(crate) fn begin(upstream: &str, attempt: u32) -> Option<Self> {
        let (record, parent) = PLACE.try_with(Clone::clone).ok()?;
        let kind = StepKind::UpstreamStart { upstream: upstream.into(), attempt };
        let mut step = record.start_step(kind, parent);
        step.set_error(Some(ErrorType::Cancelled));
        Some(Self(step))
    }

    /// The span of the start, for the environment of the program. Empty if the work is not sampled.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let trace = self.0.record().trace.as_ref();
        let Some(span) = trace.zip(self.0.span_id()).and_then(|(trace, id)| trace.context_of(id))
        else {
            return Vec::new();
        };
        let state = trace.and_then(|trace| trace.tracestate.as_deref());
        let parent = ("TRACEPARENT".into(), span.to_text().into());
        let state = state.map(|text| ("TRACESTATE".into(), text.into()));
        std::iter::once(parent).chain(state).collect()
    }

    /// The upstream has started, or not.
    pub(crate) fn end<T>(self, opened: &Result<T, Fault>) {
        self.0.end(opened.as_ref().err().map(|fault| ErrorType::Fault(fault.kind)));
    }
}
