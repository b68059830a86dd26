//! Reads the records of calls, and queues those that become spans.

use std::sync::Arc;

use creole::internal::telemetry::{CallRecord, CallStart, Detail, RecordReader};

use super::queue::QueueSender;
use super::settings::SpanSettings;

/// Queues sampled calls, and calls that failed or were slow.
pub(super) struct SpanReader {
    pub(super) queue: QueueSender<Arc<CallRecord>>,
    pub(super) settings: SpanSettings,
}

impl SpanReader {
    /// Whether a call that was not sampled has a span all the same.
    fn keeps(&self, record: &CallRecord) -> bool {
        let Some(end) = record.end() else { return false };
        let is_slow = self.settings.slow.is_some_and(|slow| end.duration >= slow);
        is_slow || self.settings.keeps_errors && end.outcome.error().is_some()
    }
}

impl RecordReader for SpanReader {
    fn wants(&self, start: &CallStart<'_>) -> Detail {
        match start.trace {
            Some(trace) if trace.is_sampled && self.settings.has_payloads => Detail::Frames,
            Some(trace) if trace.is_sampled => Detail::Steps,
            _ => Detail::None,
        }
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        let is_sampled = record.trace.as_ref().is_some_and(|trace| trace.is_sampled);
        if is_sampled {
            self.queue.push(Arc::clone(record), 1 + record.step_count());
        } else if self.keeps(record) {
            self.queue.push(Arc::clone(record), 1);
        }
    }

    fn reads_frames(&self) -> bool {
        self.settings.has_payloads
    }
}
