//! Starts and runs the calls of a server.

use std::sync::Arc;
use std::time::Instant;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::TaskPreference;
use creole_proto::operation::{Operation, Outcome};
use creole_proto::server::Call as Started;

use super::ServiceCore;
use crate::call::catch_panic::CatchPanic;
use crate::call::{Call, CallTelemetry, Canceller, ClientChannel, Context, Origin, Round};
use crate::chain::{BoxFuture, Next};
use crate::input;
use crate::registry::RunMode;
use crate::telemetry::request_log;

impl ServiceCore {
    /// Starts a call, of which the telemetry follows this.
    #[inline]
    pub(crate) fn start_call(
        self: Arc<Self>,
        started: Started,
        channel: Arc<dyn ClientChannel>,
        origin: Origin,
        telemetry: Option<Arc<CallTelemetry>>,
    ) -> (BoxFuture<'static, Outcome>, Canceller) {
        let record = telemetry.as_ref().and_then(|telemetry| telemetry.record.clone());
        let (call, canceller) = self.make_call(started, channel, origin, telemetry);
        if !self.chain.is_empty() || call.context.scopes().is_some() {
            // The call may end before its item is found.
            call.context.set_item_series(|| self.registry.item_series(&call.operation));
        }
        let future: BoxFuture<'static, Outcome> = match record {
            None => Box::pin(self.run_call(call)),
            Some(record) => self.run_recorded(call, record, canceller.clone()),
        };
        (future, canceller)
    }

    /// The call of a request, which runs nothing yet.
    #[inline]
    pub(super) fn make_call(
        &self,
        started: Started,
        channel: Arc<dyn ClientChannel>,
        origin: Origin,
        telemetry: Option<Arc<CallTelemetry>>,
    ) -> (Call, Canceller) {
        let Started { key, operation, caller, .. } = started;
        let context = Context::new(key, caller, origin, channel, self.debug, telemetry);
        let canceller = context.canceller();
        (Call { operation, context }, canceller)
    }

    /// Runs one call in place or as a task.
    pub(super) async fn run_call(self: Arc<Self>, call: Call) -> Outcome {
        let mode = match &call.operation {
            Operation::CallTool { name, .. } => self.registry.run_mode(name, &call.context),
            _ => Ok(RunMode::InPlace),
        };
        if !matches!(mode, Ok(RunMode::InPlace)) {
            // The request ends without a call of its item.
            call.context.set_item_series(|| self.registry.item_series(&call.operation));
        }
        match mode {
            Err(fault) => fault.into(),
            // The rare paths are boxed, so that the future of every call is small.
            Ok(RunMode::Task) => Box::pin(Arc::clone(&self).make_task(call)).await,
            Ok(RunMode::InPlace) => {
                let may_be_task = call.context.caller().task_preference != TaskPreference::Never;
                let kept = may_be_task.then(|| Box::new(call.clone()));
                match (self.run_in_place(call).await, kept) {
                    (Outcome::Detach(state), Some(mut call)) => {
                        if state.is_some() {
                            let round = Round { state, ..Round::default() };
                            call.context = call.context.with_round(round);
                        }
                        Box::pin(Arc::clone(&self).make_task(*call)).await
                    }
                    (done, _) => done,
                }
            }
        }
    }

    /// Creates a task that runs the call through the whole chain.
    async fn make_task(self: Arc<Self>, call: Call) -> Outcome {
        let shared = Arc::clone(&self);
        let run = move |call: Call| -> BoxFuture<'static, Outcome> {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let tool = request_log::observed_tool(&call.operation);
                let next = Next::new(&shared.chain, &shared.registry);
                run_guarded(tool, next.start(call)).await
            })
        };
        self.registry.tasks().create(call, Arc::new(run)).await
    }

    /// Runs one call in place: with its input rounds, caught panics and telemetry.
    #[inline]
    fn run_in_place(&self, call: Call) -> impl Future<Output = Outcome> {
        let tool = request_log::observed_tool(&call.operation);
        let next = Next::new(&self.chain, &self.registry);
        run_guarded(
            tool,
            input::run_rounds(call, next, &self.sealer, self.profile.limits.input_timeout),
        )
    }
}

/// Runs a call, catches its panics and reports its tool to the telemetry.
async fn run_guarded(
    tool: Option<String>,
    running: impl Future<Output = Outcome> + Unpin,
) -> Outcome {
    let observed = tool.map(|tool| (tool, Instant::now()));
    let outcome = match CatchPanic(running).await {
        Ok(outcome) => outcome,
        // The text of a panic may contain paths and values, so it is not sent to the client.
        Err(_) => Fault::new(FaultKind::Internal, "the server panicked").into(),
    };
    if let Some((tool, started)) = observed {
        request_log::tool_ran(&tool, started.elapsed(), &outcome);
    }
    outcome
}
