//! Parking: a server waits for an answer in the middle of a call, and the client has gone to get it.
//!
//! A client of the stateless generation cannot be asked while it waits: its call ends with the questions, and it
//! calls again with the answers. The server's call goes on meanwhile, in a task that owns it. Who calls again is
//! led back to it by a name that nobody can guess, sealed and bound to the first call
//! (2026-07-28 basic/patterns/mrtr).

mod attendant;
mod elsewhere;
mod places;
mod trace;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use creole::call::{Call, CancelReason, Context};
use creole::client::PendingCall;
use creole::proto::client::CallRequest;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::http::MirroredHeader;
use creole::proto::model::{ClientCapabilities, KeyedInputRequest};
use creole::proto::operation::{Event, Operation, Outcome};
use creole::proto::revision::InputRequestStyle;
use creole::proto::wire::Raw;
use creole::replicas::{Registration, ReplicaError, Replicas};
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use super::kept::{Kept, Known, Parked};
use super::pool::Lease;
use attendant::Attendant;
use places::{Found, Place, Places};

/// Calls of one caller that wait for answers.
pub(super) const MOST_OF_ONE: usize = 16;

/// How long a call that was given up for a newer one may take to make room.
const ROOM: Duration = Duration::from_secs(5);

/// Things on their way to a caller that may wait to be taken.
const NEWS: usize = 64;

/// The calls of one server that wait for answers, or may have to.
pub(super) struct Parking {
    places: Mutex<Places>,
    /// How long the answers may take.
    patience: Duration,
    /// The processes that share the state, if there may be others than this one.
    peers: Option<Replicas>,
}

/// A call that is about to be made.
pub(super) struct Beginning {
    pub(super) request: CallRequest,
    /// Its arguments that are repeated in headers.
    pub(super) mirrors: Arc<[MirroredHeader]>,
    /// Answers from when it was made before, by what tells their questions apart.
    pub(super) answered: Vec<(String, Raw)>,
    /// Whether it may be made a second time if its process is gone.
    pub(super) may_repeat: bool,
}

impl Beginning {
    /// Whether the server was told of folders, for which some ask before they are called.
    fn is_announced(&self) -> bool {
        self.request.options.capabilities.roots
    }

    fn begin(self, lease: &Lease) -> PendingCall {
        lease.connection.start_call_with(self.request, self.mirrors)
    }
}

/// Somebody who came back.
pub(super) struct Resume {
    round: u32,
    answers: Vec<(String, Raw)>,
    caller: mpsc::Sender<ToCaller>,
    /// What its client says why it cancels.
    reason: CancelReason,
}

/// What a call has for whoever waits for it.
#[derive(Clone, Debug)]
pub(super) enum ToCaller {
    Event(Event),
    /// It asks, and goes on waiting.
    Asks(Questions),
    Done(Outcome),
}

/// What a call asks.
#[derive(Clone, Debug)]
pub(super) struct Questions {
    asks: Vec<KeyedInputRequest>,
    round: u32,
    /// What was answered before, if the call may be made again.
    known: Option<Vec<Known>>,
}

impl Questions {
    /// What the caller leaves with.
    fn outcome(self, id: &str, lane: usize, home: Option<&str>) -> Outcome {
        let Self { asks, round, known } = self;
        let known = known.map(|known| {
            let answered = known.into_iter().filter(|it| it.answer.is_some());
            answered.chain(asks.iter().map(Known::open)).collect()
        });
        let (id, home) = (id.to_owned(), home.map(str::to_owned));
        let state = Some(Kept::Park(Parked { id, round, lane, home, known }).text());
        Outcome::InputRequired { requests: asks, request_state: state }
    }
}

/// What came of somebody who came back.
pub(super) enum Resumed {
    /// The call went on.
    Outcome(Outcome),
    /// The process in which the call waited is gone, and the call with it.
    Gone,
}

impl From<Fault> for Resumed {
    fn from(fault: Fault) -> Self {
        Self::Outcome(fault.into())
    }
}

impl Parking {
    /// No calls yet; answers may take so long, and so many calls may wait for them.
    pub(super) fn new(patience: Duration, most: usize, peers: Option<Replicas>) -> Arc<Self> {
        Arc::new(Self { places: Mutex::new(Places::new(most)), patience, peers })
    }

    /// What other processes know this one by.
    fn home(&self) -> Option<&str> {
        self.peers.as_ref().map(Replicas::name)
    }

    /// Follows a call whose caller may have to leave it.
    pub(super) async fn follow(
        self: &Arc<Self>,
        beginning: Beginning,
        lease: Lease,
        context: &Context,
    ) -> Outcome {
        if beginning.is_announced() {
            lease.settle().await;
        }
        let (caller, news) = mpsc::channel(NEWS);
        let (commands, resumes) = mpsc::channel(MOST_OF_ONE);
        let spot = match self.enter(context.principal(), commands) {
            Ok(spot) => spot,
            Err(fault) => return fault.into(),
        };
        let (id, lane) = (spot.id.clone(), lease.lane);
        let attendant = Attendant::new(beginning, lease, context, caller, spot);
        tokio::spawn(attendant.attend(resumes));
        self.wait(news, &id, lane, context).await
    }

    /// Goes on with a call that its caller had to leave, here or in the process in which it waits.
    pub(super) async fn resume(&self, parked: &Parked, call: &Call) -> Resumed {
        let Parked { id, round, lane, .. } = parked;
        let context = &call.context;
        let found = self.lock().find(id, context.principal());
        let commands = match found {
            Found::Here(commands) => commands,
            Found::GivenUp => return expired().into(),
            Found::Not => return self.resume_elsewhere(parked, call).await,
        };
        let (caller, news) = mpsc::channel(NEWS);
        let answers =
            context.input_responses().map(|(key, answer)| (key.to_owned(), answer.clone()));
        let (answers, reason) = (answers.collect(), Arc::clone(context.cancel_reason()));
        let resume = Resume { round: *round, answers, caller, reason };
        match commands.send(resume).await {
            Ok(()) => Resumed::Outcome(self.wait(news, id, *lane, context).await),
            Err(_) => lost(&call.operation).into(),
        }
    }

    async fn resume_elsewhere(&self, parked: &Parked, call: &Call) -> Resumed {
        let (Some(peers), Some(home)) = (&self.peers, &parked.home) else {
            return lost(&call.operation).into();
        };
        if home == peers.name() {
            return lost(&call.operation).into();
        }
        match Box::pin(elsewhere::resume(peers, home, parked, call)).await {
            Ok(outcome) => Resumed::Outcome(outcome),
            Err(ReplicaError::Gone) => Resumed::Gone,
            Err(ReplicaError::Unknown) => lost(&call.operation).into(),
            Err(unreached) => elsewhere::unreached(&unreached).into(),
        }
    }

    /// Waits for the call's end or its next questions. Being dropped is noticed by the call.
    async fn wait(
        &self,
        mut news: mpsc::Receiver<ToCaller>,
        id: &str,
        lane: usize,
        context: &Context,
    ) -> Outcome {
        while let Some(told) = news.recv().await {
            match told {
                ToCaller::Event(event) => context.send_event(event).await,
                ToCaller::Asks(questions) => return questions.outcome(id, lane, self.home()),
                ToCaller::Done(outcome) => return outcome,
            }
        }
        super::broken("the call was given up").into()
    }

    /// Gives up the oldest call of this caller that waits for answers and that nobody waits for, and waits until
    /// it has left its place; tells whether there was one. Calls of others are not touched.
    pub(super) async fn make_room(&self, principal: &str) -> bool {
        let Some(left) = self.lock().give_up_oldest(principal) else { return false };
        // A sender that is gone without a word is what is waited for.
        _ = timeout(ROOM, left).await;
        true
    }

    fn enter(
        self: &Arc<Self>,
        principal: &str,
        commands: mpsc::Sender<Resume>,
    ) -> Result<Spot, Fault> {
        let id = creole::task::random_id()?;
        let (leaving, left) = oneshot::channel();
        let given_up = Arc::new(Notify::new());
        let place = Place::new(principal, commands, Arc::clone(&given_up), left);
        self.lock().insert(id.clone(), place);
        let parking = Arc::clone(self);
        let (keeping, written) = (None, None);
        Ok(Spot { parking, id, given_up, keeping, written, _leaving: leaving })
    }

    /// How many wait for answers, and the bytes of their questions.
    #[cfg(test)]
    pub(super) fn load(&self) -> (usize, usize) {
        self.lock().load()
    }

    /// Whether no call has a place.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one call, left when this is dropped.
pub(super) struct Spot {
    parking: Arc<Parking>,
    id: String,
    given_up: Arc<Notify>,
    /// Has other processes find it.
    keeping: Option<Registration>,
    /// The version of what is written down about where the call is, if anything is.
    written: Option<u64>,
    _leaving: oneshot::Sender<()>,
}

impl Spot {
    /// How long the answers may take.
    fn patience(&self) -> Duration {
        self.parking.patience
    }

    /// Has the call wait for answers to questions of so many bytes. If too many of its caller's do, the oldest is given up for it; it is
    /// refused if too many of others do.
    fn park(&self, bytes: usize) -> Result<(), Fault> {
        if self.parking.lock().park(&self.id, bytes) { Ok(()) } else { Err(too_many()) }
    }

    /// Has other processes find the call, if there may be any: its caller may come back to one of them.
    async fn announce(&mut self) {
        let Some(peers) = self.parking.peers.as_ref().filter(|_| self.keeping.is_none()) else {
            return;
        };
        let (parking, id) = (Arc::downgrade(&self.parking), self.id.clone());
        let target = elsewhere::target(&self.id);
        let keeping = peers.register(&target, move |errand| {
            tokio::spawn(elsewhere::serve(Weak::clone(&parking), id.clone(), errand));
        });
        self.keeping = Some(keeping.await);
    }

    /// Whether the call may be made again when this process is gone.
    fn is_shared(&self) -> bool {
        self.parking.peers.is_some()
    }

    /// Somebody came back for the call; too late, if it was given up meanwhile.
    fn unpark(&self) -> bool {
        self.parking.lock().unpark(&self.id)
    }

    /// Whether the outcome of the call may be kept for a while.
    fn keep(&self) -> bool {
        self.parking.lock().keep(&self.id)
    }

    /// Resolves when the call is given up for a newer one.
    async fn given_up(&self) {
        self.given_up.notified().await;
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        self.cross_out();
        self.parking.lock().remove(&self.id);
    }
}

/// Whether a call has to be left alone when its server asks: its caller is not asked while it waits. Tasks wait for
/// input, whoever is their caller.
pub(super) fn is_needed(
    context: &Context,
    lease: &Lease,
    capabilities: &ClientCapabilities,
) -> bool {
    let leaves = context.is_task()
        || context.caller().rules.input_request_style == InputRequestStyle::MultiRoundTrip;
    let rules = lease.connection.greeting().rules;
    leaves
        && rules.input_request_style == InputRequestStyle::Inline
        && capabilities.accepts_input_requests()
}

/// The fault of a call that asks while too many others wait for answers.
pub(super) fn too_many() -> Fault {
    let detail = "too many calls wait for answers; answer one of them first";
    Fault::new(FaultKind::Busy, detail)
}

/// The fault of a call that nobody knows any more: it may have been carried out.
pub(super) fn lost(operation: &Operation) -> Fault {
    let detail = "the call that asked this is over: its answer was taken, it took too long, or the gateway was \
                  restarted. Nothing is known about its effects; call again if that is safe";
    let kind = match operation {
        Operation::CallTool { .. } => FaultKind::ToolFailed,
        _ => FaultKind::Internal,
    };
    Fault::new(kind, detail).with_subject(operation.target())
}

/// The fault of answers that come too late: the call was given up, as newer ones of its caller asked too.
fn expired() -> Fault {
    let detail = "`requestState` is no longer valid: the call that asked was given up for newer ones; call again";
    let data = Raw::from_value(&json!({"reason": "state_expired"}));
    Fault::new(FaultKind::StateRefused, detail).with_data(data)
}

/// The fault of answers to questions that were answered otherwise before.
fn consumed() -> Fault {
    let detail = "`requestState` is not valid for this request";
    let data = Raw::from_value(&json!({"reason": "state_consumed"}));
    Fault::new(FaultKind::StateRefused, detail).with_data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(parking: &Arc<Parking>, principal: &str) -> (Spot, Result<(), Fault>) {
        let (commands, _) = mpsc::channel(1);
        let spot = parking.enter(principal, commands).unwrap();
        let parked = spot.park(1);
        (spot, parked)
    }

    #[tokio::test]
    async fn the_oldest_call_of_a_caller_makes_room_and_those_of_others_stay() {
        let parking = Parking::new(Duration::from_secs(600), 64, None);
        let (bobs, is_parked) = parked(&parking, "bob");
        is_parked.unwrap();
        let mut spots: Vec<_> = (0..=MOST_OF_ONE).map(|_| parked(&parking, "alice")).collect();
        assert!(spots.iter().all(|(_, parked)| parked.is_ok()));
        let oldest = spots.remove(0).0;
        oldest.given_up().await;
        assert!(!oldest.unpark(), "too late");
        assert!(matches!(parking.lock().find(&oldest.id, "alice"), Found::GivenUp));
        let id = oldest.id.clone();
        drop(oldest);
        assert!(matches!(parking.lock().find(&id, "alice"), Found::GivenUp), "also afterwards");
        assert!(matches!(parking.lock().find(&id, "bob"), Found::Not));
        assert!(spots.iter().all(|(spot, _)| spot.unpark()) && bobs.unpark());
    }

    #[tokio::test]
    async fn a_call_that_somebody_waits_for_is_never_given_up() {
        let parking = Parking::new(Duration::from_secs(600), 64, None);
        let spots: Vec<_> = (0..MOST_OF_ONE).map(|_| parked(&parking, "alice").0).collect();
        assert!(spots.iter().all(Spot::unpark));
        assert!(!parking.make_room("alice").await);
        assert!(spots[0].park(1).is_ok());
        assert!(!parking.make_room("bob").await);
    }

    #[tokio::test]
    async fn who_has_no_call_to_give_up_is_refused_while_others_fill_the_place() {
        let parking = Parking::new(Duration::from_secs(600), 64, None);
        let all: Vec<_> =
            (0..64).map(|number| parked(&parking, &format!("{}", number / MOST_OF_ONE))).collect();
        assert!(all.iter().all(|(_, parked)| parked.is_ok()));
        let (_late, refused) = parked(&parking, "late");
        assert_eq!(refused.unwrap_err().kind, FaultKind::Busy);
        assert!(parked(&parking, "0").1.is_ok(), "its own oldest makes room");
    }

    #[tokio::test]
    async fn ten_thousand_calls_wait_within_their_measure_and_leave_nothing_behind() {
        let parking = Parking::new(Duration::from_secs(600), 10_000, None);
        let principal = |number: usize| format!("{}", number / MOST_OF_ONE);
        let all: Vec<_> = (0..10_000).map(|number| parked(&parking, &principal(number))).collect();
        assert!(all.iter().all(|(_, parked)| parked.is_ok()));
        assert_eq!(parking.lock().load(), (10_000, 10_000));
        let (late, refused) = parked(&parking, "late");
        assert_eq!(refused.unwrap_err().kind, FaultKind::Busy);
        // Who comes back makes room for one that asks.
        assert!(all[17].0.unpark());
        assert!(late.park(1).is_ok());
        let (_more, is_parked) = parked(&parking, &principal(0));
        assert!(is_parked.is_ok(), "its caller's oldest makes room");
        all[0].0.given_up().await;
        drop((all, late, _more));
        let places = parking.lock();
        assert_eq!(places.load(), (0, 0));
    }

    #[tokio::test]
    async fn questions_that_are_too_long_together_are_refused() {
        let parking = Parking::new(Duration::from_secs(600), 64, None);
        let half = 40 * 1024 * 1024;
        let spot = |name: &str| parking.enter(name, mpsc::channel(1).0).unwrap();
        let (first, second) = (spot("alice"), spot("bob"));
        assert!(first.park(half).is_ok());
        assert_eq!(second.park(half).unwrap_err().kind, FaultKind::Busy);
        assert!(first.unpark() && second.park(half).is_ok());
    }
}
