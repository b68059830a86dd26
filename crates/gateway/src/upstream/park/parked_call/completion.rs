//! The end of a parked call: its outcome is delivered, another replica takes it over, or it is abandoned.

use std::time::Duration;

use creole::internal::client::CallStep;
use creole::proto::client::InputRequestError;
use creole::proto::model::InputRequest;
use creole::proto::operation::Outcome;
use creole::proto::wire::Raw;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::{CallState, ParkedCall};
use crate::upstream::park::{CallerMessage, ResumeCommand, state_consumed};

/// How long the outcome is kept for a caller that lost the connection before it arrived.
const OUTCOME_RETENTION: Duration = Duration::from_secs(60);

/// How long an upstream may take to end a call whose input requests were cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

impl ParkedCall {
    /// Sends the outcome to all waiting callers, and keeps it for callers that return soon.
    pub(super) async fn deliver_outcome(
        mut self,
        outcome: Outcome,
        mut resumes: mpsc::Receiver<ResumeCommand>,
    ) {
        self.open_requests.clear();
        self.send_to_callers(CallerMessage::Done(outcome.clone())).await;
        let was_fetched = !self.waiting_callers.is_empty();
        if (was_fetched && self.round == 0) || !self.slot.keep_outcome() {
            return;
        }
        let Self {
            last_responses: taken,
            round: last,
            call: state,
            lease,
            slot,
            missed_progress: mut missed,
            ..
        } = self;
        drop((state, lease));
        let until =
            Instant::now() + if was_fetched { OUTCOME_RETENTION } else { slot.input_timeout() };
        while let Ok(Some(resume)) = tokio::time::timeout_at(until, resumes.recv()).await {
            let is_known = resume.responses == taken || (!was_fetched && resume.round == last);
            let told = if is_known { outcome.clone() } else { state_consumed().into() };
            if let Some(missed) = missed.take_if(|_| is_known) {
                _ = resume.caller.send(CallerMessage::Event(missed)).await;
            }
            _ = resume.caller.send(CallerMessage::Done(told)).await;
        }
    }

    /// Says that another replica took over the call although this process lives.
    pub(super) fn warn_of_takeover(&self) {
        let upstream = self.lease.connection.name();
        tracing::warn!(
            upstream,
            "another replica took over a parked call, because this replica's heartbeat was late"
        );
    }

    /// Detaches from a call that another replica continues. That replica sends the input responses and owns the
    /// upstream's session.
    pub(super) fn detach(mut self) {
        self.slot.forget_checkpoint();
        if let CallState::Running(call) = self.call {
            call.hand_over();
        }
    }

    /// Ends a call that no caller waits for: declines its input requests, and cancels it if that does not end it.
    pub(super) async fn abandon(mut self) {
        for open in std::mem::take(&mut self.open_requests).into_values() {
            let response = match open.request {
                InputRequest::Form { .. } | InputRequest::Url { .. } => {
                    Ok(Raw::from_value(&CancelledResponse::NEW))
                }
                InputRequest::Roots => {
                    self.lease.active_call.active_calls().set_missed_roots(true);
                    Err(InputRequestError::declined("the client sent no input response in time"))
                }
                InputRequest::Sample { .. } => Err(InputRequestError::declined(
                    "the client sent \
                    no input response in time",
                )),
            };
            open.reply.respond(response);
        }
        let has_begun = matches!(self.call, CallState::Running(_));
        if self.input_deadline.is_some() && has_begun {
            let last = async { while !matches!(self.call.next().await, CallStep::Done(_)) {} };
            // The result does not matter: dropping the call cancels it.
            _ = timeout(CANCEL_TIMEOUT, last).await;
        }
    }
}

/// The input response of a user who closed the form.
#[derive(serde::Serialize)]
struct CancelledResponse {
    action: &'static str,
}

impl CancelledResponse {
    const NEW: Self = Self { action: "cancel" };
}
