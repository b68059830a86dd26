//! Records what the layers of a chain do with a call, without their help.

use std::sync::Arc;

use creole_proto::operation::Outcome;

use crate::call::{BoxFuture, Call};
use crate::chain::{Middleware, Next, handle_counted};
use crate::telemetry::outcome::CallOutcome;
use crate::telemetry::record::CallRecord;
use crate::telemetry::steps::{Decision, StepKind};

impl<'a> Next<'a> {
    /// Passes a call on whose steps a reader wants.
    pub(super) fn call_recorded(self, call: Call) -> BoxFuture<'a, Outcome> {
        let Some((record, step)) = call.context.recorded_step() else {
            return self.call_unrecorded(call);
        };
        let record = Arc::clone(record);
        // The step of the layer that passes the call on. At the start of a chain there is none.
        let passing = step.filter(|_| self.is_rest);
        record.count_pass(passing);
        Box::pin(async move {
            let outcome = match self.layers.split_first() {
                Some((layer, rest)) => {
                    let next = Self { layers: rest, is_rest: true, ..self };
                    handle_recorded(&record, &**layer, call, next).await
                }
                None => self.endpoint.call(call).await,
            };
            record.set_passed_outcome(passing, outcome_of(&outcome));
            outcome
        })
    }
}

/// Lets a layer handle the call, as a step of its record.
async fn handle_recorded(
    record: &Arc<CallRecord>,
    layer: &dyn Middleware,
    mut call: Call,
    next: Next<'_>,
) -> Outcome {
    let kind = StepKind::Layer {
        kind: layer.kind(),
        name: layer.name().cloned(),
        decision: Decision::Passed,
        attempts: 0,
    };
    let (_, parent) = call.context.recorded_step().unzip();
    let step = record.start_step(kind, parent.flatten());
    call.context = call.context.in_step(step.index());
    let outcome = handle_counted(layer, call, next).await;
    let seen = outcome_of(&outcome);
    record.decide_layer(step.index(), seen);
    step.end(seen.error());
    outcome
}

fn outcome_of(outcome: &Outcome) -> CallOutcome {
    match outcome {
        Outcome::Fail(fault) => CallOutcome::Fault(fault.kind, fault.foreign_code),
        other => CallOutcome::of(other, |_| None),
    }
}
