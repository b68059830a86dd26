//! The task that owns a parked upstream call until the client returns with its input.

mod completion;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use creole::Context;
use creole::internal::call::CancelReason;
use creole::internal::client::{
    CallEvent, CallStep, InputResponder, PendingCall, ResumePoint, ServerInputRequest,
};
use creole::internal::telemetry::{CallOutcome, ParkedEnd, StepKind};
use creole::proto::client::InputRequestError;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{InputRequest, KeyedInputRequest};
use creole::proto::operation::{Event, Outcome};
use creole::proto::wire::Raw;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::checkpoint::Checkpoint;
use super::slot_guard::ParkSlotGuard;
use super::{
    CallerMessage, InputRound, PreparedCall, ResumeCommand, checkpoint, state_consumed,
    state_expired,
};
use crate::upstream::connections::active_calls::OutOfBand;
use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::connections::session_client::apply_roots;
use crate::upstream::observed_request::StepPlace;
use crate::upstream::park::request_state::{AnsweredInput, input_request_digest};
use crate::upstream::relay::declined_input::DeclinedInput;

/// How long input requests are collected, so that simultaneous ones form one round.
const INPUT_REQUEST_BATCHING: Duration = Duration::from_millis(10);

/// How often an upstream that supports it is notified that its input request is still pending: people take longer than
/// most servers wait for a request without progress.
const WAITING_NOTICE_INTERVAL: Duration = Duration::from_secs(5);

/// The maximum number of open input requests.
const MAX_OPEN_REQUESTS: usize = 8;

/// The maximum number of bytes of input responses in the request state, for a call that may be repeated.
const MAX_ANSWERED_BYTES: usize = 8 * 1024;

/// A call that may be parked, and its waiting callers.
pub(super) struct ParkedCall {
    call: CallState,
    lease: UpstreamLease,
    context: Context,
    /// The reason that the waiting client gives when it cancels.
    cancel_reason: CancelReason,
    /// The callers that wait for the call. Empty while it is parked.
    waiting_callers: Vec<mpsc::Sender<CallerMessage>>,
    /// The open input requests by key, including those that were not sent to a caller yet.
    open_requests: BTreeMap<String, OpenRequest>,
    round: u32,
    request_count: u32,
    /// The input responses of the round before, to recognise a caller that repeats them.
    last_responses: Vec<(String, Raw)>,
    batch_deadline: Option<Instant>,
    input_deadline: Option<Instant>,
    /// When the call was last parked.
    parked_at: std::time::Instant,
    /// When the upstream is next notified that the call still waits.
    next_waiting_notice: Instant,
    /// The last progress event that no caller received.
    missed_progress: Option<Event>,
    declined: DeclinedInput,
    /// Input responses of an earlier attempt, used while the upstream sends the same input requests.
    known_responses: Vec<(String, Raw)>,
    /// The input responses so far, for a call that may be repeated.
    answered_inputs: Option<Vec<AnsweredInput>>,
    slot: ParkSlotGuard,
}

/// The upstream call. It starts when the earlier input requests of the upstream have their responses.
enum CallState {
    Prepared(Option<Box<PreparedCall>>),
    Running(PendingCall),
}

impl CallState {
    /// The next step of the call; pending before the call has started. Cancel-safe.
    async fn next(&mut self) -> CallStep {
        match self {
            Self::Prepared(_) => std::future::pending().await,
            Self::Running(calling) => calling.next().await,
        }
    }
}

struct OpenRequest {
    request: InputRequest,
    reply: InputResponder,
}

/// The result of one step.
enum ParkStep {
    Continue,
    Complete(Outcome),
    Abandoned,
    /// Another replica has taken it over.
    TakenOver,
    /// Another replica may continue it, because this process stops.
    HandedOver,
}

impl ParkedCall {
    pub(super) fn new(
        mut beginning: PreparedCall,
        lease: UpstreamLease,
        context: &Context,
        caller: mpsc::Sender<CallerMessage>,
        spot: ParkSlotGuard,
    ) -> Self {
        let answered = std::mem::take(&mut beginning.known_responses);
        let known = (spot.has_replicas() && beginning.may_repeat).then(Vec::new);
        Self {
            call: CallState::Prepared(Some(Box::new(beginning))),
            lease,
            context: context.clone(),
            cancel_reason: context.cancel_reason(),
            waiting_callers: vec![caller],
            open_requests: BTreeMap::new(),
            round: 0,
            request_count: 0,
            last_responses: Vec::new(),
            batch_deadline: None,
            input_deadline: None,
            parked_at: std::time::Instant::now(),
            next_waiting_notice: Instant::now(),
            missed_progress: None,
            declined: DeclinedInput::default(),
            known_responses: answered,
            answered_inputs: known,
            slot: spot,
        }
    }

    /// Runs the call until it has ended and its outcome was delivered.
    pub(super) async fn run(mut self, mut resumes: mpsc::Receiver<ResumeCommand>) {
        loop {
            match self.next_step(&mut resumes).await {
                ParkStep::Continue => {}
                ParkStep::Complete(outcome) => return self.deliver_outcome(outcome, resumes).await,
                ParkStep::Abandoned if self.slot.hold_checkpoint().await => {
                    self.record_expiry();
                    return self.abandon().await;
                }
                ParkStep::Abandoned | ParkStep::TakenOver => {
                    self.warn_of_takeover();
                    return self.detach();
                }
                ParkStep::HandedOver => return self.detach(),
            }
        }
    }

    /// Records that nobody returned for the call, if it was parked.
    fn record_expiry(&self) {
        if self.input_deadline.is_some()
            && let Some(work) = self.context.record().and_then(|record| record.start_work())
        {
            let kind = StepKind::Parked { end: ParkedEnd::Expired };
            work.record().add_step(kind, None, self.parked_at, None);
            work.finish(CallOutcome::Cancelled);
        }
    }

    /// Starts the call, unless the upstream has sent input requests first.
    fn start_call(&mut self) {
        let CallState::Prepared(beginning) = &mut self.call else { return };
        if !self.open_requests.is_empty() || self.lease.active_call.out_of_band.has_input_request()
        {
            return;
        }
        if let Some(beginning) = beginning.take() {
            let mut calling = beginning.send(&self.lease);
            calling.set_cancel_reason(Arc::clone(&self.cancel_reason));
            self.call = CallState::Running(calling);
        }
    }

    async fn next_step(&mut self, resumes: &mut mpsc::Receiver<ResumeCommand>) -> ParkStep {
        self.start_call();
        let gathered = self.batch_deadline.unwrap_or_else(far_future);
        let expired = self.input_deadline.unwrap_or_else(far_future);
        tokio::select! {
            biased;
            step = self.call.next() => self.on_step(step).await,
            Some(aside) = self.lease.active_call.out_of_band.recv() => {
                match aside {
                    OutOfBand::InputRequest(asked) => self.on_input_request(asked),
                    OutOfBand::Log(event) => self.send_to_callers(CallerMessage::Event(event)).await,
                }
                ParkStep::Continue
            }
            Some(resume) = resumes.recv() => {
                self.resume(resume).await
            }
            () = sleep_until(gathered), if self.batch_deadline.is_some() => self.send_input_requests().await,
            () = sleep_until(expired), if self.input_deadline.is_some() => self.abandon_parked("expired"),
            () = sleep_until(self.next_waiting_notice), if self.input_deadline.is_some() => self.send_waiting_notice().await,
            () = self.slot.wait_for_eviction() => self.abandon_parked("lost"),
            () = self.slot.wait_for_stop() => self.hand_over(),
            () = wait_until_all_gone(&self.waiting_callers), if !self.waiting_callers.is_empty() => ParkStep::Abandoned,
        }
    }

    /// Ends a parked call whose caller did not return.
    fn abandon_parked(&self, end: &'static str) -> ParkStep {
        self.slot.count_end(end);
        ParkStep::Abandoned
    }

    /// Leaves a call that waits for input to another replica, if one can continue it.
    fn hand_over(&mut self) -> ParkStep {
        if !self.slot.decide_handover() || self.input_deadline.is_none() {
            return ParkStep::Continue;
        }
        self.slot.count_end("handed_over");
        ParkStep::HandedOver
    }

    async fn on_step(&mut self, step: CallStep) -> ParkStep {
        match step {
            CallStep::Event(CallEvent::Event(event)) => {
                self.send_to_callers(CallerMessage::Event(event)).await
            }
            CallStep::Event(CallEvent::InputRequested(asked)) => self.on_input_request(asked),
            CallStep::Event(CallEvent::InputNotOffered(question)) => self.declined.record(question),
            CallStep::Event(CallEvent::InputWithdrawn(key)) => {
                self.open_requests.retain(|_, open| open.reply.key() != key);
            }
            CallStep::Done(outcome) => {
                self.lease.active_call.set_answered();
                while let Some(OutOfBand::Log(event)) =
                    self.lease.active_call.out_of_band.try_recv()
                {
                    self.send_to_callers(CallerMessage::Event(event)).await;
                }
                let unmet = std::mem::take(&mut self.declined);
                return ParkStep::Complete(unmet.explain(outcome, &self.context));
            }
            CallStep::Ended(_) => {
                return ParkStep::Complete(
                    Fault::new(
                        FaultKind::Internal,
                        "the upstream ended the call without a response",
                    )
                    .into(),
                );
            }
        }
        ParkStep::Continue
    }

    fn on_input_request(&mut self, asked: ServerInputRequest) {
        let Some(asked) = self.declined.decline_unsupported(asked, &self.context) else { return };
        let ServerInputRequest { request: question, responder: reply, .. } = asked;
        if let Some(answer) = self.recall_response(&question) {
            return reply.respond(Ok(answer));
        }
        if self.open_requests.len() >= MAX_OPEN_REQUESTS {
            return reply
                .respond(Err(InputRequestError::declined("too many input requests are open")));
        }
        self.request_count += 1;
        // Keys are unique within a call: input responses of different rounds may cross.
        let key = format!("q{}", self.request_count);
        self.open_requests.insert(key, OpenRequest { request: question, reply });
        self.batch_deadline = Some(Instant::now() + INPUT_REQUEST_BATCHING);
    }

    /// The input response of an earlier attempt of the call. From the first input request that differs, the caller gets
    /// all of them.
    fn recall_response(&mut self, question: &InputRequest) -> Option<Raw> {
        if self.known_responses.is_empty() {
            return None;
        }
        let asked = input_request_digest(question);
        let Some(place) = self.known_responses.iter().position(|(known, _)| *known == asked) else {
            self.known_responses.clear();
            return None;
        };
        let answer = self.known_responses.remove(place).1;
        self.record_response(question, &answer);
        Some(answer)
    }

    /// Records an input response, if the call may be repeated. Responses over the limit have to be given again then.
    fn record_response(&mut self, question: &InputRequest, answer: &Raw) {
        let Some(known) = &mut self.answered_inputs else { return };
        let length =
            |known: &AnsweredInput| known.answer.as_ref().map_or(0, |it| it.as_str().len());
        let bytes: usize = known.iter().map(length).sum();
        if bytes + answer.as_str().len() <= MAX_ANSWERED_BYTES {
            known.push(AnsweredInput::with_response(question, answer));
        }
    }

    /// Ends the current round of the waiting callers with the open input requests.
    async fn send_input_requests(&mut self) -> ParkStep {
        self.batch_deadline = None;
        if self.waiting_callers.is_empty() || self.open_requests.is_empty() {
            return ParkStep::Continue;
        }
        let bytes = self.open_requests.values().map(|open| approximate_size(&open.request)).sum();
        if let Err(fault) = self.slot.park(bytes) {
            self.send_to_callers(CallerMessage::Done(fault.into())).await;
            return ParkStep::Abandoned;
        }
        self.lease.set_parked(true);
        self.round += 1;
        let asks = self.open_requests.iter().map(|(key, open)| KeyedInputRequest {
            key: key.clone(),
            question: open.request.clone(),
        });
        let (asks, round, known) = (asks.collect(), self.round, self.answered_inputs.clone());
        self.slot.register().await;
        self.write_checkpoint().await;
        self.send_to_callers(CallerMessage::InputRequired(InputRound {
            input_requests: asks,
            round,
            answered_inputs: known,
        }))
        .await;
        self.waiting_callers.clear();
        if let CallState::Running(calling) = &self.call {
            // The next messages belong to the next round.
            calling.set_tap(None);
        }
        self.parked_at = std::time::Instant::now();
        self.input_deadline = Some(Instant::now() + self.slot.input_timeout());
        self.next_waiting_notice = Instant::now();
        ParkStep::Continue
    }

    /// Stores a checkpoint of the call, if another replica could continue it.
    async fn write_checkpoint(&mut self) {
        let CallState::Running(calling) = &self.call else { return };
        let Some(ResumePoint { session, last_event }) =
            calling.resume_point().filter(|_| self.slot.has_replicas())
        else {
            return;
        };
        let asked = |(key, open): (&String, &OpenRequest)| {
            let id = Raw::parse(&open.reply.id()?).ok()?;
            Some(checkpoint::CheckpointRequest {
                key: key.clone(),
                id,
                question: open.request.clone(),
            })
        };
        let Some(questions) = self.open_requests.iter().map(asked).collect() else { return };
        let trace = Checkpoint {
            principal: (**self.context.principal().binding()).to_owned(),
            round: self.round,
            version: self.lease.connection.greeting().rules.name.to_owned(),
            session,
            last_event,
            number: calling.key().0,
            questions,
        };
        self.slot.save_checkpoint(&trace).await;
    }

    async fn send_waiting_notice(&mut self) -> ParkStep {
        if self.slot.is_taken_over().await {
            self.slot.count_end("taken_over");
            return ParkStep::TakenOver;
        }
        self.open_requests.values().for_each(|open| open.reply.send_keep_alive());
        self.next_waiting_notice = Instant::now() + WAITING_NOTICE_INTERVAL;
        ParkStep::Continue
    }

    async fn resume(&mut self, resume: ResumeCommand) -> ParkStep {
        let ResumeCommand { round, responses: answers, caller, cancel_reason: reason, place } =
            resume;
        let is_repeated = round < self.round || self.input_deadline.is_none();
        if is_repeated && answers != self.last_responses {
            _ = caller.send(CallerMessage::Done(state_consumed().into())).await;
            return ParkStep::Continue;
        }
        if let Some(fault) = self.check_responses(&answers).filter(|_| !is_repeated) {
            // Nothing of it is applied, so that a later caller can still send valid responses.
            _ = caller.send(CallerMessage::Done(fault.into())).await;
            return ParkStep::Continue;
        }
        if !is_repeated && !self.slot.hold_checkpoint().await {
            _ = caller.send(CallerMessage::Done(state_consumed().into())).await;
            return ParkStep::TakenOver;
        }
        if !is_repeated && !self.slot.unpark() {
            _ = caller.send(CallerMessage::Done(state_expired().into())).await;
            return ParkStep::Continue;
        }
        self.waiting_callers.push(caller);
        if is_repeated {
            return ParkStep::Continue;
        }
        self.slot.count_end("resumed");
        self.cancel_reason = reason;
        if let CallState::Running(calling) = &mut self.call {
            calling.set_cancel_reason(Arc::clone(&self.cancel_reason));
            calling.set_tap(place.as_ref().and_then(StepPlace::frame_tap));
        }
        if let Some(place) = &place {
            place.set_rules(self.lease.connection.greeting().rules);
            place.add_parked(self.parked_at, ParkedEnd::Resumed);
        }
        self.input_deadline = None;
        if let Some(missed) = self.missed_progress.take() {
            self.send_to_callers(CallerMessage::Event(missed)).await;
        }
        self.lease.set_parked(false);
        for (key, answer) in &answers {
            if let Some(open) = self.open_requests.remove(key) {
                self.record_response(&open.request, answer);
                open.reply.respond(Ok(answer.clone()));
            }
        }
        self.last_responses = answers;
        if matches!(self.call, CallState::Prepared(_)) && self.open_requests.is_empty() {
            apply_roots().await;
        }
        if !self.open_requests.is_empty() {
            // Requests that are still open or arrived meanwhile.
            self.batch_deadline = Some(Instant::now());
        }
        ParkStep::Continue
    }

    /// The fault of input responses that the upstream could not read.
    fn check_responses(&self, answers: &[(String, Raw)]) -> Option<Fault> {
        answers.iter().find_map(|(key, answer)| {
            let why =
                checkpoint::check_response(&self.open_requests.get(key)?.request, answer).err()?;
            let detail = format!("`inputResponses.{key}` is not a valid input response: {why}");
            Some(Fault::new(FaultKind::InvalidParams, detail))
        })
    }

    async fn send_to_callers(&mut self, told: CallerMessage) {
        if let (true, CallerMessage::Event(event @ Event::Progress { .. })) =
            (self.waiting_callers.is_empty(), &told)
        {
            self.missed_progress = Some(event.clone());
        }
        for caller in &self.waiting_callers {
            // A caller that has left is noticed by `wait_until_all_gone`.
            _ = caller.send(told.clone()).await;
        }
    }
}

/// The approximate size of an input request in bytes.
fn approximate_size(question: &InputRequest) -> usize {
    match question {
        InputRequest::Form { message, schema } => message.len() + schema.as_str().len(),
        InputRequest::Url { message, url, id } => message.len() + url.len() + id.len(),
        InputRequest::Sample { params } => params.as_str().len(),
        InputRequest::Roots => 0,
    }
}

/// Resolves when no caller waits any more.
async fn wait_until_all_gone(callers: &[mpsc::Sender<CallerMessage>]) {
    for caller in callers {
        caller.closed().await;
    }
}

fn far_future() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
