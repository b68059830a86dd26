//! Reads the records of calls, and queues those that become spans.

use std::sync::Arc;
use std::time::Duration;

use creole::internal::telemetry::{CallEnd, CallRecord, CallStart, Detail, RecordReader};

use super::queue::QueueSender;
use super::settings::SpanSettings;
use super::spans::{FinishedCall, is_failure};

/// Queues sampled calls, and calls that failed or were slow.
pub(super) struct SpanReader {
    pub(super) queue: QueueSender<FinishedCall>,
    pub(super) settings: SpanSettings,
}

impl SpanReader {
    /// Whether a call that was not sampled has a span all the same.
    fn keeps(&self, end: &CallEnd) -> bool {
        let is_slow = self.settings.slow.is_some_and(|slow| end.duration >= slow);
        is_slow || self.settings.keeps_errors && is_failure(end.outcome)
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
        let call = FinishedCall::new(record);
        let count = call.span_count();
        self.queue.push(call, count);
    }

    fn wants_late(&self, end: &CallEnd) -> bool {
        self.keeps(end)
    }

    fn reads_unsampled(&self) -> bool {
        false
    }

    fn reads_notifications(&self) -> bool {
        true
    }

    fn late_after(&self) -> Option<Duration> {
        self.settings.slow.or(self.settings.keeps_errors.then_some(Duration::MAX))
    }

    fn reads_frames(&self) -> bool {
        self.settings.has_payloads
    }
}
