//! Resumes a parked call that another replica holds.
//!
//! The replica that received the request forwards the principal and the input responses, and relays the replies of the
//! other one: events, the next input requests, or the outcome. The replica that holds the call decides whether it
//! accepts the input responses.

use std::sync::Weak;

use creole::internal::call::CancelReason;
use creole::internal::replicas::{ReplicaError, ReplicaRequest, ReplicaResponder, Replicas};
use creole::internal::telemetry::trace::ReplicaTrace;
use creole::internal::telemetry::{CallOutcome, RecordGuard, Telemetry};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::method::Method;
use creole::proto::model::{KeyedInputRequest, Level, TaskOutcome};
use creole::proto::operation::{Event, Outcome, Payload};
use creole::proto::wire::Raw;
use creole::state::StateError;
use creole::{Call, Context};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::slots::ParkSlotLookup;
use super::{
    CallerMessage, EVENT_QUEUE, InputRound, ParkedCalls, ResumeCommand, lost_call, state_expired,
};
use crate::upstream::observed_request::StepPlace;
use crate::upstream::park::request_state::{AnsweredInput, ParkedState};

/// The maximum number of events about a call that are relayed between replicas. Its outcome is always relayed.
const MAX_EVENTS: usize = 1024;

/// The returning caller and its input responses.
#[derive(Serialize, Deserialize)]
struct ResumeRequest {
    principal: String,
    round: u32,
    answers: Vec<(String, Raw)>,
    /// The call as the traces show it, if it is sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traced: Option<TracedCall>,
}

/// A sampled call.
#[derive(Serialize, Deserialize)]
struct TracedCall {
    method: String,
    target: String,
    trace: ReplicaTrace,
}

impl TracedCall {
    fn of(call: &Call, place: Option<&StepPlace>) -> Option<Self> {
        let (method, target) = (call.operation.method(), call.operation.target());
        let trace = place?.replica_trace()?;
        Some(Self { method: method.to_owned(), target: target.to_owned(), trace })
    }

    /// The record of the request at the replica that has the call.
    fn start_record(self, telemetry: &Telemetry) -> Option<RecordGuard> {
        let method = Method::from_name(&self.method)?.name();
        telemetry.start_replica_request(method, &self.target, self.trace)
    }
}

/// A reply of the replica that holds the call.
#[derive(Serialize, Deserialize)]
enum ReplicaReply {
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        level: String,
        logger: Option<String>,
        data: Raw,
    },
    Visited(String),
    Asks {
        asks: Vec<KeyedInputRequest>,
        round: u32,
        known: Option<Vec<AnsweredInput>>,
    },
    Ends(TaskOutcome),
    /// The call no longer exists.
    Lost,
}

/// The name of a call among replicas.
pub(super) fn call_target(id: &str) -> String {
    format!("call/{id}")
}

/// Resumes a call that the replica `home` holds.
pub(super) async fn resume(
    peers: &Replicas,
    home: &str,
    parked: &ParkedState,
    call: &Call,
    place: Option<&StepPlace>,
) -> Result<Outcome, ReplicaError> {
    let context = &call.context;
    let answers =
        context.input_responses().map(|(key, response)| (key.to_owned(), response.clone()));
    let principal = (**context.principal().binding()).to_owned();
    let (answers, traced) = (answers.collect(), TracedCall::of(call, place));
    let back = ResumeRequest { principal, round: parked.round, answers, traced };
    // Plain data cannot fail to serialise.
    let request = serde_json::to_vec(&back).unwrap_or_default();
    let mut responses = peers.send(home, &call_target(&parked.id), request.into()).await?;
    loop {
        let bytes = responses.next().await?;
        let outcome = match serde_json::from_slice(&bytes) {
            Ok(ReplicaReply::Asks { asks, round, known }) => {
                let questions = InputRound { input_requests: asks, round, answered_inputs: known };
                questions.into_outcome(&parked.id, parked.lane, Some(home))
            }
            Ok(ReplicaReply::Ends(end)) => end_to_outcome(end),
            Ok(ReplicaReply::Lost) => lost_call(&call.operation).into(),
            Ok(meanwhile) => {
                forward_to_caller(meanwhile, context).await;
                continue;
            }
            Err(_) => {
                let detail = "the other replica runs an incompatible version";
                return Ok(Fault::new(FaultKind::Internal, detail).into());
            }
        };
        responses.finish();
        return Ok(outcome);
    }
}

/// The fault of a call that could not be forwarded although its replica is alive.
pub(crate) fn replica_fault(unreached: &ReplicaError) -> Fault {
    let kind = match unreached {
        ReplicaError::Busy => FaultKind::Busy,
        ReplicaError::State(StateError::TooLong { .. }) => FaultKind::InvalidParams,
        // The call is still parked, and its replica can be asked again.
        ReplicaError::State(error) if error.is_temporary() => FaultKind::Busy,
        _ => FaultKind::BackendUnavailable,
    };
    let detail = format!("the call is parked in another replica: {unreached}");
    Fault::new(kind, detail)
}

async fn forward_to_caller(reply: ReplicaReply, context: &Context) {
    let event = match reply {
        ReplicaReply::Progress { progress, total, message } => {
            Event::Progress { progress, total, message }
        }
        ReplicaReply::Visited(id) => Event::ElicitationCompleted(id),
        ReplicaReply::Log { level, logger, data } => {
            let Some(level) = Level::from_name(&level) else { return };
            Event::Log { level, logger, data }
        }
        ReplicaReply::Asks { .. } | ReplicaReply::Ends(_) | ReplicaReply::Lost => return,
    };
    context.send_event(event).await;
}

/// Serves a caller that returned to another replica. The call notices if this future is dropped.
pub(super) async fn serve_replica_request(
    parking: Weak<ParkedCalls>,
    id: String,
    request: ReplicaRequest,
) {
    let ReplicaRequest { payload, responder, requester: sender } = request;
    let Ok(back) = serde_json::from_slice::<ResumeRequest>(&payload) else { return };
    let Some(parking) = parking.upgrade() else {
        return send_reply(&responder, &ReplicaReply::Lost).await;
    };
    let work = back.traced.and_then(|traced| traced.start_record(&parking.telemetry));
    let found = parking.lock().find(&id, &back.principal);
    drop(parking);
    let commands = match found {
        ParkSlotLookup::Found(commands) => commands,
        ParkSlotLookup::Evicted => {
            let expired = outcome_to_end(state_expired().into());
            return send_reply(&responder, &ReplicaReply::Ends(expired)).await;
        }
        ParkSlotLookup::Unknown => return send_reply(&responder, &ReplicaReply::Lost).await,
    };
    let (caller, messages) = mpsc::channel(EVENT_QUEUE);
    let resume = ResumeCommand {
        round: back.round,
        responses: back.answers,
        caller,
        // The other replica has the reason.
        cancel_reason: CancelReason::default(),
        place: work.as_ref().map(StepPlace::of_replica_request),
    };
    if commands.send(resume).await.is_err() {
        return send_reply(&responder, &ReplicaReply::Lost).await;
    }
    tokio::select! {
        outcome = forward_events(messages, &responder) => {
            work.into_iter().for_each(|work| work.finish(outcome));
        }
        () = sender.disconnected() => {}
    }
}

/// Relays the replies to the end of the round, and returns how it ended.
async fn forward_events(
    mut messages: mpsc::Receiver<CallerMessage>,
    responder: &ReplicaResponder,
) -> CallOutcome {
    let mut events = 0;
    while let Some(message) = messages.recv().await {
        let (reply, outcome) = match message {
            CallerMessage::Event(event) => {
                events += 1;
                if events <= MAX_EVENTS {
                    send_reply(responder, &event_to_reply(event)).await;
                }
                continue;
            }
            CallerMessage::InputRequired(InputRound {
                input_requests,
                round,
                answered_inputs: known,
            }) => {
                let reply = ReplicaReply::Asks { asks: input_requests, round, known };
                (reply, CallOutcome::InputRequired)
            }
            CallerMessage::Done(outcome) => {
                let seen = CallOutcome::of(&outcome, |fault| fault.foreign_code);
                (ReplicaReply::Ends(outcome_to_end(outcome)), seen)
            }
        };
        send_reply(responder, &reply).await;
        return outcome;
    }
    send_reply(responder, &ReplicaReply::Lost).await;
    CallOutcome::Cancelled
}

async fn send_reply(responder: &ReplicaResponder, reply: &ReplicaReply) {
    let text = serde_json::to_vec(reply).unwrap_or_default();
    let Err(error) = responder.send(&text).await else { return };
    if let ReplicaReply::Ends(_) | ReplicaReply::Asks { .. } = reply {
        let detail = format!("cannot forward the outcome of the call to its replica: {error}");
        let fault = ReplicaReply::Ends(TaskOutcome::Fault(Fault::new(
            FaultKind::BackendUnavailable,
            detail,
        )));
        // The waiting replica detects that the state fails.
        _ = responder.send(&serde_json::to_vec(&fault).unwrap_or_default()).await;
    }
}

fn event_to_reply(event: Event) -> ReplicaReply {
    match event {
        Event::Progress { progress, total, message } => {
            ReplicaReply::Progress { progress, total, message }
        }
        Event::Log { level, logger, data } => {
            ReplicaReply::Log { level: level.name().to_owned(), logger, data }
        }
        Event::ElicitationCompleted(id) => ReplicaReply::Visited(id),
    }
}

/// Converts an outcome to its serialised form.
fn outcome_to_end(outcome: Outcome) -> TaskOutcome {
    match outcome {
        Outcome::Complete(Payload::Relayed(relayed)) => TaskOutcome::Relayed(relayed),
        Outcome::Complete(Payload::Tool(result)) => TaskOutcome::Result(result),
        Outcome::Fail(fault) => TaskOutcome::Fault(fault),
        _ => TaskOutcome::Fault(Fault::new(
            FaultKind::Internal,
            "the upstream turned the call into a task, and the task belongs to another replica of \
                this gateway",
        )),
    }
}

fn end_to_outcome(end: TaskOutcome) -> Outcome {
    match end {
        TaskOutcome::Relayed(relayed) => Outcome::Complete(Payload::Relayed(relayed)),
        TaskOutcome::Result(result) => Outcome::Complete(Payload::Tool(result)),
        TaskOutcome::Fault(fault) => Outcome::Fail(fault),
    }
}
