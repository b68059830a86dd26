//! Working on a task: its tool is run, waits for answers, and is run again, until it comes to an end.

use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{InputRequest, KeyedInputRequest, TaskOutcome, TaskState};
use creole_proto::operation::{Event, Outcome, Payload};
use creole_proto::server::{CallKey, InputResponse};
use tokio::time::{Instant, timeout_at};

use super::Shared;
use super::record::Answers;
use super::store::{Changed, TaskKey, Watch};
use crate::ask::MOST_ROUNDS;
use crate::call::{Call, Context, Outlet, Round};
use crate::chain::BoxFuture;

/// Runs a call through the chain once.
pub(crate) type Run = Arc<dyn Fn(Call) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// What is to be done for a task.
pub(super) struct Job {
    pub(super) call: Call,
    pub(super) run: Run,
    pub(super) key: TaskKey,
    /// What it begins with: what the client had answered before there was a task.
    pub(super) round: Round,
}

/// What becomes of a task that waited.
enum Next {
    /// It goes on with these answers.
    Answered(Answers),
    /// It ends with this fault.
    Refused(Fault),
    /// It is over or gone.
    Over,
}

impl Shared {
    /// Works on a task until it is over or its time is.
    pub(super) async fn work_until(&self, job: Job, expires: Instant) {
        let context = job.call.context.for_task(job.key.id(), Arc::new(Silent));
        let stopped = context.canceller();
        match timeout_at(expires, self.work(job, context)).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => {
                tracing::error!(target: "creole", reason = fault.detail, "a task was given up");
            }
            Err(_) => stopped.cancel(),
        }
    }

    async fn work(&self, job: Job, context: Context) -> Result<(), Fault> {
        let Job { call, run, key, mut round } = job;
        let mut answered = round.answers.clone();
        let mut news = self.store.watch(&key).await?;
        for _ in 0..=MOST_ROUNDS {
            let mut again = call.clone();
            again.context = context.with_round(round.clone());
            let outcome = tokio::select! {
                biased;
                over = self.stopped(&key, &mut news, &context) => return over,
                outcome = run(again) => outcome,
            };
            let (asks, state) = match outcome {
                Outcome::InputRequired { requests: asks, request_state: state } => (asks, state),
                done => return self.end(&key, ended(done)).await,
            };
            if let Some(fault) = asked_again(&asks, &answered) {
                return self.end(&key, TaskOutcome::Fault(fault)).await;
            }
            match self.wait_for_answers(&key, asks, &mut news).await? {
                Next::Answered(given) => {
                    let fresh = |key: &String| !answered.contains_key(key);
                    let new: Answers =
                        given.clone().into_iter().filter(|(key, _)| fresh(key)).collect();
                    round = round.after(state);
                    round.answers.extend(new);
                    answered = given;
                }
                Next::Refused(fault) => return self.end(&key, TaskOutcome::Fault(fault)).await,
                Next::Over => return Ok(()),
            }
        }
        let detail = format!("it asked more than {MOST_ROUNDS} times");
        self.end(&key, TaskOutcome::Fault(Fault::new(FaultKind::InputRefused, detail))).await
    }

    /// Resolves when somebody ended the task; its work knows that before it is dropped.
    async fn stopped(
        &self,
        key: &TaskKey,
        news: &mut Watch,
        context: &Context,
    ) -> Result<(), Fault> {
        let over = self.is_over(key, news).await;
        context.canceller().cancel();
        over
    }

    /// Resolves when somebody ended the task.
    async fn is_over(&self, key: &TaskKey, news: &mut Watch) -> Result<(), Fault> {
        loop {
            match self.store.read(key).await? {
                Some(record) if !record.task.state.is_terminal() => news.changed().await,
                _ => return Ok(()),
            }
        }
    }

    async fn wait_for_answers(
        &self,
        key: &TaskKey,
        asks: Vec<KeyedInputRequest>,
        news: &mut Watch,
    ) -> Result<Next, Fault> {
        let parked = self.store.change(key, |record, now| record.park(asks.clone(), now)).await;
        match parked {
            Ok(Changed::To(_)) => {}
            Ok(Changed::Gone | Changed::Not(_)) => return Ok(Next::Over),
            Err(fault) => return Ok(Next::Refused(fault)),
        }
        loop {
            let Some(record) = self.store.read(key).await? else { return Ok(Next::Over) };
            match (&record.task.state, record.refused) {
                (TaskState::InputRequired(_), _) => news.changed().await,
                (TaskState::Working, Some(reason)) => {
                    return Ok(Next::Refused(Fault::new(FaultKind::InputRefused, reason)));
                }
                (TaskState::Working, None) => return Ok(Next::Answered(record.answers)),
                (TaskState::Ended(_) | TaskState::Cancelled, _) => return Ok(Next::Over),
            }
        }
    }

    /// Ends the task, unless somebody did already; an end that cannot be kept is told in short.
    async fn end(&self, key: &TaskKey, end: TaskOutcome) -> Result<(), Fault> {
        let kept = self.store.change(key, |record, now| record.end(end.clone(), now)).await;
        let Err(fault) = kept else { return Ok(()) };
        let told = Fault::new(FaultKind::ToolFailed, fault.detail);
        let end = TaskOutcome::Fault(told);
        self.store.change(key, |record, now| record.end(end.clone(), now)).await.map(drop)
    }
}

fn ended(outcome: Outcome) -> TaskOutcome {
    match outcome {
        Outcome::Complete(Payload::Tool(result)) => TaskOutcome::Result(result),
        Outcome::Complete(Payload::Relayed(relayed)) => TaskOutcome::Relayed(relayed),
        Outcome::Fail(fault) => TaskOutcome::Fault(fault),
        _ => TaskOutcome::Fault(Fault::new(FaultKind::Internal, "the tool gave no tool's result")),
    }
}

/// A key names one question in all the life of a task (SEP-2663, task update requests).
fn asked_again(asks: &[KeyedInputRequest], answers: &Answers) -> Option<Fault> {
    let again = asks.iter().find(|ask| answers.contains_key(&ask.key))?;
    let detail = format!("the question `{}` was asked again after its answer", again.key);
    Some(Fault::new(FaultKind::Internal, detail))
}

/// What a task tells on its way reaches nobody: its request was answered long ago, and the extension has
/// neither progress nor log messages (SEP-2663, task status notifications).
struct Silent;

impl Outlet for Silent {
    fn event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, _: CallKey, _: InputRequest) -> BoxFuture<'_, InputResponse> {
        Box::pin(std::future::ready(Err("a task asks by waiting for input".to_owned())))
    }
}
