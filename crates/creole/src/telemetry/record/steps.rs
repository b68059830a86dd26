//! The steps of a record.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::step_guard::StepGuard;
use super::{CallRecord, Detail};
use crate::telemetry::outcome::{CallOutcome, ErrorType};
use crate::telemetry::steps::{Decision, MAX_STEPS, Step, StepKind};
use crate::telemetry::trace::{SpanId, new_span_id};

/// A step, and what tells the decision of a layer.
pub(super) struct StepSlot {
    step: Step,
    started: Instant,
    /// How often the layer passed the call on.
    passes: u16,
    /// When it passed the call on that it waits for.
    passed_at: Option<Instant>,
    /// The last outcome that it got for that.
    passed: Option<CallOutcome>,
}

impl StepSlot {
    /// The layer got the call back that it passed on, or the call has ended.
    fn end_pass(&mut self) {
        if let Some(since) = self.passed_at.take() {
            self.step.passed += since.elapsed();
        }
    }
}

impl CallRecord {
    /// The steps so far, in the order of their start.
    pub fn steps(&self) -> Vec<Step> {
        let slots = self.progress.steps.lock();
        let now = Instant::now();
        let snapshot = |slot: &StepSlot| {
            let mut step = slot.step.clone();
            if !step.is_ended {
                step.duration = now.saturating_duration_since(slot.started);
            }
            step
        };
        slots.iter().map(snapshot).collect()
    }

    /// Starts a step. It is not kept if no reader wants steps, or if there are too many.
    pub fn start_step(self: &Arc<Self>, kind: StepKind, parent: Option<u16>) -> StepGuard {
        if self.detail < Detail::Steps {
            return StepGuard::new(Arc::clone(self), None, None);
        }
        let is_sampled = self.trace.as_ref().is_some_and(|trace| trace.is_sampled);
        let span_id = is_sampled.then(new_span_id);
        StepGuard::new(Arc::clone(self), self.push_step(kind, parent, span_id), span_id)
    }

    /// Adds a step that has ended. It started at this time, or when the call started.
    pub fn add_step(
        &self,
        kind: StepKind,
        parent: Option<u16>,
        started: Instant,
        error: Option<ErrorType>,
    ) {
        if self.detail < Detail::Steps {
            return;
        }
        let is_sampled = self.trace.as_ref().is_some_and(|trace| trace.is_sampled);
        let index = self.push_step(kind, parent, is_sampled.then(new_span_id));
        self.with_slot(index, |slot| {
            slot.started = started;
            slot.step.start = started.saturating_duration_since(self.started);
        });
        self.end_step(index, error);
    }

    /// Starts a step for an input request to the client.
    pub(crate) fn start_input_request(
        self: &Arc<Self>,
        kind: &'static str,
        parent: Option<u16>,
    ) -> StepGuard {
        let round = self.next_input_round();
        self.start_step(StepKind::InputRequest { kind, round }, parent)
    }

    /// The round of the next input request. Those that are open together are one round.
    fn next_input_round(&self) -> u16 {
        let slots = self.progress.steps.lock();
        let round = |slot: &StepSlot| match slot.step.kind {
            StepKind::InputRequest { round, .. } => Some(round + u16::from(slot.step.is_ended)),
            _ => None,
        };
        slots.iter().filter_map(round).max().unwrap_or(1)
    }

    fn push_step(
        &self,
        kind: StepKind,
        parent: Option<u16>,
        span_id: Option<SpanId>,
    ) -> Option<u16> {
        let mut slots = self.progress.steps.lock();
        if slots.len() >= MAX_STEPS {
            return None;
        }
        let index = u16::try_from(slots.len()).ok()?;
        let started = Instant::now();
        let start = started.saturating_duration_since(self.started);
        slots.push(StepSlot {
            step: Step {
                index,
                parent,
                start,
                duration: Duration::ZERO,
                passed: Duration::ZERO,
                is_ended: false,
                span_id,
                kind,
                error: None,
            },
            started,
            passes: 0,
            passed_at: None,
            passed: None,
        });
        Some(index)
    }

    /// Changes what is known of a step.
    pub fn change_step(&self, index: Option<u16>, change: impl FnOnce(&mut StepKind)) {
        self.with_slot(index, |slot| change(&mut slot.step.kind));
    }

    pub(super) fn end_step(&self, index: Option<u16>, error: Option<ErrorType>) {
        self.with_slot(index, |slot| {
            slot.end_pass();
            slot.step.duration = slot.started.elapsed();
            slot.step.is_ended = true;
            slot.step.error = error;
        });
    }

    /// Counts that the layer of a step passes the call on.
    pub(crate) fn count_pass(&self, layer: Option<u16>) {
        self.with_slot(layer, |slot| {
            slot.passes = slot.passes.saturating_add(1);
            slot.passed_at = Some(Instant::now());
        });
    }

    /// Sets the outcome that the layer of a step got for a call that it passed on.
    pub(crate) fn set_passed_outcome(&self, layer: Option<u16>, outcome: CallOutcome) {
        self.with_slot(layer, |slot| {
            slot.end_pass();
            slot.passed = Some(outcome);
        });
    }

    /// Records that the layer of a step changed the call or its outcome.
    pub(crate) fn set_changed(&self, layer: Option<u16>) {
        self.change_step(layer, |kind| {
            if let StepKind::Layer { decision, .. } = kind {
                *decision = Decision::Changed;
            }
        });
    }

    /// Decides what the layer of a step did with the call, now that it returned this outcome.
    pub(crate) fn decide_layer(&self, layer: Option<u16>, outcome: CallOutcome) {
        self.with_slot(layer, |slot| {
            let (passes, passed) = (slot.passes, slot.passed);
            let is_own_fault = matches!(outcome, CallOutcome::Fault(..))
                && !matches!(passed, Some(CallOutcome::Fault(..)));
            if let StepKind::Layer { decision, attempts, .. } = &mut slot.step.kind {
                *attempts = passes;
                *decision = match passes {
                    _ if is_own_fault => Decision::Refused,
                    0 => Decision::Answered,
                    1 => *decision,
                    _ => Decision::Retried,
                };
            }
        });
    }

    fn with_slot(&self, index: Option<u16>, change: impl FnOnce(&mut StepSlot)) {
        let Some(index) = index else { return };
        if let Some(slot) = self.progress.steps.lock().get_mut(usize::from(index)) {
            change(slot);
        }
    }
}
