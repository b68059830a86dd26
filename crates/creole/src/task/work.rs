//! Works on a task: runs its tool, waits for input, and runs it again, until it ends.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{InputRequest, KeyedInputRequest, TaskOutcome, TaskState};
use creole_proto::operation::{Event, Outcome, Payload};
use creole_proto::server::{CallKey, InputResponse};
use creole_proto::wire::Raw;
use tokio::time::{Instant, timeout_at};

use super::TaskShared;
use super::record::{ResponsesByKey, TaskRecord};
use super::store::{TaskChange, TaskKey, TaskWatch};
use crate::call::{Call, ClientChannel, Context, Round};
use crate::chain::BoxFuture;
use crate::input::MAX_ROUNDS;
use crate::telemetry::outcome::CallOutcome;
use crate::telemetry::record::RecordGuard;

/// The pauses between two attempts to reach a state that is unavailable.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs a call through the chain once.
pub(crate) type RunCall = Arc<dyn Fn(Call) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// The work for a task.
pub(super) struct TaskJob {
    pub(super) call: Call,
    pub(super) run: RunCall,
    pub(super) key: TaskKey,
    /// The first round: the client's input responses from before the task.
    pub(super) round: Round,
}

/// How a task continues after it waited for input.
enum AfterInput {
    /// It continues with these responses.
    Answered(ResponsesByKey),
    /// It ends with this fault.
    Refused(Fault),
    /// It is over or removed.
    Over,
}

impl TaskShared {
    /// Works on a task until it is over or expires.
    pub(super) async fn run_until(&self, job: TaskJob, expires: Instant) {
        let work = job.call.context.record().and_then(|record| record.start_task());
        let record = work.as_ref().map(|work| Arc::clone(work.record()));
        let context = job.call.context.for_task(job.key.id(), Arc::new(NoClient), record);
        let stopped = context.canceller();
        match timeout_at(expires, self.run_to_end(job, context, work)).await {
            Ok(Ok(())) => {}
            Ok(Err(fault)) => {
                tracing::error!(target: "creole", reason = fault.detail, "cannot store the outcome of a task");
            }
            Err(_) => stopped.cancel(),
        }
    }

    async fn run_to_end(
        &self,
        job: TaskJob,
        context: Context,
        work: Option<RecordGuard>,
    ) -> Result<(), Fault> {
        let TaskJob { call, run, key, mut round } = job;
        let mut answered = round.answers.clone();
        let mut watch = while_unavailable(|| self.store.watch(&key)).await?;
        for _ in 0..=MAX_ROUNDS {
            let mut repeated = call.clone();
            repeated.context = context.with_round(round.clone());
            let outcome = tokio::select! {
                biased;
                over = self.wait_cancelled(&key, &mut watch, &context) => return over,
                outcome = run(repeated) => outcome,
            };
            let (input_requests, state) = match outcome {
                Outcome::InputRequired { requests: input_requests, request_state: state } => {
                    (input_requests, state)
                }
                done => return self.end(&key, task_end(done), work).await,
            };
            if let Some(fault) = repeated_key_fault(&input_requests, &answered) {
                return self.end(&key, TaskOutcome::Fault(fault), work).await;
            }
            let asked = input_requests.iter().map(|ask| context.start_input_request(&ask.question));
            let asked: Vec<_> = asked.collect();
            let waited = self.wait_for_input(&key, input_requests, &mut watch).await?;
            drop(asked);
            match waited {
                AfterInput::Answered(arguments) => {
                    let fresh = |key: &String| !answered.contains_key(key);
                    let new: ResponsesByKey =
                        arguments.clone().into_iter().filter(|(key, _)| fresh(key)).collect();
                    round = round.into_next_round(state);
                    round.answers.extend(new);
                    answered = arguments;
                }
                AfterInput::Refused(fault) => {
                    return self.end(&key, TaskOutcome::Fault(fault), work).await;
                }
                AfterInput::Over => return Ok(()),
            }
        }
        let detail = format!("the handler requested input in more than {MAX_ROUNDS} rounds");
        self.end(&key, TaskOutcome::Fault(Fault::new(FaultKind::InputRefused, detail)), work).await
    }

    /// Resolves when the task was ended from outside; signals that to its work before the work is dropped.
    async fn wait_cancelled(
        &self,
        key: &TaskKey,
        watch: &mut TaskWatch,
        context: &Context,
    ) -> Result<(), Fault> {
        let over = self.wait_finished(key, watch).await;
        context.canceller().cancel();
        over
    }

    /// Resolves when the task was ended from outside.
    async fn wait_finished(&self, key: &TaskKey, watch: &mut TaskWatch) -> Result<(), Fault> {
        loop {
            match while_unavailable(|| self.store.read(key)).await? {
                Some(record) if !record.task.state.is_terminal() => watch.changed().await,
                _ => return Ok(()),
            }
        }
    }

    async fn wait_for_input(
        &self,
        key: &TaskKey,
        input_requests: Vec<KeyedInputRequest>,
        watch: &mut TaskWatch,
    ) -> Result<AfterInput, Fault> {
        let asked = &input_requests;
        let await_input =
            move |record: &mut TaskRecord, now| record.await_input(asked.clone(), now);
        let parked = while_unavailable(|| self.store.change(key, await_input)).await;
        match parked {
            Ok(TaskChange::Updated(_)) => {}
            Ok(TaskChange::NotFound | TaskChange::Unchanged(_)) => return Ok(AfterInput::Over),
            Err(fault) => return Ok(AfterInput::Refused(fault)),
        }
        loop {
            let read = while_unavailable(|| self.store.read(key)).await?;
            let Some(record) = read else { return Ok(AfterInput::Over) };
            match (&record.task.state, record.refused) {
                (TaskState::InputRequired(_), _) => watch.changed().await,
                (TaskState::Working, Some(reason)) => {
                    return Ok(AfterInput::Refused(Fault::new(FaultKind::InputRefused, reason)));
                }
                (TaskState::Working, None) => return Ok(AfterInput::Answered(record.answers)),
                (TaskState::Ended(_) | TaskState::Cancelled, _) => return Ok(AfterInput::Over),
            }
        }
    }

    /// Ends the task, unless it has ended; an outcome that cannot be stored is replaced by a short fault.
    async fn end(
        &self,
        key: &TaskKey,
        end: TaskOutcome,
        work: Option<RecordGuard>,
    ) -> Result<(), Fault> {
        if let Some(work) = work {
            work.finish(recorded_end(&end));
        }
        let Err(fault) = self.store_end(key, &end).await else { return Ok(()) };
        let told = Fault::new(FaultKind::ToolFailed, fault.detail);
        self.store_end(key, &TaskOutcome::Fault(told)).await
    }

    /// Stores how the task ended. A state that is unavailable gets it later: a task that has ended does not change
    /// again, so repeating a change that may have happened is harmless.
    async fn store_end(&self, key: &TaskKey, end: &TaskOutcome) -> Result<(), Fault> {
        let change = move |record: &mut TaskRecord, now| record.end(end.clone(), now);
        while_unavailable(|| self.store.change(key, change)).await.map(drop)
    }
}

/// Repeats an operation while the state is unavailable. The work on a task has no other end than that of the task.
async fn while_unavailable<T, F: Future<Output = Result<T, Fault>>>(
    mut operation: impl FnMut() -> F,
) -> Result<T, Fault> {
    let mut pause = FIRST_PAUSE;
    loop {
        match operation().await {
            Err(fault) if fault.kind == FaultKind::BackendUnavailable => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            done => return done,
        }
    }
}

/// How the work on a task ended, for its record.
fn recorded_end(end: &TaskOutcome) -> CallOutcome {
    match end {
        TaskOutcome::Result(result) if result.is_error => CallOutcome::ToolError,
        TaskOutcome::Relayed(relayed) if relayed.is_error() => CallOutcome::ToolError,
        TaskOutcome::Result(_) | TaskOutcome::Relayed(_) => CallOutcome::Success,
        TaskOutcome::Fault(fault) => CallOutcome::Fault(fault.kind, fault.foreign_code),
    }
}

fn task_end(outcome: Outcome) -> TaskOutcome {
    match outcome {
        Outcome::Complete(Payload::Tool(result)) => TaskOutcome::Result(result),
        Outcome::Complete(Payload::Relayed(relayed)) => TaskOutcome::Relayed(relayed),
        Outcome::Fail(fault) => TaskOutcome::Fault(fault),
        _ => TaskOutcome::Fault(Fault::new(
            FaultKind::Internal,
            "the handler returned a result that is not a tool result",
        )),
    }
}

/// A key names one input request during the whole life of a task (SEP-2663, task update requests).
fn repeated_key_fault(
    input_requests: &[KeyedInputRequest],
    responses: &ResponsesByKey,
) -> Option<Fault> {
    let again = input_requests.iter().find(|ask| responses.contains_key(&ask.key))?;
    let detail = format!("the input request `{}` was repeated after its response", again.key);
    Some(Fault::new(FaultKind::Internal, detail))
}

/// The events of a task reach no client: its request already has its response, and the extension has neither progress
/// nor log messages (SEP-2663, task status notifications).
struct NoClient;

impl ClientChannel for NoClient {
    fn send_event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request_input(
        &self,
        _: CallKey,
        _: InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(std::future::ready(Err("a task cannot send inline input requests".to_owned())))
    }
}
