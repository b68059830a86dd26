//! Takes over a parked call of a replica that has stopped, if the upstream's stream is resumable. The input responses
//! are posted in the session of that replica, and the stream is resumed after its last event. The call is not repeated.

use std::sync::Arc;
use std::time::Instant;

use creole::Call;
use creole::client::Address;
use creole::internal::client::ResumedServer;
use creole::internal::telemetry::ParkedEnd;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::TaskPreference;
use creole::proto::operation::Outcome;
use creole::proto::revision::Revision;

use crate::upstream::connections::active_calls::ActiveCalls;
use crate::upstream::connections::capabilities::caller_capabilities;
use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::forward::{CallForwarder, finish_outcome, upstream_request};
use crate::upstream::observed_request::ObservedRequest;
use crate::upstream::park::request_state::ParkedState;
use crate::upstream::park::{CheckpointClaim, PreparedCall, replica_fault};

impl CallForwarder {
    /// The outcome of a call whose replica has stopped. `None` if the call cannot be continued.
    pub(super) async fn take_over(
        &self,
        parked: &ParkedState,
        call: &Call,
        may_repeat: bool,
    ) -> Option<Outcome> {
        let Address::Http(target) = &self.settings.address else { return None };
        let context = &call.context;
        let claimed = self.parked_calls.claim_checkpoint(parked, context.principal().binding());
        let trace = match claimed.await {
            Ok(CheckpointClaim::Claimed(trace)) => trace,
            Ok(CheckpointClaim::Taken) => {
                let detail = "another replica continues the call; try again";
                return Some(Fault::new(FaultKind::Busy, detail).into());
            }
            Ok(CheckpointClaim::Missing) => return None,
            Err(error) => return Some(replica_fault(&error.into()).into()),
        };
        let rules = Revision::from_name(&trace.version)?.rules();
        let resumed = ResumedServer::new(
            target.clone(),
            rules,
            trace.resume_point(),
            trace.request_messages(),
        );
        let observed = ObservedRequest::for_call(&self.settings, context, &call.operation, rules);
        if let Some(place) = observed.place() {
            place.add_parked(Instant::now(), ParkedEnd::TakenOver);
        }
        let capabilities = caller_capabilities(context);
        let callers = ActiveCalls::default();
        // Added first: the upstream may send input requests immediately.
        let joined = callers.add_call(context.session_name().cloned());
        let offer = callers.client_offer(&capabilities);
        let opened =
            self.sessions.connector.resume_session(resumed, rules, trace.number, &offer).await;
        let connection = opened.ok()?;
        let lease = UpstreamLease::unpooled(connection.clone(), joined);
        let operation = call.operation.clone();
        let request = upstream_request::upstream_request(
            operation,
            context,
            observed.trace(&self.settings, context),
            &capabilities,
            TaskPreference::Never,
            rules,
        );
        let answered = trace.caller_responses(context);
        let beginning = PreparedCall {
            request,
            mirrored_headers: Arc::default(),
            known_responses: answered,
            may_repeat,
            tap: observed.frame_tap(),
        };
        let outcome = self.parked_calls.run(beginning, lease, context).await;
        observed.end(&outcome);
        Some(finish_outcome(outcome, call, &connection))
    }
}
