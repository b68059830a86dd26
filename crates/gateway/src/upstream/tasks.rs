//! Tasks of other servers, followed to their end for callers who know nothing of them.

use std::sync::Arc;
use std::time::Duration;

use creole::call::Context;
use creole::client::Connection;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{Ask, ClientCapabilities, Task, TaskEnd, TaskState, Tasking};
use creole::proto::op::{Operation, Outcome, Payload};
use creole::proto::revision::{Asking, Tasks};
use creole::proto::wire::Raw;
use tokio::time::sleep;

use super::kept::Kept;
use super::terms;

/// Between two looks at a task, at the least and at the most.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Follows a task of a server to its end.
pub(super) struct Follower<'a> {
    pub(super) connection: &'a Connection,
    pub(super) context: &'a Context,
    pub(super) capabilities: &'a Arc<ClientCapabilities>,
}

impl Follower<'_> {
    /// What comes of a call that the server made a task of: a task here too, where the caller follows tasks.
    pub(super) async fn adopt(&self, task: &Task) -> Outcome {
        let goes_on = self.context.caller().tasking != Tasking::Never && !self.context.is_task();
        match goes_on {
            true => Outcome::Detach(Some(Kept::Task(task.id.clone()).text())),
            false => self.follow(&task.id).await,
        }
    }

    /// Looks at the task until it is over.
    pub(super) async fn follow(&self, id: &str) -> Outcome {
        if self.context.answers().next().is_some()
            && let Err(fault) = self.answer(id).await
        {
            return fault.into();
        }
        loop {
            let task = match self.look(id).await {
                Ok(task) => task,
                Err(fault) => return fault.into(),
            };
            match &task.state {
                TaskState::Working => {}
                TaskState::InputRequired(asks) if asks.is_empty() => {}
                TaskState::InputRequired(asks) => match self.ask(id, asks.clone()).await {
                    Ok(()) => continue,
                    Err(outcome) => return *outcome,
                },
                TaskState::Cancelled => {
                    let detail = "the server cancelled it";
                    return Fault::new(FaultKind::TaskCancelled, detail).into();
                }
                TaskState::Ended(TaskEnd::Relayed(result)) => {
                    return Outcome::Complete(Payload::Relayed(result.clone()));
                }
                TaskState::Ended(TaskEnd::Result(result)) => {
                    return Outcome::Complete(Payload::Tool(result.clone()));
                }
                TaskState::Ended(TaskEnd::Fault(fault)) => return fault.clone().into(),
            }
            sleep(Duration::from_millis(task.poll_ms).clamp(SHORTEST, LONGEST)).await;
        }
    }

    async fn look(&self, id: &str) -> Result<Arc<Task>, Fault> {
        let id = id.to_owned();
        match self.request(Operation::GetTask { id }).await {
            Outcome::Complete(Payload::Task(task)) if self.fetches_results(&task) => {
                self.result(&task).await
            }
            Outcome::Complete(Payload::Task(task)) => Ok(task),
            Outcome::Fail(fault) => Err(fault),
            _ => Err(super::broken("the server does not know its own task")),
        }
    }

    /// Whether what the task came to, or asks, has to be fetched by a request of its own.
    fn fetches_results(&self, task: &Task) -> bool {
        let asks_inline = self.connection.greeting().rules.tasks == Tasks::Wanted;
        asks_inline && !matches!(task.state, TaskState::Working | TaskState::Cancelled)
    }

    /// The task with what its call came to. Questions on the way reach the caller as those of any call do.
    async fn result(&self, task: &Task) -> Result<Arc<Task>, Fault> {
        let operation = Operation::TaskResult { id: task.id.clone() };
        let request = terms::request(operation, self.context, self.capabilities, Tasking::Never);
        let context = self.context.clone();
        let mut asked = tokio::task::JoinSet::new();
        let outcome = self
            .connection
            .call(request, |news| {
                if let creole::client::News::Asked(question) = news {
                    let context = context.clone();
                    asked.spawn(async move {
                        let answer = context.ask(question.question).await;
                        let refused = creole::proto::client::Refusal::declined;
                        question.reply.answer(answer.map_err(refused));
                    });
                }
            })
            .await;
        let end = match outcome {
            Outcome::Complete(Payload::Relayed(result)) => TaskEnd::Relayed(result),
            Outcome::Fail(fault) => TaskEnd::Fault(fault),
            _ => return Err(super::broken("the server gave no result of its task")),
        };
        Ok(Arc::new(Task { state: TaskState::Ended(end), ..task.clone() }))
    }

    /// Asks the caller what the task asks.
    async fn ask(&self, id: &str, asks: Vec<Ask>) -> Result<(), Box<Outcome>> {
        if self.context.caller().rules.asking == Asking::Reentrant {
            let state = Some(Kept::Task(id.to_owned()).text());
            return Err(Box::new(Outcome::NeedInput { asks, state }));
        }
        let mut answers = std::collections::BTreeMap::new();
        for ask in asks {
            let refused = |reason| Box::new(Fault::new(FaultKind::InputRefused, reason).into());
            answers.insert(ask.key, self.context.ask(ask.question).await.map_err(refused)?);
        }
        self.update(id, Raw::of(&answers)).await.map_err(|fault| Box::new(fault.into()))
    }

    /// Hands over the answers that the caller came back with.
    async fn answer(&self, id: &str) -> Result<(), Fault> {
        let answers: std::collections::BTreeMap<_, _> = self.context.answers().collect();
        self.update(id, Raw::of(&answers)).await
    }

    async fn update(&self, id: &str, answers: Raw) -> Result<(), Fault> {
        let id = id.to_owned();
        match self.request(Operation::UpdateTask { id, answers }).await {
            Outcome::Fail(fault) => Err(fault),
            _ => Ok(()),
        }
    }

    async fn request(&self, operation: Operation) -> Outcome {
        let tasking = Tasking::Allowed;
        let mut request = terms::request(operation, self.context, self.capabilities, tasking);
        request.terms.reentry = None;
        self.connection.ask(request).await
    }
}
