//! What clients ask of tasks: how they stand, what they came to, answers for them, and their end.

use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{KeyedInputRequest, TaskOutcome, TaskState};
use creole_proto::operation::{Operation, Outcome, Payload, TaskPage};
use creole_proto::revision::TaskModel as Kind;
use creole_proto::wire::Raw;
use serde_json::json;

use super::claims::Claim;
use super::record::{Answers, Record};
use super::store::{Changed, TaskKey, unknown_task};
use super::{Shared, Tasks, check_declared};
use crate::ask::{lowered, together};
use crate::call::Context;
use crate::cursor::Position;

/// What positions in the list of tasks are sealed for.
const LIST: &str = "tasks";

impl Tasks {
    /// Answers a request about tasks.
    pub(crate) async fn answer(
        &self,
        operation: &Operation,
        context: &Context,
    ) -> Result<Outcome, Fault> {
        check_declared(context.caller())?;
        let key = |id: &str| TaskKey::new(context.principal(), id);
        let payload = match operation {
            Operation::GetTask { id } => self.stands(&key(id)).await?,
            Operation::TaskResult { id } => return self.result(&key(id), context).await,
            Operation::ListTasks(cursor) => self.list(cursor.as_deref(), context).await?,
            Operation::UpdateTask { id, responses: answers } => {
                self.update(&key(id), answers).await?
            }
            Operation::CancelTask { id } => self.cancel(&key(id), context).await?,
            other => {
                return Err(Fault::new(FaultKind::MethodNotFound, "").with_subject(other.method()));
            }
        };
        Ok(Outcome::Complete(payload))
    }

    /// The tasks among these that the caller may follow; their news are told from now on.
    pub(crate) async fn followed(
        &self,
        ids: Vec<String>,
        context: &Context,
    ) -> Result<Vec<String>, Fault> {
        if ids.is_empty() {
            return Ok(ids);
        }
        check_declared(context.caller())?;
        let mut followed = Vec::new();
        for id in ids.into_iter().take(self.shared.limits.per_principal) {
            if self.shared.follow(&TaskKey::new(context.principal(), &id)).await {
                followed.push(id);
            }
        }
        Ok(followed)
    }

    async fn stands(&self, key: &TaskKey) -> Result<Payload, Fault> {
        let record = self.shared.look(key).await?.ok_or_else(unknown_task)?;
        Ok(Payload::Task(Arc::new(record.task)))
    }

    async fn update(&self, key: &TaskKey, answers: &Raw) -> Result<Payload, Fault> {
        let given: Answers = answers.decode().map_err(|error| {
            Fault::new(FaultKind::InvalidParams, format!("`inputResponses`: {error}"))
        })?;
        let changed =
            self.shared.store.change(key, |record, now| record.answer(given.clone(), now)).await?;
        if changed == Changed::Gone { Err(unknown_task()) } else { Ok(Payload::Empty) }
    }

    /// Cancels a task. The extension acknowledges that also when the task is over; before it that is an error,
    /// and the answer is the task (2025-11-25 basic/utilities/tasks, task cancellation).
    async fn cancel(&self, key: &TaskKey, context: &Context) -> Result<Payload, Fault> {
        let changed = self.shared.store.change(key, Record::cancel).await?;
        let acknowledged = context.caller().rules.tasks == Kind::Extension;
        match changed {
            Changed::Gone => Err(unknown_task()),
            Changed::Not(_) | Changed::To(_) if acknowledged => Ok(Payload::Empty),
            Changed::To(record) => Ok(Payload::Task(Arc::new(record.task))),
            Changed::Not(_) => Err(Fault::new(FaultKind::TaskOver, "it is over already")),
        }
    }

    /// One page of the caller's tasks, oldest first.
    async fn list(&self, cursor: Option<&str>, context: &Context) -> Result<Payload, Fault> {
        let shared = &self.shared;
        let (sealer, principal) = (&shared.sealer, context.principal());
        let after = match cursor {
            None => None,
            Some(text) => Some(Position::open(text, sealer, principal, LIST).ok_or_else(|| {
                let detail = "`cursor` is not one that this server gave out";
                Fault::new(FaultKind::InvalidParams, detail)
            })?),
        };
        let ids = shared.store.list(principal).await?;
        let start = after.map_or(0, |position| resume(&ids, &position));
        let (mut tasks, mut next) = (Vec::new(), None);
        for (index, id) in ids.iter().enumerate().skip(start) {
            if tasks.len() == shared.page_size {
                let after = ids[index - 1].clone();
                next = Some(Position { index, after }.seal(sealer, principal, LIST));
                break;
            }
            if let Some(record) = shared.look(&TaskKey::new(principal, id)).await? {
                tasks.push(Arc::new(record.task));
            }
        }
        Ok(Payload::Tasks(TaskPage { tasks, next }))
    }

    /// Waits until the task is over and gives what its call came to. Meanwhile its questions are asked as
    /// requests of the server, on behalf of this one (2025-11-25 basic/utilities/tasks, input required).
    async fn result(&self, key: &TaskKey, context: &Context) -> Result<Outcome, Fault> {
        let mut news = self.shared.store.watch(key).await?;
        loop {
            // Registered before the record is read, so that a claim that ends in between is noticed.
            let freed = self.shared.claims.freed();
            let record = self.shared.look(key).await?.ok_or_else(unknown_task)?;
            match record.task.state {
                TaskState::Ended(TaskOutcome::Result(result)) => {
                    return Ok(Outcome::Complete(Payload::Tool(result)));
                }
                TaskState::Ended(TaskOutcome::Relayed(relayed)) => {
                    return Ok(Outcome::Complete(Payload::Relayed(relayed)));
                }
                TaskState::Ended(TaskOutcome::Fault(fault)) => return Err(fault),
                TaskState::Cancelled => return Err(cancelled()),
                TaskState::InputRequired(asks) => {
                    let claimed = self.shared.claimed(key, asks, context);
                    if !claimed.is_empty() {
                        self.shared.ask_all(key, claimed, context).await?;
                        continue;
                    }
                }
                TaskState::Working => {}
            }
            tokio::select! {
                () = news.changed() => {}
                () = freed => {}
            }
        }
    }
}

impl Shared {
    /// The questions that this client can be asked and nobody else asks.
    fn claimed(
        &self,
        key: &TaskKey,
        asks: Vec<KeyedInputRequest>,
        context: &Context,
    ) -> Vec<(Claim<'_>, KeyedInputRequest)> {
        let caller = context.caller();
        let can = |ask: &KeyedInputRequest| {
            ask.question.is_allowed_by(&caller.capabilities)
                && ask.question.is_supported_by(caller.rules)
        };
        let claim = |ask: KeyedInputRequest| Some((self.claims.claim(key.id(), &ask.key)?, ask));
        asks.into_iter().filter(can).filter_map(claim).collect()
    }

    /// Asks all of these together, in their order, until each is answered or one is refused.
    async fn ask_all(
        &self,
        key: &TaskKey,
        claimed: Vec<(Claim<'_>, KeyedInputRequest)>,
        context: &Context,
    ) -> Result<(), Fault> {
        let asking = claimed.into_iter().map(|(claim, ask)| {
            Box::pin(async move {
                let asked = self.ask(key, ask, context).await;
                drop(claim);
                asked
            })
        });
        match together(asking.collect()).await {
            Ok(_) | Err(Stopped::Refused) => Ok(()),
            Err(Stopped::Broken(fault)) => Err(fault),
        }
    }

    async fn ask(
        &self,
        key: &TaskKey,
        ask: KeyedInputRequest,
        context: &Context,
    ) -> Result<(), Stopped> {
        let (question, form) = lowered(ask.question, context.caller().rules);
        let answered = context.ask_now(question).await;
        match answered {
            Ok(answer) => {
                let answer =
                    form.map_or_else(|| answer.clone(), |form| form.raise_response(&answer));
                let given = Answers::from([(ask.key, answer)]);
                self.store.change(key, |record, now| record.answer(given.clone(), now)).await?;
                Ok(())
            }
            Err(reason) => {
                self.store.change(key, |record, now| record.refuse(&reason, now)).await?;
                Err(Stopped::Refused)
            }
        }
    }
}

/// Why no more is asked.
enum Stopped {
    Refused,
    Broken(Fault),
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        Self::Broken(fault)
    }
}

/// Right after the task that ended the page before; if it is gone, where it was.
fn resume(ids: &[String], position: &Position) -> usize {
    let place = ids.iter().position(|id| *id == position.after).map(|place| place + 1);
    place.unwrap_or_else(|| position.index.saturating_sub(1)).min(ids.len())
}

fn cancelled() -> Fault {
    let data = Raw::from_value(&json!({"reason": "cancelled"}));
    Fault::new(FaultKind::TaskCancelled, "there is no result").with_data(data)
}
