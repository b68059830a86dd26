//! A step that has started.

use std::fmt;
use std::sync::Arc;

use super::{CallRecord, Detail};
use crate::telemetry::frames::FrameDirection;
use crate::telemetry::outcome::ErrorType;
use crate::telemetry::steps::StepKind;

/// A step that has started. It ends when it is dropped.
#[must_use = "the step ends when the guard is dropped"]
pub struct StepGuard {
    record: Arc<CallRecord>,
    /// `None` beyond the maximum number of steps.
    index: Option<u16>,
    span_id: Option<[u8; 8]>,
    error: Option<ErrorType>,
}

impl StepGuard {
    pub(super) fn new(
        record: Arc<CallRecord>,
        index: Option<u16>,
        span_id: Option<[u8; 8]>,
    ) -> Self {
        Self { record, index, span_id, error: None }
    }

    /// The record that the step belongs to.
    pub fn record(&self) -> &Arc<CallRecord> {
        &self.record
    }

    /// The number of the step. `None` if the record has too many steps to keep this one.
    pub fn index(&self) -> Option<u16> {
        self.index
    }

    /// The span of the step, if the call is sampled.
    pub fn span_id(&self) -> Option<[u8; 8]> {
        self.span_id
    }

    /// Where the messages of the step go, if a reader wants them.
    pub fn frame_tap(&self) -> Option<FrameTap> {
        let keeps_frames = self.record.detail() >= Detail::Frames;
        keeps_frames.then(|| FrameTap { record: Arc::clone(&self.record), step: self.index })
    }

    /// Ends the step with this error.
    pub fn end(mut self, error: Option<ErrorType>) {
        self.error = error;
    }

    /// Sets the error of a step that is dropped without [`end`](Self::end), as when its call is cancelled.
    pub fn set_error(&mut self, error: Option<ErrorType>) {
        self.error = error;
    }

    /// Changes what is known of the step.
    pub fn change(&self, change: impl FnOnce(&mut StepKind)) {
        self.record.change_step(self.index, change);
    }
}

/// Where the messages of a step go.
#[derive(Clone)]
pub struct FrameTap {
    record: Arc<CallRecord>,
    step: Option<u16>,
}

impl FrameTap {
    /// Keeps a message.
    pub(crate) fn add(&self, direction: FrameDirection, message: &[u8]) {
        self.record.add_frame(direction, self.step, message);
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        self.record.end_step(self.index, self.error);
    }
}

impl fmt::Debug for StepGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StepGuard").field("index", &self.index).finish_non_exhaustive()
    }
}
