//! Parking: a server waits for an answer in the middle of a call, and the client has gone to get it.
//!
//! A client of the stateless generation cannot be asked while it waits: its call ends with the questions, and it
//! calls again with the answers. The server's call goes on meanwhile, in a task that owns it. Who calls again is
//! led back to it by a name that nobody can guess, sealed and bound to the first call
//! (2026-07-28 basic/patterns/mrtr).

mod attendant;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::call::{Call, Context};
use creole::client::Calling;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::Ask;
use creole::proto::op::{Event, Operation, Outcome};
use creole::proto::wire::Raw;
use serde_json::json;
use tokio::sync::mpsc;

use super::kept::Kept;
use super::pool::Lease;
use attendant::Attendant;

/// Parked calls of one server, and of one caller there.
const MOST: usize = 64;
pub(super) const MOST_OF_ONE: usize = 16;

/// Calls that are over and whose outcome is still kept.
const MOST_OVER: usize = 64;

/// Things on their way to a caller that may wait to be taken.
const NEWS: usize = 64;

/// The calls of one server that wait for answers, or may have to.
pub(super) struct Parking {
    places: Mutex<HashMap<String, Place>>,
    /// How long the answers may take.
    patience: Duration,
}

struct Place {
    principal: Arc<str>,
    commands: mpsc::Sender<Resume>,
    standing: Standing,
}

/// How a call stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Somebody waits for it.
    Awaited,
    /// It waits for answers, and nobody for it.
    Parked,
    /// It has ended.
    Over,
}

/// Somebody who came back.
pub(super) struct Resume {
    round: u32,
    answers: Vec<(String, Raw)>,
    caller: mpsc::Sender<ToCaller>,
}

/// What a call has for whoever waits for it.
#[derive(Clone, Debug)]
pub(super) enum ToCaller {
    Event(Event),
    /// It asks, and goes on waiting.
    Asks(Vec<Ask>, u32),
    Done(Outcome),
}

impl Parking {
    pub(super) fn new(patience: Duration) -> Arc<Self> {
        Arc::new(Self { places: Mutex::default(), patience })
    }

    /// Follows a call whose caller may have to leave it.
    pub(super) async fn follow(
        self: &Arc<Self>,
        calling: Calling,
        lease: Lease,
        context: &Context,
    ) -> Outcome {
        let (caller, news) = mpsc::channel(NEWS);
        let (commands, resumes) = mpsc::channel(MOST_OF_ONE);
        let id = match self.enter(context.principal(), commands) {
            Ok(id) => id,
            Err(fault) => return fault.into(),
        };
        let spot = Spot { parking: Arc::clone(self), id: id.clone() };
        let attendant = Attendant::new(calling, lease, context, caller, spot);
        tokio::spawn(attendant.attend(resumes));
        wait(news, &id, context).await
    }

    /// Goes on with a call that its caller had to leave.
    pub(super) async fn resume(&self, id: &str, round: u32, call: &Call) -> Outcome {
        let context = &call.context;
        let commands = {
            let places = self.lock();
            places
                .get(id)
                .filter(|place| *place.principal == *context.principal())
                .map(|it| it.commands.clone())
        };
        let Some(commands) = commands else { return lost(&call.operation).into() };
        let (caller, news) = mpsc::channel(NEWS);
        let answers = context.answers().map(|(key, answer)| (key.to_owned(), answer.clone()));
        let resume = Resume { round, answers: answers.collect(), caller };
        match commands.send(resume).await {
            Ok(()) => wait(news, id, context).await,
            Err(_) => lost(&call.operation).into(),
        }
    }

    fn enter(&self, principal: &str, commands: mpsc::Sender<Resume>) -> Result<String, Fault> {
        let id = creole::task::random_id()?;
        let standing = Standing::Awaited;
        let place = Place { principal: principal.into(), commands, standing };
        self.lock().insert(id.clone(), place);
        Ok(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one call, left when this is dropped.
pub(super) struct Spot {
    parking: Arc<Parking>,
    id: String,
}

impl Spot {
    /// How long the answers may take.
    fn patience(&self) -> Duration {
        self.parking.patience
    }

    /// Has the call wait for answers, unless too many do.
    fn park(&self) -> Result<(), Fault> {
        let mut places = self.parking.lock();
        let Some(principal) = places.get(&self.id).map(|place| Arc::clone(&place.principal)) else {
            return Err(too_many());
        };
        let parked = places.values().filter(|place| place.standing == Standing::Parked);
        let of_one = parked.clone().filter(|place| place.principal == principal).count();
        if parked.count() >= MOST || of_one >= MOST_OF_ONE {
            return Err(too_many());
        }
        self.stand(&mut places, Standing::Parked);
        Ok(())
    }

    /// Somebody came back for the call.
    fn unpark(&self) {
        self.stand(&mut self.parking.lock(), Standing::Awaited);
    }

    /// Whether the outcome of the call may be kept for a while.
    fn keep(&self) -> bool {
        let mut places = self.parking.lock();
        let over = places.values().filter(|place| place.standing == Standing::Over).count();
        self.stand(&mut places, Standing::Over);
        over < MOST_OVER
    }

    fn stand(&self, places: &mut HashMap<String, Place>, standing: Standing) {
        if let Some(place) = places.get_mut(&self.id) {
            place.standing = standing;
        }
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        self.parking.lock().remove(&self.id);
    }
}

/// Waits for the call's end or its next questions. Being dropped is noticed by the call.
async fn wait(mut news: mpsc::Receiver<ToCaller>, id: &str, context: &Context) -> Outcome {
    while let Some(told) = news.recv().await {
        match told {
            ToCaller::Event(event) => context.event(event).await,
            ToCaller::Asks(asks, round) => {
                let state = Some(Kept::Park { id: id.to_owned(), round }.text());
                return Outcome::NeedInput { asks, state };
            }
            ToCaller::Done(outcome) => return outcome,
        }
    }
    super::broken("the call was given up").into()
}

/// The fault of a call that asks while too many others wait for answers.
pub(super) fn too_many() -> Fault {
    let detail = "too many calls wait for answers; answer one of them first";
    Fault::new(FaultKind::Busy, detail)
}

/// The fault of a call that nobody knows any more: it may have been carried out.
fn lost(operation: &Operation) -> Fault {
    let detail = "the call that asked this is over: its answer was taken, it took too long, or the gateway was \
                  restarted. Nothing is known about its effects; call again if that is safe";
    let kind = match operation {
        Operation::CallTool { .. } => FaultKind::ToolFailed,
        _ => FaultKind::Internal,
    };
    Fault::new(kind, detail).about(operation.target())
}

/// The fault of answers to questions that were answered otherwise before.
fn consumed() -> Fault {
    let detail = "`requestState` is not valid for this request";
    let data = Raw::of(&json!({"reason": "state_consumed"}));
    Fault::new(FaultKind::StateRefused, detail).with_data(data)
}
