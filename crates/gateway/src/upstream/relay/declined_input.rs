//! Input requests that were declined because the caller lacks the capability.

use creole::Context;
use creole::internal::client::ServerInputRequest;
use creole::internal::input::missing_capability;
use creole::proto::client::InputRequestError;
use creole::proto::fault::FaultKind;
use creole::proto::model::InputRequest;
use creole::proto::operation::{Outcome, Payload};
use creole::proto::revision::InputRequestStyle;

/// The maximum number of declined input requests of one call that are remembered.
const MAX_REMEMBERED: usize = 8;

/// The input requests of one call that were declined because its caller does not support them.
#[derive(Debug, Default)]
pub(crate) struct DeclinedInput(Vec<InputRequest>);

impl DeclinedInput {
    /// Records a declined input request.
    pub(crate) fn record(&mut self, input_request: InputRequest) {
        if self.0.len() < MAX_REMEMBERED {
            self.0.push(input_request);
        }
    }

    /// Returns the input request, or declines and records it if the caller does not support it.
    pub(crate) fn decline_unsupported(
        &mut self,
        input_request: ServerInputRequest,
        context: &Context,
    ) -> Option<ServerInputRequest> {
        if input_request.request.is_allowed_by(&context.caller().capabilities) {
            return Some(input_request);
        }
        let needs = input_request.request.required_capability_text();
        input_request.responder.respond(Err(InputRequestError::unsupported(format!(
            "the client does not support {needs}"
        ))));
        self.record(input_request.request);
        None
    }

    /// The outcome for the caller, given the declined input requests.
    ///
    /// An upstream that succeeds without the input has done its work. If it failed, a caller that declares its
    /// capabilities with each request gets an error that names the missing capability (2026-07-28 basic, capabilities).
    /// A caller of the handshake era gets the upstream's own error.
    pub(crate) fn explain(self, outcome: Outcome, context: &Context) -> Outcome {
        let is_notified = context.caller().rules.input_request_style
            == InputRequestStyle::MultiRoundTrip
            && !context.is_task();
        if self.0.is_empty() || !is_notified || !is_failure(&outcome) {
            return outcome;
        }
        missing_capability(&self.0.iter().collect::<Vec<_>>()).into()
    }
}

/// Whether the upstream reports that the call failed.
fn is_failure(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Fail(fault) => !matches!(
            fault.kind,
            FaultKind::BackendUnavailable | FaultKind::Timeout | FaultKind::Busy
        ),
        Outcome::Complete(Payload::Relayed(relayed)) => relayed.is_error(),
        _ => false,
    }
}
