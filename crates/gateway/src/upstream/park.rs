//! Parking: a server waits for an answer in the middle of a call, and the client has gone to get it.
//!
//! A client of the stateless generation cannot be asked while it waits: its call ends with the questions, and it
//! calls again with the answers. The server's call goes on meanwhile, in a task that owns it. Who calls again is
//! led back to it by a name that nobody can guess, sealed and bound to the first call
//! (2026-07-28 basic/patterns/mrtr).

mod checkpoint;
mod parked_call;
mod replica;
pub(crate) mod request_state;
mod slots;
pub(crate) mod takeover;

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

use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::park::request_state::{AnsweredInput, ParkedState, RequestState};
use parked_call::ParkedCall;
use slots::{ParkSlot, ParkSlotLookup, ParkSlots};

/// Calls of one caller that wait for answers.
pub(super) const MAX_PARKED_PER_CALLER: usize = 16;

/// How long a call that was given up for a newer one may take to make room.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Things on their way to a caller that may wait to be taken.
const EVENT_QUEUE: usize = 64;

/// The calls of one server that wait for answers, or may have to.
pub(crate) struct ParkedCalls {
    slots: Mutex<ParkSlots>,
    /// How long the answers may take.
    input_timeout: Duration,
    /// The processes that share the state, if there may be others than this one.
    replicas: Option<Replicas>,
}

/// A call that is about to be made.
pub(super) struct PreparedCall {
    pub(super) request: CallRequest,
    /// Its arguments that are repeated in headers.
    pub(super) mirrored_headers: Arc<[MirroredHeader]>,
    /// Answers from when it was made before, by what tells their questions apart.
    pub(super) known_responses: Vec<(String, Raw)>,
    /// Whether it may be made a second time if its process is gone.
    pub(super) may_repeat: bool,
}

impl PreparedCall {
    /// Whether the server was told of folders, for which some ask before they are called.
    fn declares_roots(&self) -> bool {
        self.request.options.capabilities.roots
    }

    fn send(self, lease: &UpstreamLease) -> PendingCall {
        lease.connection.start_call_with(self.request, self.mirrored_headers)
    }
}

/// Somebody who came back.
pub(super) struct ResumeCommand {
    round: u32,
    responses: Vec<(String, Raw)>,
    caller: mpsc::Sender<CallerMessage>,
    /// What its client says why it cancels.
    cancel_reason: CancelReason,
}

/// What a call has for whoever waits for it.
#[derive(Clone, Debug)]
pub(super) enum CallerMessage {
    Event(Event),
    /// It asks, and goes on waiting.
    InputRequired(InputRound),
    Done(Outcome),
}

/// What a call asks.
#[derive(Clone, Debug)]
pub(super) struct InputRound {
    input_requests: Vec<KeyedInputRequest>,
    round: u32,
    /// What was answered before, if the call may be made again.
    answered_inputs: Option<Vec<AnsweredInput>>,
}

impl InputRound {
    /// What the caller leaves with.
    fn into_outcome(self, id: &str, lane: usize, home: Option<&str>) -> Outcome {
        let Self { input_requests: asks, round, answered_inputs: known } = self;
        let known = known.map(|known| {
            let answered = known.into_iter().filter(|it| it.answer.is_some());
            answered.chain(asks.iter().map(AnsweredInput::without_response)).collect()
        });
        let (id, home) = (id.to_owned(), home.map(str::to_owned));
        let state = Some(RequestState::Park(ParkedState { id, round, lane, home, known }).encode());
        Outcome::InputRequired { requests: asks, request_state: state }
    }
}

/// What came of somebody who came back.
pub(super) enum ResumeOutcome {
    /// The call went on.
    Outcome(Outcome),
    /// The process in which the call waited is gone, and the call with it.
    ReplicaGone,
}

impl From<Fault> for ResumeOutcome {
    fn from(fault: Fault) -> Self {
        Self::Outcome(fault.into())
    }
}

impl ParkedCalls {
    /// No calls yet; answers may take so long, and so many calls may wait for them.
    pub(super) fn new(patience: Duration, most: usize, peers: Option<Replicas>) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::new(ParkSlots::new(most)),
            input_timeout: patience,
            replicas: peers,
        })
    }

    /// What other processes know this one by.
    fn replica_name(&self) -> Option<&str> {
        self.replicas.as_ref().map(Replicas::name)
    }

    /// Follows a call whose caller may have to leave it.
    pub(super) async fn run(
        self: &Arc<Self>,
        beginning: PreparedCall,
        lease: UpstreamLease,
        context: &Context,
    ) -> Outcome {
        if beginning.declares_roots() {
            lease.wait_for_initial_requests().await;
        }
        let (caller, news) = mpsc::channel(EVENT_QUEUE);
        let (commands, resumes) = mpsc::channel(MAX_PARKED_PER_CALLER);
        let spot = match self.add(context.principal(), commands) {
            Ok(spot) => spot,
            Err(fault) => return fault.into(),
        };
        let (id, lane) = (spot.id.clone(), lease.lane);
        let attendant = ParkedCall::new(beginning, lease, context, caller, spot);
        tokio::spawn(attendant.run(resumes));
        self.wait_for_outcome(news, &id, lane, context).await
    }

    /// Goes on with a call that its caller had to leave, here or in the process in which it waits.
    pub(super) async fn resume(&self, parked: &ParkedState, call: &Call) -> ResumeOutcome {
        let ParkedState { id, round, lane, .. } = parked;
        let context = &call.context;
        let found = self.lock().find(id, context.principal());
        let commands = match found {
            ParkSlotLookup::Found(commands) => commands,
            ParkSlotLookup::Evicted => return state_expired().into(),
            ParkSlotLookup::Unknown => return self.resume_on_replica(parked, call).await,
        };
        let (caller, news) = mpsc::channel(EVENT_QUEUE);
        let answers =
            context.input_responses().map(|(key, answer)| (key.to_owned(), answer.clone()));
        let (answers, reason) = (answers.collect(), Arc::clone(context.cancel_reason()));
        let resume =
            ResumeCommand { round: *round, responses: answers, caller, cancel_reason: reason };
        match commands.send(resume).await {
            Ok(()) => ResumeOutcome::Outcome(self.wait_for_outcome(news, id, *lane, context).await),
            Err(_) => lost_call(&call.operation).into(),
        }
    }

    async fn resume_on_replica(&self, parked: &ParkedState, call: &Call) -> ResumeOutcome {
        let (Some(peers), Some(home)) = (&self.replicas, &parked.home) else {
            return lost_call(&call.operation).into();
        };
        if home == peers.name() {
            return lost_call(&call.operation).into();
        }
        match Box::pin(replica::resume(peers, home, parked, call)).await {
            Ok(outcome) => ResumeOutcome::Outcome(outcome),
            Err(ReplicaError::Gone) => ResumeOutcome::ReplicaGone,
            Err(ReplicaError::Unknown) => lost_call(&call.operation).into(),
            Err(unreached) => replica::replica_fault(&unreached).into(),
        }
    }

    /// Waits for the call's end or its next questions. Being dropped is noticed by the call.
    async fn wait_for_outcome(
        &self,
        mut news: mpsc::Receiver<CallerMessage>,
        id: &str,
        lane: usize,
        context: &Context,
    ) -> Outcome {
        while let Some(told) = news.recv().await {
            match told {
                CallerMessage::Event(event) => context.send_event(event).await,
                CallerMessage::InputRequired(questions) => {
                    return questions.into_outcome(id, lane, self.replica_name());
                }
                CallerMessage::Done(outcome) => return outcome,
            }
        }
        super::internal_fault("the call was given up").into()
    }

    /// Gives up the oldest call of this caller that waits for answers and that nobody waits for, and waits until
    /// it has left its place; tells whether there was one. Calls of others are not touched.
    pub(super) async fn evict_oldest(&self, principal: &str) -> bool {
        let Some(left) = self.lock().evict_oldest(principal) else { return false };
        // A sender that is gone without a word is what is waited for.
        _ = timeout(EVICTION_TIMEOUT, left).await;
        true
    }

    fn add(
        self: &Arc<Self>,
        principal: &str,
        commands: mpsc::Sender<ResumeCommand>,
    ) -> Result<ParkSlotGuard, Fault> {
        let id = creole::task::random_id()?;
        let (leaving, left) = oneshot::channel();
        let given_up = Arc::new(Notify::new());
        let place = ParkSlot::new(principal, commands, Arc::clone(&given_up), left);
        self.lock().insert(id.clone(), place);
        let parking = Arc::clone(self);
        let (keeping, written) = (None, None);
        Ok(ParkSlotGuard {
            parked_calls: parking,
            id,
            evicted: given_up,
            registration: keeping,
            checkpoint_version: written,
            _released: leaving,
        })
    }

    /// How many wait for answers, and the bytes of their questions.
    #[cfg(test)]
    pub(super) fn usage(&self) -> (usize, usize) {
        self.lock().usage()
    }

    /// Whether no call has a place.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, ParkSlots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one call, left when this is dropped.
pub(super) struct ParkSlotGuard {
    parked_calls: Arc<ParkedCalls>,
    id: String,
    evicted: Arc<Notify>,
    /// Has other processes find it.
    registration: Option<Registration>,
    /// The version of what is written down about where the call is, if anything is.
    checkpoint_version: Option<u64>,
    _released: oneshot::Sender<()>,
}

impl ParkSlotGuard {
    /// How long the answers may take.
    fn input_timeout(&self) -> Duration {
        self.parked_calls.input_timeout
    }

    /// Has the call wait for answers to questions of so many bytes. If too many of its caller's do, the oldest is given up for it; it is
    /// refused if too many of others do.
    fn park(&self, bytes: usize) -> Result<(), Fault> {
        if self.parked_calls.lock().park(&self.id, bytes) {
            Ok(())
        } else {
            Err(too_many_parked_calls())
        }
    }

    /// Has other processes find the call, if there may be any: its caller may come back to one of them.
    async fn register(&mut self) {
        let Some(peers) =
            self.parked_calls.replicas.as_ref().filter(|_| self.registration.is_none())
        else {
            return;
        };
        let (parking, id) = (Arc::downgrade(&self.parked_calls), self.id.clone());
        let target = replica::call_target(&self.id);
        let keeping = peers.register(&target, move |errand| {
            tokio::spawn(replica::serve_replica_request(Weak::clone(&parking), id.clone(), errand));
        });
        self.registration = Some(keeping.await);
    }

    /// Whether the call may be made again when this process is gone.
    fn has_replicas(&self) -> bool {
        self.parked_calls.replicas.is_some()
    }

    /// Somebody came back for the call; too late, if it was given up meanwhile.
    fn unpark(&self) -> bool {
        self.parked_calls.lock().unpark(&self.id)
    }

    /// Whether the outcome of the call may be kept for a while.
    fn keep_outcome(&self) -> bool {
        self.parked_calls.lock().finish(&self.id)
    }

    /// Resolves when the call is given up for a newer one.
    async fn wait_for_eviction(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for ParkSlotGuard {
    fn drop(&mut self) {
        self.delete_checkpoint();
        self.parked_calls.lock().remove(&self.id);
    }
}

/// Whether a call has to be left alone when its server asks: its caller is not asked while it waits. Tasks wait for
/// input, whoever is their caller.
pub(super) fn needs_parking(
    context: &Context,
    lease: &UpstreamLease,
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
pub(super) fn too_many_parked_calls() -> Fault {
    let detail = "too many calls wait for answers; answer one of them first";
    Fault::new(FaultKind::Busy, detail)
}

/// The fault of a call that nobody knows any more: it may have been carried out.
pub(super) fn lost_call(operation: &Operation) -> Fault {
    let detail = "the call that asked this is over: its answer was taken, it took too long, or the gateway was \
                  restarted. Nothing is known about its effects; call again if that is safe";
    let kind = match operation {
        Operation::CallTool { .. } => FaultKind::ToolFailed,
        _ => FaultKind::Internal,
    };
    Fault::new(kind, detail).with_subject(operation.target())
}

/// The fault of answers that come too late: the call was given up, as newer ones of its caller asked too.
fn state_expired() -> Fault {
    let detail = "`requestState` is no longer valid: the call that asked was given up for newer ones; call again";
    let data = Raw::from_value(&json!({"reason": "state_expired"}));
    Fault::new(FaultKind::StateRefused, detail).with_data(data)
}

/// The fault of answers to questions that were answered otherwise before.
fn state_consumed() -> Fault {
    let detail = "`requestState` is not valid for this request";
    let data = Raw::from_value(&json!({"reason": "state_consumed"}));
    Fault::new(FaultKind::StateRefused, detail).with_data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(parking: &Arc<ParkedCalls>, principal: &str) -> (ParkSlotGuard, Result<(), Fault>) {
        let (commands, _) = mpsc::channel(1);
        let spot = parking.add(principal, commands).unwrap();
        let parked = spot.park(1);
        (spot, parked)
    }

    #[tokio::test]
    async fn the_oldest_call_of_a_caller_makes_room_and_those_of_others_stay() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None);
        let (bobs, is_parked) = parked(&parking, "bob");
        is_parked.unwrap();
        let mut spots: Vec<_> =
            (0..=MAX_PARKED_PER_CALLER).map(|_| parked(&parking, "alice")).collect();
        assert!(spots.iter().all(|(_, parked)| parked.is_ok()));
        let oldest = spots.remove(0).0;
        oldest.wait_for_eviction().await;
        assert!(!oldest.unpark(), "too late");
        assert!(matches!(parking.lock().find(&oldest.id, "alice"), ParkSlotLookup::Evicted));
        let id = oldest.id.clone();
        drop(oldest);
        assert!(
            matches!(parking.lock().find(&id, "alice"), ParkSlotLookup::Evicted),
            "also afterwards"
        );
        assert!(matches!(parking.lock().find(&id, "bob"), ParkSlotLookup::Unknown));
        assert!(spots.iter().all(|(spot, _)| spot.unpark()) && bobs.unpark());
    }

    #[tokio::test]
    async fn a_call_that_somebody_waits_for_is_never_given_up() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None);
        let spots: Vec<_> =
            (0..MAX_PARKED_PER_CALLER).map(|_| parked(&parking, "alice").0).collect();
        assert!(spots.iter().all(ParkSlotGuard::unpark));
        assert!(!parking.evict_oldest("alice").await);
        assert!(spots[0].park(1).is_ok());
        assert!(!parking.evict_oldest("bob").await);
    }

    #[tokio::test]
    async fn who_has_no_call_to_give_up_is_refused_while_others_fill_the_place() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None);
        let all: Vec<_> = (0..64)
            .map(|number| parked(&parking, &format!("{}", number / MAX_PARKED_PER_CALLER)))
            .collect();
        assert!(all.iter().all(|(_, parked)| parked.is_ok()));
        let (_late, refused) = parked(&parking, "late");
        assert_eq!(refused.unwrap_err().kind, FaultKind::Busy);
        assert!(parked(&parking, "0").1.is_ok(), "its own oldest makes room");
    }

    #[tokio::test]
    async fn ten_thousand_calls_wait_within_their_measure_and_leave_nothing_behind() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 10_000, None);
        let principal = |number: usize| format!("{}", number / MAX_PARKED_PER_CALLER);
        let all: Vec<_> = (0..10_000).map(|number| parked(&parking, &principal(number))).collect();
        assert!(all.iter().all(|(_, parked)| parked.is_ok()));
        assert_eq!(parking.lock().usage(), (10_000, 10_000));
        let (late, refused) = parked(&parking, "late");
        assert_eq!(refused.unwrap_err().kind, FaultKind::Busy);
        // Who comes back makes room for one that asks.
        assert!(all[17].0.unpark());
        assert!(late.park(1).is_ok());
        let (_more, is_parked) = parked(&parking, &principal(0));
        assert!(is_parked.is_ok(), "its caller's oldest makes room");
        all[0].0.wait_for_eviction().await;
        drop((all, late, _more));
        let places = parking.lock();
        assert_eq!(places.usage(), (0, 0));
    }

    #[tokio::test]
    async fn questions_that_are_too_long_together_are_refused() {
        let parking = ParkedCalls::new(Duration::from_secs(600), 64, None);
        let half = 40 * 1024 * 1024;
        let spot = |name: &str| parking.add(name, mpsc::channel(1).0).unwrap();
        let (first, second) = (spot("alice"), spot("bob"));
        assert!(first.park(half).is_ok());
        assert_eq!(second.park(half).unwrap_err().kind, FaultKind::Busy);
        assert!(first.unpark() && second.park(half).is_ok());
    }
}
