//! The one who stays with a call while its caller is away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use creole::call::{CancelReason, Context};
use creole::client::{
    CallEvent, CallStep, InputResponder, PendingCall, ResumePoint, ServerInputRequest,
};
use creole::proto::client::InputRequestError;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{InputRequest, KeyedInputRequest};
use creole::proto::operation::{Event, Outcome};
use creole::proto::wire::Raw;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::callers::Aside;
use super::super::kept::{Known, digest};
use super::super::outside::apply_roots;
use super::super::pool::Lease;
use super::super::unmet::Unmet;
use super::trace::{self, Trace};
use super::{Beginning, Questions, Resume, Spot, ToCaller, consumed, expired};

/// How long further questions are waited for, so that those of one moment go out together.
const GATHERING: Duration = Duration::from_millis(10);

/// How long the outcome is kept for a caller that lost it on the way.
const KEPT: Duration = Duration::from_secs(60);

/// How long a server has to end a call whose questions nobody answered.
const FAREWELL: Duration = Duration::from_secs(2);

/// How often a server that wants to be told is told that its question still waits for an answer: people take longer
/// than most servers wait for a request that makes no progress.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The most questions that may be open at once.
const MOST_QUESTIONS: usize = 8;

/// The most bytes of answers that are kept with the caller, for a call that may be made again.
const MOST_KNOWN: usize = 8 * 1024;

/// Stays with one call.
pub(super) struct Attendant {
    calling: Begun,
    lease: Lease,
    context: Context,
    /// What the client says why it cancels the call that waits.
    reason: CancelReason,
    /// Who waits for the call; nobody while it is parked.
    callers: Vec<mpsc::Sender<ToCaller>>,
    /// Questions that were asked, and those that are still to be, by key.
    open: BTreeMap<String, Open>,
    round: u32,
    asked: u32,
    /// What was answered in the round before, to know a caller that only repeats itself.
    taken: Vec<(String, Raw)>,
    gather: Option<Instant>,
    parked: Option<Instant>,
    /// When the server is told next that the call still waits.
    beat: Instant,
    /// The last progress that nobody was there to hear of.
    missed: Option<Event>,
    unmet: Unmet,
    /// Answers from when the call was made before, for as long as the server asks the same.
    answered: Vec<(String, Raw)>,
    /// What was answered so far, for a call that may be made again.
    known: Option<Vec<Known>>,
    spot: Spot,
}

/// The call at the server, which begins when all is answered that the server asked before.
enum Begun {
    NotYet(Option<Box<Beginning>>),
    Goes(PendingCall),
}

impl Begun {
    /// What happens next; nothing before the call has begun. Cancel-safe.
    async fn next(&mut self) -> CallStep {
        match self {
            Self::NotYet(_) => std::future::pending().await,
            Self::Goes(calling) => calling.next().await,
        }
    }
}

struct Open {
    question: InputRequest,
    reply: InputResponder,
}

/// What is next for a call.
enum Turn {
    Goes,
    Ends(Outcome),
    GivenUp,
    /// Another process goes on with it.
    Taken,
}

impl Attendant {
    pub(super) fn new(
        mut beginning: Beginning,
        lease: Lease,
        context: &Context,
        caller: mpsc::Sender<ToCaller>,
        spot: Spot,
    ) -> Self {
        let answered = std::mem::take(&mut beginning.answered);
        let known = (spot.is_shared() && beginning.may_repeat).then(Vec::new);
        Self {
            calling: Begun::NotYet(Some(Box::new(beginning))),
            lease,
            context: context.clone(),
            reason: Arc::clone(context.cancel_reason()),
            callers: vec![caller],
            open: BTreeMap::new(),
            round: 0,
            asked: 0,
            taken: Vec::new(),
            gather: None,
            parked: None,
            beat: Instant::now(),
            missed: None,
            unmet: Unmet::default(),
            answered,
            known,
            spot,
        }
    }

    /// Stays with the call until it is over and its outcome was fetched.
    pub(super) async fn attend(mut self, mut resumes: mpsc::Receiver<Resume>) {
        loop {
            match self.turn(&mut resumes).await {
                Turn::Goes => {}
                Turn::Ends(outcome) => return self.hand_out(outcome, resumes).await,
                Turn::GivenUp if self.spot.is_held().await => return self.give_up().await,
                Turn::GivenUp | Turn::Taken => return self.let_go(),
            }
        }
    }

    /// Begins the call, unless the server has asked something first.
    fn begin(&mut self) {
        let Begun::NotYet(beginning) = &mut self.calling else { return };
        if !self.open.is_empty() || self.lease.joined.asides.has_question() {
            return;
        }
        if let Some(beginning) = beginning.take() {
            let mut calling = beginning.begin(&self.lease);
            calling.set_cancel_reason(&self.reason);
            self.calling = Begun::Goes(calling);
        }
    }

    async fn turn(&mut self, resumes: &mut mpsc::Receiver<Resume>) -> Turn {
        self.begin();
        let gathered = self.gather.unwrap_or_else(far_away);
        let expired = self.parked.unwrap_or_else(far_away);
        tokio::select! {
            biased;
            step = self.calling.next() => self.take_step(step).await,
            Some(aside) = self.lease.joined.asides.recv() => {
                match aside {
                    Aside::Asked(asked) => self.take_question(asked),
                    Aside::Logged(event) => self.tell(ToCaller::Event(event)).await,
                }
                Turn::Goes
            }
            Some(resume) = resumes.recv() => {
                self.resume(resume).await
            }
            () = sleep_until(gathered), if self.gather.is_some() => self.send_questions().await,
            () = sleep_until(expired), if self.parked.is_some() => Turn::GivenUp,
            () = sleep_until(self.beat), if self.parked.is_some() => self.keep_waiting().await,
            () = self.spot.given_up() => Turn::GivenUp,
            () = all_gone(&self.callers), if !self.callers.is_empty() => Turn::GivenUp,
        }
    }

    async fn take_step(&mut self, step: CallStep) -> Turn {
        match step {
            CallStep::Event(CallEvent::Event(event)) => self.tell(ToCaller::Event(event)).await,
            CallStep::Event(CallEvent::InputRequested(asked)) => self.take_question(asked),
            CallStep::Event(CallEvent::InputNotOffered(question)) => self.unmet.note(question),
            CallStep::Event(CallEvent::InputWithdrawn(key)) => {
                self.open.retain(|_, open| open.reply.key() != key);
            }
            CallStep::Done(outcome) => {
                self.lease.joined.answered();
                while let Some(Aside::Logged(event)) = self.lease.joined.asides.try_recv() {
                    self.tell(ToCaller::Event(event)).await;
                }
                let unmet = std::mem::take(&mut self.unmet);
                return Turn::Ends(unmet.judge(outcome, &self.context));
            }
            CallStep::Ended(_) => {
                return Turn::Ends(super::super::broken("the call ended without an answer").into());
            }
        }
        Turn::Goes
    }

    fn take_question(&mut self, asked: ServerInputRequest) {
        let Some(asked) = self.unmet.pass(asked, &self.context) else { return };
        let ServerInputRequest { request: question, responder: reply, .. } = asked;
        if let Some(answer) = self.recall(&question) {
            return reply.respond(Ok(answer));
        }
        if self.open.len() >= MOST_QUESTIONS {
            return reply.respond(Err(InputRequestError::declined("too many questions are open")));
        }
        self.asked += 1;
        // Never the same key twice in a call: answers of different rounds may cross.
        let key = format!("q{}", self.asked);
        self.open.insert(key, Open { question, reply });
        self.gather = Some(Instant::now() + GATHERING);
    }

    /// What was answered to the question when the call was made before. From the first that is another one on, the
    /// caller is asked.
    fn recall(&mut self, question: &InputRequest) -> Option<Raw> {
        if self.answered.is_empty() {
            return None;
        }
        let asked = digest(question);
        let Some(place) = self.answered.iter().position(|(known, _)| *known == asked) else {
            self.answered.clear();
            return None;
        };
        let answer = self.answered.remove(place).1;
        self.note(question, &answer);
        Some(answer)
    }

    /// Remembers what was answered, where the call may be made again; what is too long to keep is asked again then.
    fn note(&mut self, question: &InputRequest, answer: &Raw) {
        let Some(known) = &mut self.known else { return };
        let length = |known: &Known| known.answer.as_ref().map_or(0, |it| it.as_str().len());
        let bytes: usize = known.iter().map(length).sum();
        if bytes + answer.as_str().len() <= MOST_KNOWN {
            known.push(Known::answered(question, answer));
        }
    }

    /// Hands the open questions to the callers, who leave with them.
    async fn send_questions(&mut self) -> Turn {
        self.gather = None;
        if self.callers.is_empty() || self.open.is_empty() {
            return Turn::Goes;
        }
        let bytes = self.open.values().map(|open| weight(&open.question)).sum();
        if let Err(fault) = self.spot.park(bytes) {
            self.tell(ToCaller::Done(fault.into())).await;
            return Turn::GivenUp;
        }
        self.lease.set_parked(true);
        self.round += 1;
        let asks = self.open.iter().map(|(key, open)| KeyedInputRequest {
            key: key.clone(),
            question: open.question.clone(),
        });
        let (asks, round, known) = (asks.collect(), self.round, self.known.clone());
        self.spot.announce().await;
        self.leave_trace().await;
        self.tell(ToCaller::Asks(Questions { asks, round, known })).await;
        self.callers.clear();
        self.parked = Some(Instant::now() + self.spot.patience());
        self.beat = Instant::now();
        Turn::Goes
    }

    /// Writes down where the call is, if another process could go on with it.
    async fn leave_trace(&mut self) {
        let Begun::Goes(calling) = &self.calling else { return };
        let Some(ResumePoint { session, last_event }) =
            calling.resume_point().filter(|_| self.spot.is_shared())
        else {
            return;
        };
        let asked = |(key, open): (&String, &Open)| {
            let id = Raw::parse(&open.reply.id()?).ok()?;
            Some(trace::Asked { key: key.clone(), id, question: open.question.clone() })
        };
        let Some(questions) = self.open.iter().map(asked).collect() else { return };
        let trace = Trace {
            principal: self.context.principal().to_owned(),
            round: self.round,
            version: self.lease.connection.greeting().rules.name.to_owned(),
            session,
            last_event,
            number: calling.key().0,
            questions,
        };
        self.spot.write_down(&trace).await;
    }

    async fn keep_waiting(&mut self) -> Turn {
        if self.spot.is_taken().await {
            return Turn::Taken;
        }
        self.open.values().for_each(|open| open.reply.send_keep_alive());
        self.beat = Instant::now() + HEARTBEAT;
        Turn::Goes
    }

    async fn resume(&mut self, resume: Resume) -> Turn {
        let Resume { round, answers, caller, reason } = resume;
        let is_repeated = round < self.round || self.parked.is_none();
        if is_repeated && answers != self.taken {
            _ = caller.send(ToCaller::Done(consumed().into())).await;
            return Turn::Goes;
        }
        if let Some(fault) = self.malformed(&answers).filter(|_| !is_repeated) {
            // Nothing is taken of it, so that who brings the right answers still can.
            _ = caller.send(ToCaller::Done(fault.into())).await;
            return Turn::Goes;
        }
        if !is_repeated && !self.spot.is_held().await {
            _ = caller.send(ToCaller::Done(consumed().into())).await;
            return Turn::Taken;
        }
        if !is_repeated && !self.spot.unpark() {
            _ = caller.send(ToCaller::Done(expired().into())).await;
            return Turn::Goes;
        }
        self.callers.push(caller);
        if is_repeated {
            return Turn::Goes;
        }
        self.reason = reason;
        if let Begun::Goes(calling) = &mut self.calling {
            calling.set_cancel_reason(&self.reason);
        }
        self.parked = None;
        if let Some(missed) = self.missed.take() {
            self.tell(ToCaller::Event(missed)).await;
        }
        self.lease.set_parked(false);
        for (key, answer) in &answers {
            if let Some(open) = self.open.remove(key) {
                self.note(&open.question, answer);
                open.reply.respond(Ok(answer.clone()));
            }
        }
        self.taken = answers;
        if matches!(self.calling, Begun::NotYet(_)) && self.open.is_empty() {
            apply_roots().await;
        }
        if !self.open.is_empty() {
            // What is still missing, or was asked meanwhile.
            self.gather = Some(Instant::now());
        }
        Turn::Goes
    }

    /// The fault of answers that the server could not read.
    fn malformed(&self, answers: &[(String, Raw)]) -> Option<Fault> {
        answers.iter().find_map(|(key, answer)| {
            let why = is_answer(&self.open.get(key)?.question, answer).err()?;
            let detail = format!("`inputResponses.{key}` is no answer: {why}");
            Some(Fault::new(FaultKind::InvalidParams, detail))
        })
    }

    async fn tell(&mut self, told: ToCaller) {
        if let (true, ToCaller::Event(event @ Event::Progress { .. })) =
            (self.callers.is_empty(), &told)
        {
            self.missed = Some(event.clone());
        }
        for caller in &self.callers {
            // One that left is noticed elsewhere.
            _ = caller.send(told.clone()).await;
        }
    }

    /// Gives the outcome to everybody who waits for it, or comes back for it soon.
    async fn hand_out(mut self, outcome: Outcome, mut resumes: mpsc::Receiver<Resume>) {
        self.open.clear();
        self.tell(ToCaller::Done(outcome.clone())).await;
        let was_fetched = !self.callers.is_empty();
        if (was_fetched && self.round == 0) || !self.spot.keep() {
            return;
        }
        let Self { taken, round: last, calling, lease, spot, mut missed, .. } = self;
        drop((calling, lease));
        let until = Instant::now() + if was_fetched { KEPT } else { spot.patience() };
        while let Ok(Some(resume)) = tokio::time::timeout_at(until, resumes.recv()).await {
            let is_known = resume.answers == taken || (!was_fetched && resume.round == last);
            let told = if is_known { outcome.clone() } else { consumed().into() };
            if let Some(missed) = missed.take_if(|_| is_known) {
                _ = resume.caller.send(ToCaller::Event(missed)).await;
            }
            _ = resume.caller.send(ToCaller::Done(told)).await;
        }
    }

    /// Leaves a call to the process that took it over: it answers the questions, and the server's session is its own too.
    fn let_go(mut self) {
        let upstream = self.lease.connection.name();
        tracing::warn!(
            upstream,
            "another process goes on with a call that waited here, as this one was not there for too long"
        );
        self.spot.is_gone();
        if let Begun::Goes(calling) = self.calling {
            calling.hand_over();
        }
    }

    /// Ends a call that nobody waits for: its questions are answered with no, and if that does not end it, it is
    /// cancelled.
    async fn give_up(mut self) {
        for open in std::mem::take(&mut self.open).into_values() {
            let answer = match open.question {
                InputRequest::Form { .. } | InputRequest::Url { .. } => {
                    Ok(Raw::from_value(&Cancelled::NEW))
                }
                InputRequest::Roots => {
                    self.lease.joined.callers().miss_roots(true);
                    Err(InputRequestError::declined("nobody answered"))
                }
                InputRequest::Sample { .. } => Err(InputRequestError::declined("nobody answered")),
            };
            open.reply.respond(answer);
        }
        let has_begun = matches!(self.calling, Begun::Goes(_));
        if self.parked.is_some() && has_begun {
            let last = async { while !matches!(self.calling.next().await, CallStep::Done(_)) {} };
            // Too late for anybody: dropping the call cancels it.
            _ = timeout(FAREWELL, last).await;
        }
    }
}

/// Whether this can be an answer to the question; why not, if it cannot.
pub(super) fn is_answer(question: &InputRequest, answer: &Raw) -> Result<(), &'static str> {
    answer.as_object().ok_or("it must be an object").and_then(|it| question.check_response(it))
}

/// About how many bytes a question has.
fn weight(question: &InputRequest) -> usize {
    match question {
        InputRequest::Form { message, schema } => message.len() + schema.as_str().len(),
        InputRequest::Url { message, url, id } => message.len() + url.len() + id.len(),
        InputRequest::Sample { params } => params.as_str().len(),
        InputRequest::Roots => 0,
    }
}

/// What a person who closed a form would have said.
#[derive(serde::Serialize)]
struct Cancelled {
    action: &'static str,
}

impl Cancelled {
    const NEW: Self = Self { action: "cancel" };
}

/// Resolves when no caller waits any more.
async fn all_gone(callers: &[mpsc::Sender<ToCaller>]) {
    for caller in callers {
        caller.closed().await;
    }
}

fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(86_400)
}
