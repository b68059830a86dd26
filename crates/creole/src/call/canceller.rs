//! Cancels calls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use creole_proto::fault::FaultKind;
use creole_proto::operation::Caller;

use super::{CANCELLED, CallShared, MAX_CANCEL_REASON};
use crate::principal::Principal;
use crate::telemetry::metrics::{OperationSeries, ServerMetrics};
use crate::telemetry::record::CallRecord;
use crate::telemetry::trace::TraceContext;

/// Cancels a call.
#[derive(Clone)]
pub struct Canceller {
    pub(super) shared: Arc<CallShared>,
}

impl Canceller {
    /// Cancels the call with the client's reason.
    pub fn cancel_with_reason(&self, reason: &str) {
        _ = self.shared.cancel_reason().set(reason.chars().take(MAX_CANCEL_REASON).collect());
        self.cancel();
    }

    /// Whether the call is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.shared.is_cancelled()
    }

    /// Sets the fault that the client gets for a call that is not run to its end.
    pub(crate) fn set_abort_fault(&self, kind: FaultKind) {
        self.shared.stopped.fetch_or((kind as u8 + 1) << 1, Ordering::Relaxed);
    }

    /// The fault that the client gets for a call that was not run to its end. `None` if it gets no response.
    pub(crate) fn abort_fault(&self) -> Option<FaultKind> {
        let number = self.shared.stopped.load(Ordering::Relaxed) >> 1;
        FaultKind::ALL.get(usize::from(number.checked_sub(1)?)).map(|(kind, _)| *kind)
    }

    /// The record of the call, if a reader wants it.
    pub(crate) fn record(&self) -> Option<&Arc<CallRecord>> {
        self.shared.telemetry.as_ref()?.record.as_ref()
    }

    /// The metrics of the server, if the call is counted.
    pub(crate) fn server_metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.shared.telemetry.as_ref()?.metrics.as_ref()
    }

    /// Takes what measures the calls of its tool or prompt, if that is listed.
    pub(crate) fn take_item_series(&self) -> Option<Arc<OperationSeries>> {
        self.shared.item_series.lock().take()
    }

    /// The span of the call, if the call is sampled.
    pub(crate) fn span(&self) -> Option<TraceContext> {
        self.record()?.trace.as_ref()?.context()
    }

    /// The caller.
    pub(crate) fn caller(&self) -> &Caller {
        &self.shared.caller
    }

    /// The principal of the call.
    pub(crate) fn principal(&self) -> &Principal {
        &self.shared.principal
    }

    /// The rule of a policy that refused the call.
    pub(crate) fn denied_by(&self) -> Option<&Arc<str>> {
        self.shared.denied_by.get()
    }

    /// Cancels the call.
    pub fn cancel(&self) {
        self.shared.stopped.fetch_or(CANCELLED, Ordering::Release);
        self.shared.cancelled.notify_waiters();
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Canceller").finish_non_exhaustive()
    }
}
