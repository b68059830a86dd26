//! Runs the calls of which a reader wants a record: from their start to their outcome, or until they are dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll, ready};

use creole_proto::operation::Outcome;
use pin_project_lite::pin_project;

use super::ServiceCore;
use super::server_telemetry::ServerTelemetry;
use crate::call::{Call, Canceller};
use crate::chain::BoxFuture;
use crate::telemetry::outcome::CallOutcome;
use crate::telemetry::record::CallRecord;
use crate::telemetry::trace::{CurrentSpan, TraceContext};

impl ServiceCore {
    /// Runs a call with a record, and reports its start and its end.
    #[cold]
    pub(super) fn run_recorded(
        self: Arc<Self>,
        call: Call,
        record: Arc<CallRecord>,
        canceller: Canceller,
    ) -> BoxFuture<'static, Outcome> {
        record.report_start();
        let (server, span) = (Arc::clone(&self.telemetry), canceller.span());
        let recorded = RecordedCall { server, record, canceller, is_ended: false };
        Box::pin(RecordedFuture { running: self.run_call(call), call: recorded, span })
    }
}

/// A call with a record. Dropping it ends the call as cancelled.
struct RecordedCall {
    server: Arc<ServerTelemetry>,
    record: Arc<CallRecord>,
    canceller: Canceller,
    is_ended: bool,
}

impl RecordedCall {
    fn end(&mut self, outcome: CallOutcome) {
        self.is_ended = true;
        self.record.finish(outcome, self.canceller.denied_by().cloned());
    }
}

pin_project! {
    // Runs a call with a record. It is not an async function: the future of one would contain that of the call several
    // times.
    struct RecordedFuture<F> {
        // It is dropped before the call ends, and with it the steps that still run.
        #[pin]
        running: F,
        call: RecordedCall,
        // The span of the call, if the call is sampled.
        span: Option<TraceContext>,
    }
}

impl<F: Future<Output = Outcome>> Future for RecordedFuture<F> {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Outcome> {
        let parts = self.project();
        let _current = parts.span.map(CurrentSpan::enter);
        let outcome = ready!(parts.running.poll(context));
        let call = parts.call;
        let rules = call.record.rules;
        let seen = call.server.outcome(&outcome, call.record.method, rules);
        call.end(seen);
        Poll::Ready(outcome)
    }
}

impl Drop for RecordedCall {
    fn drop(&mut self) {
        if !self.is_ended {
            let outcome = self.server.abort_outcome(&self.canceller, self.record.method);
            self.end(outcome);
        }
    }
}
