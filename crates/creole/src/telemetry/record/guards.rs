//! What ends a record when it is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::CallRecord;
use crate::telemetry::outcome::CallOutcome;

/// The record of work that nobody waits for. Dropping it ends the work as cancelled.
pub struct RecordGuard(Arc<CallRecord>);

impl RecordGuard {
    /// The record of work that starts now.
    pub(crate) fn start(record: Arc<CallRecord>) -> Self {
        record.report_start();
        Self(record)
    }

    /// The record.
    pub fn record(&self) -> &Arc<CallRecord> {
        &self.0
    }

    /// Ends the work.
    pub fn finish(self, outcome: CallOutcome) {
        self.0.finish(outcome, None);
    }
}

impl Drop for RecordGuard {
    fn drop(&mut self) {
        // Only the first end counts.
        self.0.finish(CallOutcome::Cancelled, None);
    }
}

/// Lets the report of a call's end wait. The report follows when it is dropped.
pub(crate) struct ReportHold(pub(super) Arc<CallRecord>);

impl ReportHold {
    /// The record.
    pub(crate) fn record(&self) -> &Arc<CallRecord> {
        &self.0
    }
}

impl Drop for ReportHold {
    fn drop(&mut self) {
        self.0.progress.is_held.store(false, Ordering::Release);
        self.0.report_end();
    }
}
