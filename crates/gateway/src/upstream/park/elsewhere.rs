//! A caller that comes back to another process than the one in which its call waits.
//!
//! The process that was asked hands on who came back with which answers, and passes on what the other one says: what
//! happens meanwhile, the next questions, or the end. Whether the answers are taken is decided where the call is.

use std::sync::Weak;

use creole::call::{Call, CancelReason, Context};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{KeyedInputRequest, Level, TaskOutcome};
use creole::proto::operation::{Event, Outcome, Payload};
use creole::proto::wire::Raw;
use creole::replicas::{ReplicaError, ReplicaRequest, ReplicaResponder, Replicas};
use creole::state::StateError;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::super::kept::{Known, Parked};
use super::places::Found;
use super::{NEWS, Parking, Questions, Resume, ToCaller, expired, lost};

/// The most messages about a call that are passed on from one process to another; its end always is.
const MOST_EVENTS: usize = 1024;

/// Who came back, and with what.
#[derive(Serialize, Deserialize)]
struct Return {
    principal: String,
    round: u32,
    answers: Vec<(String, Raw)>,
}

/// What the process that has the call says.
#[derive(Serialize, Deserialize)]
enum Said {
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
        known: Option<Vec<Known>>,
    },
    Ends(TaskOutcome),
    /// The call is over.
    Lost,
}

/// What other processes know a call by.
pub(super) fn target(id: &str) -> String {
    format!("call/{id}")
}

/// Goes on with a call that waits in the process `home`.
pub(super) async fn resume(
    peers: &Replicas,
    home: &str,
    parked: &Parked,
    call: &Call,
) -> Result<Outcome, ReplicaError> {
    let context = &call.context;
    let answers = context.input_responses().map(|(key, answer)| (key.to_owned(), answer.clone()));
    let principal = context.principal().to_owned();
    let back = Return { principal, round: parked.round, answers: answers.collect() };
    // Plain data cannot fail to serialise.
    let errand = serde_json::to_vec(&back).unwrap_or_default();
    let mut replies = peers.send(home, &target(&parked.id), errand.into()).await?;
    loop {
        let said = replies.next().await?;
        match serde_json::from_slice(&said) {
            Ok(Said::Asks { asks, round, known }) => {
                let questions = Questions { asks, round, known };
                return Ok(questions.outcome(&parked.id, parked.lane, Some(home)));
            }
            Ok(Said::Ends(end)) => return Ok(outcome(end)),
            Ok(Said::Lost) => return Ok(lost(&call.operation).into()),
            Ok(meanwhile) => tell(meanwhile, context).await,
            Err(_) => return Ok(super::super::broken("another version of this runs there").into()),
        }
    }
}

/// The fault of a call that could not be handed on, though its process is there.
pub(super) fn unreached(unreached: &ReplicaError) -> Fault {
    let kind = match unreached {
        ReplicaError::Busy => FaultKind::Busy,
        ReplicaError::State(StateError::TooLong { .. }) => FaultKind::InvalidParams,
        _ => FaultKind::BackendUnavailable,
    };
    let detail = format!("the call waits in another process: {unreached}");
    Fault::new(kind, detail)
}

async fn tell(said: Said, context: &Context) {
    let event = match said {
        Said::Progress { progress, total, message } => Event::Progress { progress, total, message },
        Said::Visited(id) => Event::ElicitationCompleted(id),
        Said::Log { level, logger, data } => {
            let Some(level) = Level::from_name(&level) else { return };
            Event::Log { level, logger, data }
        }
        Said::Asks { .. } | Said::Ends(_) | Said::Lost => return,
    };
    context.send_event(event).await;
}

/// Serves somebody who came back to another process; being left is noticed by the call.
pub(super) async fn serve(parking: Weak<Parking>, id: String, errand: ReplicaRequest) {
    let ReplicaRequest { payload, responder: desk, requester: sender } = errand;
    let Ok(back) = serde_json::from_slice::<Return>(&payload) else { return };
    let Some(parking) = parking.upgrade() else { return say(&desk, &Said::Lost).await };
    let found = parking.lock().find(&id, &back.principal);
    drop(parking);
    let commands = match found {
        Found::Here(commands) => commands,
        Found::GivenUp => return say(&desk, &Said::Ends(TaskOutcome::Fault(expired()))).await,
        Found::Not => return say(&desk, &Said::Lost).await,
    };
    let (caller, news) = mpsc::channel(NEWS);
    let resume = Resume {
        round: back.round,
        answers: back.answers,
        caller,
        // Another process knows it.
        reason: CancelReason::default(),
    };
    if commands.send(resume).await.is_err() {
        return say(&desk, &Said::Lost).await;
    }
    tokio::select! {
        () = pass_on(news, &desk) => {}
        () = sender.disconnected() => {}
    }
}

async fn pass_on(mut news: mpsc::Receiver<ToCaller>, desk: &ReplicaResponder) {
    let mut events = 0;
    while let Some(told) = news.recv().await {
        let said = match told {
            ToCaller::Event(event) => {
                events += 1;
                if events <= MOST_EVENTS {
                    say(desk, &written(event)).await;
                }
                continue;
            }
            ToCaller::Asks(Questions { asks, round, known }) => Said::Asks { asks, round, known },
            ToCaller::Done(outcome) => Said::Ends(end(outcome)),
        };
        return say(desk, &said).await;
    }
    say(desk, &Said::Lost).await;
}

async fn say(desk: &ReplicaResponder, said: &Said) {
    let text = serde_json::to_vec(said).unwrap_or_default();
    let Err(error) = desk.send(&text).await else { return };
    if let Said::Ends(_) | Said::Asks { .. } = said {
        let detail = format!("what came of the call cannot be handed on: {error}");
        let fault =
            Said::Ends(TaskOutcome::Fault(Fault::new(FaultKind::BackendUnavailable, detail)));
        // Whoever waits notices by itself that the state fails.
        _ = desk.send(&serde_json::to_vec(&fault).unwrap_or_default()).await;
    }
}

fn written(event: Event) -> Said {
    match event {
        Event::Progress { progress, total, message } => Said::Progress { progress, total, message },
        Event::Log { level, logger, data } => {
            Said::Log { level: level.name().to_owned(), logger, data }
        }
        Event::ElicitationCompleted(id) => Said::Visited(id),
    }
}

/// What a call came to, as it travels.
fn end(outcome: Outcome) -> TaskOutcome {
    match outcome {
        Outcome::Complete(Payload::Relayed(relayed)) => TaskOutcome::Relayed(relayed),
        Outcome::Complete(Payload::Tool(result)) => TaskOutcome::Result(result),
        Outcome::Fail(fault) => TaskOutcome::Fault(fault),
        _ => TaskOutcome::Fault(super::super::broken(
            "the server made a task of the call, and it belongs to another process of this gateway",
        )),
    }
}

fn outcome(end: TaskOutcome) -> Outcome {
    match end {
        TaskOutcome::Relayed(relayed) => Outcome::Complete(Payload::Relayed(relayed)),
        TaskOutcome::Result(result) => Outcome::Complete(Payload::Tool(result)),
        TaskOutcome::Fault(fault) => Outcome::Fail(fault),
    }
}
