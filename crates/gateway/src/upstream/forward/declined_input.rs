//! What a server asked although the caller cannot answer it.

use creole::call::Context;
use creole::client::ServerInputRequest;
use creole::input::missing_capability;
use creole::proto::client::InputRequestError;
use creole::proto::fault::FaultKind;
use creole::proto::model::InputRequest;
use creole::proto::operation::{Outcome, Payload};
use creole::proto::revision::InputRequestStyle;

/// The most questions of one call that are remembered.
const MAX_REMEMBERED: usize = 8;

/// Questions of one call that were refused, because its caller cannot be asked them.
#[derive(Debug, Default)]
pub(crate) struct DeclinedInput(Vec<InputRequest>);

impl DeclinedInput {
    /// Notes a question that was refused.
    pub(crate) fn record(&mut self, question: InputRequest) {
        if self.0.len() < MAX_REMEMBERED {
            self.0.push(question);
        }
    }

    /// The question, unless the caller cannot be asked it: then it is refused and noted.
    pub(crate) fn decline_unsupported(
        &mut self,
        asked: ServerInputRequest,
        context: &Context,
    ) -> Option<ServerInputRequest> {
        if asked.request.is_allowed_by(&context.caller().capabilities) {
            return Some(asked);
        }
        let needs = asked.request.required_capability_text();
        asked
            .responder
            .respond(Err(InputRequestError::unsupported(format!("the client has no {needs}"))));
        self.record(asked.request);
        None
    }

    /// What the caller is told of a call that came to this.
    ///
    /// A server that goes on without an answer has done what was asked of it. Where it failed, a caller that says
    /// with each request what it can be asked is told what it lacks (2026-07-28 basic, capabilities); one that
    /// shook hands is told what the server says.
    pub(crate) fn explain(self, outcome: Outcome, context: &Context) -> Outcome {
        let is_told = context.caller().rules.input_request_style
            == InputRequestStyle::MultiRoundTrip
            && !context.is_task();
        if self.0.is_empty() || !is_told || !is_failure(&outcome) {
            return outcome;
        }
        missing_capability(&self.0.iter().collect::<Vec<_>>()).into()
    }
}

/// Whether the server itself says that the call failed.
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
