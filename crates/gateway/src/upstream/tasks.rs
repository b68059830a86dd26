//! Tasks of other servers, followed to their end for callers who know nothing of them.

mod abandon;

use std::sync::Arc;
use std::time::Duration;

use creole::call::Context;
use creole::input::missing_capability;
use creole::proto::client::CallRequest;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{
    ClientCapabilities, KeyedInputRequest, Task, TaskOutcome, TaskPreference, TaskState,
};
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::TaskModel;
use creole::proto::wire::Raw;
use tokio::time::sleep;

use abandon::Abandon;

use super::kept::Kept;
use super::park::{self, Beginning, Parking};
use super::pool::Lease;
use super::{relay, terms};

/// Between two looks at a task, at the least and at the most.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Follows a task of a server to its end.
pub(super) struct Follower<'a> {
    pub(super) parking: &'a Arc<Parking>,
    /// The conversation that the task belongs to.
    pub(super) lease: Lease,
    pub(super) context: &'a Context,
    pub(super) capabilities: &'a Arc<ClientCapabilities>,
    /// Whether nobody else finds that conversation, so that the task ends with whoever follows it.
    pub(super) is_bound: bool,
}

impl Follower<'_> {
    /// What comes of a call that the server made a task of: a task here too, where the caller follows tasks.
    pub(super) async fn adopt(self, task: &Task) -> Outcome {
        let goes_on = self.context.caller().task_preference != TaskPreference::Never
            && !self.context.is_task();
        match goes_on && !self.is_bound {
            true => Outcome::Detach(Some(self.kept(&task.id))),
            // Answers that the caller came back with were for the call.
            false => self.attend(&task.id).await,
        }
    }

    /// Goes on with a task: the answers that the caller came back with are for it.
    pub(super) async fn follow(self, id: &str) -> Outcome {
        if self.context.input_responses().next().is_some()
            && let Err(fault) = self.answer(id).await
        {
            return fault.into();
        }
        self.attend(id).await
    }

    /// Stays with the task until it is over, or asks; a caller that cancels has it cancelled.
    async fn attend(self, id: &str) -> Outcome {
        let cancellation = self.asking(Operation::CancelTask { id: id.to_owned() });
        let connection = self.lease.connection.clone();
        let abandon = Abandon::new(connection, self.context.clone(), cancellation);
        let outcome = self.look_until_over(id).await;
        abandon.disarm();
        outcome
    }

    async fn look_until_over(self, id: &str) -> Outcome {
        loop {
            let task = match self.look(id).await {
                Ok(task) => task,
                Err(fault) => return fault.into(),
            };
            if self.fetches_results(&task) {
                return self.result(id).await;
            }
            match &task.state {
                TaskState::Working => {}
                TaskState::InputRequired(asks) if asks.is_empty() => {}
                TaskState::InputRequired(asks) => return self.ask(id, asks.clone()),
                TaskState::Cancelled => {
                    let detail = "the server cancelled it";
                    return Fault::new(FaultKind::TaskCancelled, detail).into();
                }
                TaskState::Ended(TaskOutcome::Relayed(result)) => {
                    return Outcome::Complete(Payload::Relayed(result.clone()));
                }
                TaskState::Ended(TaskOutcome::Result(result)) => {
                    return Outcome::Complete(Payload::Tool(result.clone()));
                }
                TaskState::Ended(TaskOutcome::Fault(fault)) => return fault.clone().into(),
            }
            sleep(Duration::from_millis(task.poll_ms).clamp(SHORTEST, LONGEST)).await;
        }
    }

    async fn look(&self, id: &str) -> Result<Arc<Task>, Fault> {
        let id = id.to_owned();
        match self.request(Operation::GetTask { id }).await {
            Outcome::Complete(Payload::Task(task)) => Ok(task),
            Outcome::Fail(fault) => Err(fault),
            _ => Err(super::broken("the server does not know its own task")),
        }
    }

    /// Whether what the task came to, or asks, has to be fetched by a request of its own.
    fn fetches_results(&self, task: &Task) -> bool {
        let asks_inline =
            self.lease.connection.greeting().rules.tasks == TaskModel::ClientRequested;
        asks_inline && !matches!(task.state, TaskState::Working | TaskState::Cancelled)
    }

    /// What the task's call came to. Questions on the way reach the caller as those of any call do.
    async fn result(mut self, id: &str) -> Outcome {
        let operation = Operation::TaskResult { id: id.to_owned() };
        let rules = self.lease.connection.greeting().rules;
        let mut request = terms::request(
            operation,
            self.context,
            self.capabilities,
            TaskPreference::Never,
            rules,
        );
        request.options.input_responses = None;
        if park::is_needed(self.context, &self.lease, self.capabilities) {
            let beginning = Beginning {
                request,
                mirrors: Arc::default(),
                answered: Vec::new(),
                may_repeat: false,
            };
            return self.parking.follow(beginning, self.lease, self.context).await;
        }
        let mut calling = self.lease.connection.start_call(request);
        relay::follow(&mut calling, &mut self.lease, self.context).await
    }

    /// Leaves with what the task asks. Whoever can be asked while it waits is asked by [`creole::input`], which then
    /// calls again.
    fn ask(&self, id: &str, asks: Vec<KeyedInputRequest>) -> Outcome {
        let is_missing = |ask: &&KeyedInputRequest| !ask.question.is_allowed_by(self.capabilities);
        let missing: Vec<_> = asks.iter().filter(is_missing).map(|ask| &ask.question).collect();
        match missing.is_empty() {
            true => Outcome::InputRequired { requests: asks, request_state: Some(self.kept(id)) },
            false => missing_capability(&missing).into(),
        }
    }

    fn kept(&self, id: &str) -> String {
        Kept::Task { id: id.to_owned(), lane: self.lease.lane }.text()
    }

    /// Hands over the answers that the caller came back with.
    async fn answer(&self, id: &str) -> Result<(), Fault> {
        let answers: std::collections::BTreeMap<_, _> = self.context.input_responses().collect();
        self.update(id, Raw::from_value(&answers)).await
    }

    async fn update(&self, id: &str, answers: Raw) -> Result<(), Fault> {
        let id = id.to_owned();
        match self.request(Operation::UpdateTask { id, responses: answers }).await {
            Outcome::Fail(fault) => Err(fault),
            _ => Ok(()),
        }
    }

    async fn request(&self, operation: Operation) -> Outcome {
        self.lease.connection.call_without_input(self.asking(operation)).await
    }

    fn asking(&self, operation: Operation) -> CallRequest {
        let tasking = TaskPreference::Allowed;
        let (context, rules) = (self.context, self.lease.connection.greeting().rules);
        let mut request = terms::request(operation, context, self.capabilities, tasking, rules);
        request.options.input_responses = None;
        request
    }
}
