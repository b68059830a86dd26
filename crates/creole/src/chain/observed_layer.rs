//! Counts and records what the layers of a chain do with a call, without their help.

use std::sync::Arc;

use creole_proto::operation::Outcome;

use crate::call::{BoxFuture, Call};
use crate::chain::{Middleware, Next};
use crate::telemetry::outcome::CallOutcome;
use crate::telemetry::steps::{Decision, StepKind};

impl<'a> Next<'a> {
    /// Passes a call on that the telemetry follows.
    #[cold]
    pub(super) fn call_observed(self, call: Call) -> BoxFuture<'a, Outcome> {
        call.context.count_pass();
        let Some((record, layer)) = call.context.recorded_step() else {
            return self.start_observed(call);
        };
        let record = Arc::clone(record);
        record.count_pass(layer);
        Box::pin(async move {
            let outcome = self.start_observed(call).await;
            record.set_passed_outcome(layer, outcome_of(&outcome));
            outcome
        })
    }

    /// Gives a call that the telemetry follows to the first layer.
    #[cold]
    pub(super) fn start_observed(self, call: Call) -> BoxFuture<'a, Outcome> {
        match self.layers.split_first() {
            Some((layer, rest)) => {
                let next = Self { layers: rest, ..self };
                match layer.is_internal() {
                    true => layer.handle(call, next),
                    false => Box::pin(handle_observed(&**layer, call, next)),
                }
            }
            None => self.endpoint.call(call),
        }
    }
}

/// Lets a layer handle the call, counts what it did with it, and makes it a step of the record.
async fn handle_observed(layer: &dyn Middleware, mut call: Call, next: Next<'_>) -> Outcome {
    let recorded = call.context.recorded_step();
    let recorded = recorded.map(|(record, parent)| {
        let (kind, decision) = (layer.kind(), Decision::Passed);
        let kind = StepKind::Layer { kind, decision, attempts: 0 };
        (Arc::clone(record), record.start_step(kind, parent))
    });
    let step = recorded.as_ref().and_then(|(_, step)| step.index());
    let handling = call.context.enter_layer(step);
    let server = call.context.server_metrics().cloned();
    let outcome = layer.handle(call, next).await;
    if let (Some(server), Some(decision)) = (server, handling.decision(&outcome)) {
        server.layer_decision(handling.upstream(), layer.kind(), decision);
    }
    if let Some((record, step)) = recorded {
        let seen = outcome_of(&outcome);
        record.decide_layer(step.index(), seen);
        step.end(seen.error());
    }
    outcome
}

fn outcome_of(outcome: &Outcome) -> CallOutcome {
    match outcome {
        Outcome::Fail(fault) => CallOutcome::Fault(fault.kind, fault.foreign_code),
        other => CallOutcome::of(other, |_| None),
    }
}
