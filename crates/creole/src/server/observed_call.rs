//! Follows calls for the telemetry: from their start to their outcome, or until they are dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};
use std::time::Instant;

use creole_proto::operation::Outcome;
use creole_proto::revision::Rules;
use creole_proto::server::Call as Started;
use pin_project_lite::pin_project;

use super::ServiceCore;
use super::late_call::LateCall;
use super::server_telemetry::ServerTelemetry;
use crate::call::{Canceller, ClientChannel, Origin};
use crate::chain::BoxFuture;
use crate::telemetry::facts::RequestFacts;
use crate::telemetry::outcome::{CallEnd, CallOutcome};
use crate::telemetry::trace::{CurrentSpan, TraceContext};

impl ServiceCore {
    /// Starts a call of which a reader may want a record.
    #[cold]
    pub(super) fn start_observed(
        self: Arc<Self>,
        started: Started,
        channel: Arc<dyn ClientChannel>,
        origin: Origin,
        facts: RequestFacts,
    ) -> (BoxFuture<'static, Outcome>, Canceller) {
        let (server, operation) = (Arc::clone(&self.telemetry), &started.operation);
        let record = server.start_record(operation, &started.caller, &origin.principal, &facts);
        let (headers, transport) = (facts.trace_headers.clone(), facts.transport.into());
        let telemetry = server.call_telemetry(record, headers, transport);
        let method = facts.method.unwrap_or_else(|| operation.method());
        let late = server.keep_late(operation, &telemetry, facts);
        let (call, canceller) = self.make_call(started, channel, origin, Some(telemetry));
        let span = canceller.span();
        let observed = ObservedCall::start(server, method, &canceller, late);
        let running = self.run_call(call);
        (Box::pin(ObservedFuture { running, call: observed, span }), canceller)
    }
}

/// A call that the telemetry follows. Dropping it ends the call as cancelled.
struct ObservedCall {
    server: Arc<ServerTelemetry>,
    method: &'static str,
    started: Instant,
    canceller: Canceller,
    /// What a reader may want at the end of the call.
    late: Option<LateCall>,
    is_ended: bool,
}

impl ObservedCall {
    /// Follows a call that starts now.
    fn start(
        server: Arc<ServerTelemetry>,
        method: &'static str,
        call: &Canceller,
        late: Option<LateCall>,
    ) -> Self {
        if let Some(record) = call.record() {
            record.report_start();
        }
        let (started, canceller) = (Instant::now(), call.clone());
        Self { server, method, started, canceller, late, is_ended: false }
    }

    fn is_tool(&self) -> bool {
        self.method == "tools/call"
    }

    fn rules(&self) -> &'static Rules {
        self.canceller.caller().rules
    }

    fn end(&mut self, outcome: CallOutcome) {
        self.is_ended = true;
        if let Some(record) = self.canceller.record() {
            record.finish(outcome, self.canceller.denied_by().cloned());
        }
        if let Some(late) = self.late.take() {
            let (duration, denied_by) =
                (self.started.elapsed(), self.canceller.denied_by().cloned());
            let end = CallEnd { duration, outcome, denied_by };
            self.server.report_late(self.method, &late, &self.canceller, end);
        }
    }
}

pin_project! {
    // Runs a call that the telemetry follows. It is not an async function: the future of one would contain that of the
    // call several times.
    struct ObservedFuture<F> {
        // It is dropped before the call ends, and with it the steps that still run.
        #[pin]
        running: F,
        call: ObservedCall,
        // The span of the call, if the call is sampled.
        span: Option<TraceContext>,
    }
}

impl<F: Future<Output = Outcome>> Future for ObservedFuture<F> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Outcome> {
        let parts = self.project();
        let _current = parts.span.map(CurrentSpan::enter);
        let outcome = ready!(parts.running.poll(context));
        let call = parts.call;
        let seen = call.server.outcome(&outcome, call.is_tool(), call.rules());
        call.end(seen);
        Poll::Ready(outcome)
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if !self.is_ended {
            let outcome = match self.canceller.abort_fault() {
                Some(kind) => self.server.fault_outcome(kind, self.is_tool(), self.rules()),
                None => CallOutcome::Cancelled,
            };
            self.end(outcome);
        }
    }
}
