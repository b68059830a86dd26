//! Handles the clients' requests about tasks: their state, result, input responses and cancellation.

use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{KeyedInputRequest, TaskOutcome, TaskState};
use creole_proto::operation::{Operation, Outcome, Payload, TaskPage};
use creole_proto::revision::TaskModel as Kind;
use creole_proto::wire::Raw;
use serde_json::json;

use super::claims::InputClaim;
use super::record::{ResponsesByKey, TaskRecord};
use super::store::{TaskChange, TaskKey, unknown_task};
use super::{TaskShared, Tasks, check_declared};
use crate::call::Context;
use crate::chain::ViewerClass;
use crate::input::{lower_input_request, try_join_all};
use crate::scopes::ScopeDenial;
use crate::seal::cursor::Position;

/// The binding of sealed positions in the list of tasks.
const LIST: &str = "tasks";

impl Tasks {
    /// Handles a request about tasks.
    pub(crate) async fn handle_request(
        &self,
        operation: &Operation,
        context: &Context,
        class: Option<&dyn ViewerClass>,
    ) -> Result<Outcome, Fault> {
        check_declared(context.caller())?;
        let key = |id: &str| TaskKey::new(context.principal().binding(), id);
        if let Some(class) = class
            && !operation.target().is_empty()
        {
            self.check_seen(&key(operation.target()), operation.method(), class).await?;
        }
        if !operation.target().is_empty() {
            self.check_scopes(&key(operation.target()), operation.method(), context).await?;
        }
        let payload = match operation {
            Operation::GetTask { id } => self.status(&key(id)).await?,
            Operation::TaskResult { id } => return self.result(&key(id), context).await,
            Operation::ListTasks(cursor) => self.list(cursor.as_deref(), context, class).await?,
            Operation::UpdateTask { id, responses } => self.update(&key(id), responses).await?,
            Operation::CancelTask { id } => self.cancel(&key(id), context).await?,
            other => {
                return Err(Fault::new(FaultKind::MethodNotFound, "").with_subject(other.method()));
            }
        };
        Ok(Outcome::Complete(payload))
    }

    /// The tasks among these that the caller may follow; their changes are announced from now on.
    pub(crate) async fn follow_tasks(
        &self,
        ids: Vec<String>,
        context: &Context,
        class: Option<&dyn ViewerClass>,
    ) -> Result<Vec<String>, Fault> {
        if ids.is_empty() {
            return Ok(ids);
        }
        check_declared(context.caller())?;
        let mut followed = Vec::new();
        for id in ids.into_iter().take(self.shared.limits.per_principal) {
            let key = TaskKey::new(context.principal().binding(), &id);
            if let Some(class) = class
                && self.check_seen(&key, "tasks/get", class).await.is_err()
            {
                continue;
            }
            if self.check_scopes(&key, "tasks/get", context).await.is_err() {
                continue;
            }
            if self.shared.follow(&key).await {
                followed.push(id);
            }
        }
        Ok(followed)
    }

    /// A task whose tool the caller no longer sees is reported as unknown.
    async fn check_seen(
        &self,
        key: &TaskKey,
        method: &'static str,
        class: &dyn ViewerClass,
    ) -> Result<(), Fault> {
        match self.shared.read_record(key).await? {
            Some(record) if !class.sees_task(method, &record.tool) => Err(unknown_task()),
            _ => Ok(()),
        }
    }

    /// A task needs the scopes of the call that created it. The token may have fewer now.
    async fn check_scopes(
        &self,
        key: &TaskKey,
        method: &'static str,
        context: &Context,
    ) -> Result<(), Fault> {
        let Some(scopes) = context.scopes() else { return Ok(()) };
        let Some(record) = self.shared.read_record(key).await? else { return Ok(()) };
        let checked = scopes.check_task(context.principal(), method, &record.tool);
        checked.map_err(ScopeDenial::into_fault)
    }

    async fn status(&self, key: &TaskKey) -> Result<Payload, Fault> {
        let record = self.shared.read_record(key).await?.ok_or_else(unknown_task)?;
        Ok(Payload::Task(Arc::new(record.task)))
    }

    async fn update(&self, key: &TaskKey, responses: &Raw) -> Result<Payload, Fault> {
        let arguments: ResponsesByKey = responses.decode().map_err(|error| {
            Fault::new(FaultKind::InvalidParams, format!("`inputResponses`: {error}"))
        })?;
        let changed = self
            .shared
            .store
            .change(key, |record, now| record.accept_responses(arguments.clone(), now))
            .await?;
        if changed == TaskChange::NotFound { Err(unknown_task()) } else { Ok(Payload::Empty) }
    }

    /// Cancels a task. The extension acknowledges that also for a finished task. Before it, that is an error, and the
    /// response is the task (2025-11-25 basic/utilities/tasks, task cancellation).
    async fn cancel(&self, key: &TaskKey, context: &Context) -> Result<Payload, Fault> {
        let changed = self.shared.store.change(key, TaskRecord::cancel).await?;
        let acknowledged = context.caller().rules.tasks == Kind::Extension;
        match changed {
            TaskChange::NotFound => Err(unknown_task()),
            TaskChange::Unchanged(_) | TaskChange::Updated(_) if acknowledged => Ok(Payload::Empty),
            TaskChange::Updated(record) => Ok(Payload::Task(Arc::new(record.task))),
            TaskChange::Unchanged(_) => {
                Err(Fault::new(FaultKind::TaskOver, "it has already ended"))
            }
        }
    }

    /// One page of the caller's tasks, oldest first.
    async fn list(
        &self,
        cursor: Option<&str>,
        context: &Context,
        class: Option<&dyn ViewerClass>,
    ) -> Result<Payload, Fault> {
        let shared = &self.shared;
        let (sealer, principal) = (&shared.sealer, context.principal().binding());
        let after = match cursor {
            None => None,
            Some(text) => Some(Position::open(text, sealer, principal, LIST).ok_or_else(|| {
                let detail = "`cursor` was not issued by this server";
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
            let record = shared.read_record(&TaskKey::new(principal, id)).await?;
            let is_seen = |record: &TaskRecord| {
                class.is_none_or(|class| class.sees_task("tasks/get", &record.tool))
            };
            if let Some(record) = record.filter(is_seen) {
                tasks.push(Arc::new(record.task));
            }
        }
        Ok(Payload::Tasks(TaskPage { tasks, next }))
    }

    /// Waits until the task is over and returns the outcome of its call. Meanwhile its input requests are sent as
    /// requests of the server, on behalf of this request (2025-11-25 basic/utilities/tasks, input required).
    async fn result(&self, key: &TaskKey, context: &Context) -> Result<Outcome, Fault> {
        let mut watch = self.shared.store.watch(key).await?;
        loop {
            // Registered before the record is read, so that a claim that is released in between is noticed.
            let freed = self.shared.claims.released();
            let record = self.shared.read_record(key).await?.ok_or_else(unknown_task)?;
            match record.task.state {
                TaskState::Ended(TaskOutcome::Result(result)) => {
                    return Ok(Outcome::Complete(Payload::Tool(result)));
                }
                TaskState::Ended(TaskOutcome::Relayed(relayed)) => {
                    return Ok(Outcome::Complete(Payload::Relayed(relayed)));
                }
                TaskState::Ended(TaskOutcome::Fault(fault)) => return Err(fault),
                TaskState::Cancelled => return Err(cancelled_fault()),
                TaskState::InputRequired(input_requests) => {
                    let claimed = self.shared.claim_requests(key, input_requests, context);
                    if !claimed.is_empty() {
                        self.shared.request_inputs(key, claimed, context).await?;
                        continue;
                    }
                }
                TaskState::Working => {}
            }
            tokio::select! {
                () = watch.changed() => {}
                () = freed => {}
            }
        }
    }
}

impl TaskShared {
    /// The input requests that this client supports and that are not claimed.
    fn claim_requests(
        &self,
        key: &TaskKey,
        input_requests: Vec<KeyedInputRequest>,
        context: &Context,
    ) -> Vec<(InputClaim<'_>, KeyedInputRequest)> {
        let caller = context.caller();
        let can = |ask: &KeyedInputRequest| {
            ask.question.is_allowed_by(&caller.capabilities)
                && ask.question.is_supported_by(caller.rules)
        };
        let claim = |ask: KeyedInputRequest| Some((self.claims.claim(key.id(), &ask.key)?, ask));
        input_requests.into_iter().filter(can).filter_map(claim).collect()
    }

    /// Sends all of these together, in their order, until each has its response or one is refused.
    async fn request_inputs(
        &self,
        key: &TaskKey,
        claimed: Vec<(InputClaim<'_>, KeyedInputRequest)>,
        context: &Context,
    ) -> Result<(), Fault> {
        let asking = claimed.into_iter().map(|(claim, ask)| {
            Box::pin(async move {
                let asked = self.request_input(key, ask, context).await;
                drop(claim);
                asked
            })
        });
        match try_join_all(asking.collect()).await {
            Ok(_) | Err(InputFailure::Refused) => Ok(()),
            Err(InputFailure::Broken(fault)) => Err(fault),
        }
    }

    async fn request_input(
        &self,
        key: &TaskKey,
        ask: KeyedInputRequest,
        context: &Context,
    ) -> Result<(), InputFailure> {
        let (input_request, form) = lower_input_request(ask.question, context.caller().rules);
        let result = context.send_input_request(input_request).await;
        match result {
            Ok(response) => {
                let response =
                    form.map_or_else(|| response.clone(), |form| form.raise_response(&response));
                let arguments = ResponsesByKey::from([(ask.key, response)]);
                self.store
                    .change(key, |record, now| record.accept_responses(arguments.clone(), now))
                    .await?;
                Ok(())
            }
            Err(reason) => {
                self.store.change(key, |record, now| record.decline_input(&reason, now)).await?;
                Err(InputFailure::Refused)
            }
        }
    }
}

/// Why no more input is requested.
enum InputFailure {
    Refused,
    Broken(Fault),
}

impl From<Fault> for InputFailure {
    fn from(fault: Fault) -> Self {
        Self::Broken(fault)
    }
}

/// The index after the last task of the previous page; if that task was removed, its former position.
fn resume(ids: &[String], position: &Position) -> usize {
    let index = ids.iter().position(|id| *id == position.after).map(|index| index + 1);
    index.unwrap_or_else(|| position.index.saturating_sub(1)).min(ids.len())
}

fn cancelled_fault() -> Fault {
    let data = Raw::from_value(&json!({"reason": "cancelled"}));
    Fault::new(FaultKind::TaskCancelled, "the task has no result").with_data(data)
}
