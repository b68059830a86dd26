//! Parked calls: upstream calls that wait for input while the client fetches it.
//!
//! A client of the stateless era accepts no input requests while it waits: its call ends with the input requests, and
//! it repeats the call with the input responses. The upstream call continues meanwhile in a task that owns it. The
//! request state leads the next round back to the task by an unguessable id. It is sealed and bound to the first call
//! (2026-07-28 basic/patterns/mrtr).

mod checkpoint;
mod claim;
mod parked_call;
mod replica;
pub(crate) mod request_state;
mod slot_guard;
mod slots;

use creole::internal::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use creole::internal::call::CancelReason;
use creole::internal::client::PendingCall;
use creole::internal::replicas::{ReplicaError, Replicas};
use creole::internal::seal::digest;
use creole::internal::telemetry::metrics::table;
use creole::internal::telemetry::{FrameTap, ParkedEnd, Telemetry};
use creole::proto::client::CallRequest;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::http::MirroredHeader;
use creole::proto::model::{ClientCapabilities, KeyedInputRequest};
use creole::proto::operation::{Event, Operation, Outcome};
use creole::proto::revision::InputRequestStyle;
use creole::proto::wire::{Raw, hex};
use creole::{Call, Context};
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::upstream::connections::pool::{EvictParkedCall, MAX_LANES, UpstreamLease};
use crate::upstream::observed_request::StepPlace;
use crate::upstream::park::request_state::{AnsweredInput, ParkedState, RequestState};
pub(crate) use claim::CheckpointClaim;
use claim::UncertainClaims;
use parked_call::ParkedCall;
pub(crate) use replica::replica_fault;
use slot_guard::ParkSlotGuard;
use slots::{ParkSlot, ParkSlotLookup, ParkSlots};

/// The maximum number of parked calls per caller.
pub(super) const MAX_PARKED_PER_CALLER: usize = MAX_LANES;

/// How long the parked calls of a process that stops may take to be handed over.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of queued messages to a caller.
const EVENT_QUEUE: usize = 64;

/// The calls of one upstream that are parked or may have to be parked.
pub(crate) struct ParkedCalls {
    slots: Mutex<ParkSlots>,
    /// How long the input responses may take.
    input_timeout: Duration,
    /// The replicas that share the state, if there may be others than this one.
    replicas: Option<Replicas>,
    claims: UncertainClaims,
    /// Whether this process stops.
    is_stopping: watch::Sender<bool>,
    telemetry: Telemetry,
}

/// A call that is ready to be sent.
pub(super) struct PreparedCall {
    pub(super) request: CallRequest,
    /// Its mirrored headers.
    pub(super) mirrored_headers: Arc<[MirroredHeader]>,
    /// Input responses of an earlier attempt, by the digest of their input request.
    pub(super) known_responses: Vec<(String, Raw)>,
    /// Whether the call may be repeated if its replica has stopped.
    pub(super) may_repeat: bool,
    /// Where its messages go, if a reader of the telemetry wants them.
    pub(super) tap: Option<FrameTap>,
}

impl PreparedCall {
    /// Whether the client declared roots: some upstreams request them before a call.
    fn declares_roots(&self) -> bool {
        self.request.options.capabilities.roots
    }

    fn send(self, lease: &UpstreamLease) -> PendingCall {
        lease.connection.start_recorded_call(self.request, self.mirrored_headers, self.tap)
    }
}

/// A caller that returned for its parked call.
pub(super) struct ResumeCommand {
    round: u32,
    responses: Vec<(String, Raw)>,
    caller: mpsc::Sender<CallerMessage>,
    /// The reason that its client gives when it cancels.
    cancel_reason: CancelReason,
    /// The step of its call, if the call is recorded.
    place: Option<StepPlace>,
}

/// A message of a parked call to its waiting callers.
#[derive(Clone, Debug)]
pub(super) enum CallerMessage {
    Event(Event),
    /// The call needs input and stays parked.
    InputRequired(InputRound),
    Done(Outcome),
}

/// The input requests of one round.
#[derive(Clone, Debug)]
pub(super) struct InputRound {
    input_requests: Vec<KeyedInputRequest>,
    round: u32,
    /// The input responses so far, if the call may be repeated.
    answered_inputs: Option<Vec<AnsweredInput>>,
}

impl InputRound {
    /// The outcome that ends the caller's current round.
    fn into_outcome(self, id: &str, lane: usize, home: Option<&str>) -> Outcome {
        let Self { input_requests, round, answered_inputs: known } = self;
        let known = known.map(|known| {
            let answered =
                known.into_iter().filter(|answered_input| answered_input.answer.is_some());
            answered.chain(input_requests.iter().map(AnsweredInput::without_response)).collect()
        });
        let (id, home) = (id.to_owned(), home.map(str::to_owned));
        let state = Some(RequestState::Park(ParkedState { id, round, lane, home, known }).encode());
        Outcome::InputRequired { requests: input_requests, request_state: state }
    }
}

/// The start of the digest of a parked call's id, which identifies the call and cannot be used to continue it.
fn id_digest(id: &str) -> String {
    hex(&digest(id.as_bytes())[..8])
}

/// The result of resuming a parked call.
pub(super) enum ResumeOutcome {
    /// The call continued.
    Outcome(Outcome),
    /// The replica that held the call has stopped, and the call is lost.
    ReplicaGone,
}

impl From<Fault> for ResumeOutcome {
    fn from(fault: Fault) -> Self {
        Self::Outcome(fault.into())
    }
}

impl ParkedCalls {
    /// An empty table, with the time limit of input responses and the maximum number of parked calls.
    pub(super) fn new(
        timeout: Duration,
        max: usize,
        peers: Option<Replicas>,
        telemetry: &Telemetry,
    ) -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::new(ParkSlots::new(max)),
            input_timeout: timeout,
            replicas: peers,
            claims: UncertainClaims::default(),
            is_stopping: watch::Sender::new(false),
            telemetry: telemetry.clone(),
        })
    }

    /// Lets other replicas continue the parked calls that they can continue, because this process stops.
    pub(super) async fn hand_over(&self) {
        self.is_stopping.send_replace(true);
        // Each call has released its receiver when it has decided.
        _ = timeout(HANDOVER_TIMEOUT, self.is_stopping.closed()).await;
    }

    /// The name of this replica.
    fn replica_name(&self) -> Option<&str> {
        self.replicas.as_ref().map(Replicas::name)
    }

    /// Runs a call that may have to be parked.
    pub(super) async fn run(
        self: &Arc<Self>,
        beginning: PreparedCall,
        lease: UpstreamLease,
        context: &Context,
    ) -> Outcome {
        if beginning.declares_roots() {
            lease.wait_for_initial_requests().await;
        }
        let (caller, messages) = mpsc::channel(EVENT_QUEUE);
        let (commands, resumes) = mpsc::channel(MAX_PARKED_PER_CALLER);
        let slot = match self.add(context.principal().binding(), commands) {
            Ok(slot) => slot,
            Err(fault) => return fault.into(),
        };
        let (id, lane) = (slot.id.clone(), lease.lane);
        let parked_call = ParkedCall::new(beginning, lease, context, caller, slot);
        tokio::spawn(parked_call.run(resumes));
        self.wait_for_outcome(messages, &id, lane, context).await
    }

    /// Resumes a parked call, in this replica or in the one that holds it.
    pub(super) async fn resume(
        &self,
        parked: &ParkedState,
        call: &Call,
        place: Option<StepPlace>,
    ) -> ResumeOutcome {
        let ParkedState { id, round, lane, .. } = parked;
        let context = &call.context;
        let found = self.lock().find(id, context.principal().binding());
        let commands = match found {
            ParkSlotLookup::Found(commands) => commands,
            ParkSlotLookup::Evicted => return state_expired().into(),
            ParkSlotLookup::Unknown => {
                let resumed = self.resume_on_replica(parked, call, place.as_ref()).await;
                if matches!(resumed, ResumeOutcome::ReplicaGone) {
                    self.count_end("lost");
                }
                return resumed;
            }
        };
        let (caller, messages) = mpsc::channel(EVENT_QUEUE);
        let answers =
            context.input_responses().map(|(key, response)| (key.to_owned(), response.clone()));
        let (responses, reason) = (answers.collect(), context.cancel_reason());
        let resume =
            ResumeCommand { round: *round, responses, caller, cancel_reason: reason, place };
        match commands.send(resume).await {
            Ok(()) => {
                ResumeOutcome::Outcome(self.wait_for_outcome(messages, id, *lane, context).await)
            }
            Err(_) => lost_call(&call.operation).into(),
        }
    }

    async fn resume_on_replica(
        &self,
        parked: &ParkedState,
        call: &Call,
        place: Option<&StepPlace>,
    ) -> ResumeOutcome {
        let lost = || {
            place.into_iter().for_each(|place| place.add_parked(Instant::now(), ParkedEnd::Lost));
            lost_call(&call.operation).into()
        };
        let (Some(peers), Some(home)) = (&self.replicas, &parked.home) else { return lost() };
        if home == peers.name() {
            return lost();
        }
        match Box::pin(replica::resume(peers, home, parked, call, place)).await {
            Ok(outcome) => ResumeOutcome::Outcome(outcome),
            Err(ReplicaError::Gone) => ResumeOutcome::ReplicaGone,
            Err(ReplicaError::Unknown) => lost(),
            Err(unreached) => replica_fault(&unreached).into(),
        }
    }

    /// Waits for the end of the call or its next input requests. The call notices if this future is dropped.
    async fn wait_for_outcome(
        &self,
        mut messages: mpsc::Receiver<CallerMessage>,
        id: &str,
        lane: usize,
        context: &Context,
    ) -> Outcome {
        while let Some(message) = messages.recv().await {
            match message {
                CallerMessage::Event(event) => context.send_event(event).await,
                CallerMessage::InputRequired(round) => {
                    return round.into_outcome(id, lane, self.replica_name());
                }
                CallerMessage::Done(outcome) => return outcome,
            }
        }
        Fault::new(FaultKind::Internal, "the parked call was abandoned").into()
    }

    fn add(
        self: &Arc<Self>,
        principal: &str,
        commands: mpsc::Sender<ResumeCommand>,
    ) -> Result<ParkSlotGuard, Fault> {
        let id = creole::internal::task::random_id()?;
        let (leaving, left) = oneshot::channel();
        let given_up = Arc::new(Notify::new());
        let slot = ParkSlot::new(principal, commands, Arc::clone(&given_up), left);
        self.lock().insert(id.clone(), slot);
        Ok(ParkSlotGuard::new(Arc::clone(self), id, given_up, leaving))
    }

    /// The parked calls: the start of the digest of the id, and the binding of the caller.
    pub(super) fn list(&self) -> Vec<(String, String)> {
        let slots = self.lock();
        slots.parked().map(|(id, caller)| (id_digest(id), caller.to_owned())).collect()
    }

    /// Ends the parked call with this digest; whether there was one.
    pub(super) fn end(&self, digest: &str) -> bool {
        let mut slots = self.lock();
        let found = slots.parked().find(|(id, _)| id_digest(id) == digest);
        let Some(id) = found.map(|(id, _)| id.to_owned()) else { return false };
        slots.evict(&id);
        true
    }

    /// The number of parked calls.
    pub(super) fn count(&self) -> usize {
        self.lock().usage().0
    }

    /// Counts the end of a parked call: `resumed`, `expired`, `taken_over`, `handed_over` or `lost`.
    fn count_end(&self, end: &'static str) {
        self.telemetry.metrics().count(&table::PARKED_ENDS, &[end]);
    }

    /// The number of parked calls, and the bytes of their input requests.
    #[cfg(test)]
    pub(super) fn usage(&self) -> (usize, usize) {
        self.lock().usage()
    }

    /// Whether no call has a slot.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, ParkSlots> {
        self.slots.lock()
    }
}

impl EvictParkedCall for ParkedCalls {
    fn evict_oldest(&self, principal: &str) -> Option<oneshot::Receiver<()>> {
        self.lock().evict_oldest(principal)
    }
}

/// Whether a call has to be parked when its upstream sends input requests, because its caller accepts none while it
/// waits. Tasks wait for input, whatever the caller supports.
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

/// The fault of a call that is no longer known. It may have been executed.
pub(super) fn lost_call(operation: &Operation) -> Fault {
    let detail = "the pending call no longer exists (answered, timed out, or lost in a restart). \
        Its effects are unknown; call again if that is safe";
    let kind = match operation {
        Operation::CallTool { .. } => FaultKind::ToolFailed,
        _ => FaultKind::Internal,
    };
    Fault::new(kind, detail).with_subject(operation.target())
}

/// The fault of late input responses: newer calls of the caller have evicted the call.
fn state_expired() -> Fault {
    let detail = "`requestState` is no longer valid: newer calls of this client evicted the \
        pending call; call again";
    let data = Raw::from_value(&json!({"reason": "state_expired"}));
    Fault::new(FaultKind::StateRefused, detail).with_data(data)
}

/// The fault of input responses that differ from those that were accepted before.
fn state_consumed() -> Fault {
    let detail = "`requestState` is not valid for this request";
    let data = Raw::from_value(&json!({"reason": "state_consumed"}));
    Fault::new(FaultKind::StateRefused, detail).with_data(data)
}
