//! Turns a call into a task.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Task, TaskPreference, TaskState};
use creole_proto::operation::{Outcome, Payload};
use creole_proto::revision::TaskModel as Kind;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::record::{ResponsesByKey, TaskRecord};
use super::store::{HEARTBEAT, HEARTBEAT_TTL, TaskKey};
use super::work::{RunCall, TaskJob};
use super::{TaskShared, Tasks, random_id};
use crate::call::{Call, Round};
use crate::input;

impl Tasks {
    /// Creates a task for a call: it is stored before the response is sent (SEP-2663, task creation).
    pub(crate) async fn create(&self, call: Call, run: RunCall) -> Outcome {
        match self.start(call, run).await {
            Ok(task) => Outcome::Complete(Payload::TaskCreated(Arc::new(task))),
            Err(fault) => fault.into(),
        }
    }

    async fn start(&self, call: Call, run: RunCall) -> Result<Task, Fault> {
        let shared = &self.shared;
        let round = input::open_round(&call, &shared.sealer)?;
        // The call's own request state, if it requested to become a task, is newer than the client's.
        let state = call.context.request_state().map(str::to_owned).or(round.state);
        let slot = Arc::clone(&shared.slots).try_acquire_owned().map_err(|_| {
            let max = shared.limits.total;
            Fault::new(
                FaultKind::Busy,
                format!("the limit of {max} tasks is reached; try again later"),
            )
        })?;
        let record = shared.record(&call, round.answers)?;
        let principal = Arc::clone(call.context.principal().binding());
        let key = TaskKey::new(&principal, &record.task.id);
        let expires = Instant::now() + Duration::from_millis(record.task.ttl_ms);
        let (created, is_created) = oneshot::channel();
        let shared = Arc::clone(shared);
        // In its own tokio task from the start: a request that is dropped meanwhile leaves no partial state.
        tokio::spawn(async move {
            let working = shared.count_working();
            let counted = shared.gauges.count(&record.task.state);
            let task = record.task.clone();
            let is_followed = call.context.caller().rules.tasks == Kind::ClientRequested;
            if let Err(fault) = shared.store_record(&principal, &record).await {
                _ = created.send(Err(fault));
                return;
            }
            if is_followed {
                shared.follow(&key).await;
            }
            let _kept = shared.keep(&key, &call);
            if created.send(Ok(task)).is_err() {
                // No client has the task's id, so none would poll it.
                shared.remove_task(&key).await;
                return;
            }
            let round = Round { answers: record.answers, state, ..Round::default() };
            let job = TaskJob { call, run, key: key.clone(), round };
            shared.run_until(job, expires).await;
            drop(working);
            drop(counted);
            let ended = shared.store.read(&key).await.ok().flatten();
            let _counted = ended.and_then(|record| shared.gauges.count(&record.task.state));
            tokio::time::sleep_until(expires).await;
            shared.remove_task(&key).await;
            drop(slot);
        });
        is_created.await.unwrap_or_else(|_| {
            Err(Fault::new(FaultKind::Internal, "the task could not be started"))
        })
    }
}

impl TaskShared {
    fn record(&self, call: &Call, responses: ResponsesByKey) -> Result<TaskRecord, Fault> {
        let now = self.store.now_ms();
        let task = Task {
            id: random_id()?,
            state: TaskState::Working,
            message: None,
            created_ms: now,
            updated_ms: now,
            ttl_ms: self.ttl_ms(call.context.caller().task_preference),
            poll_ms: milliseconds(self.limits.poll_interval),
        };
        Ok(TaskRecord {
            task,
            answers: responses,
            refused: None,
            worker: self.worker()?.to_owned(),
            tool: call.operation.target().to_owned(),
        })
    }

    /// How long a task is kept: the client's request, within the limits.
    fn ttl_ms(&self, tasking: TaskPreference) -> u64 {
        let limits = &self.limits;
        let requested = match tasking {
            TaskPreference::Requested { ttl_ms: Some(requested) } => requested,
            _ => milliseconds(limits.ttl),
        };
        let shortest = milliseconds(limits.min_ttl);
        requested.clamp(shortest, milliseconds(limits.max_ttl).max(shortest))
    }

    async fn store_record(&self, principal: &str, record: &TaskRecord) -> Result<(), Fault> {
        self.store.write_heartbeat(self.worker()?, HEARTBEAT_TTL).await?;
        self.store.create(principal, record).await
    }

    /// Removes a task that is expired or unknown to its owner.
    async fn remove_task(&self, key: &TaskKey) {
        if let Err(fault) = self.store.remove(key).await {
            // The record expires.
            tracing::warn!(target: "creole", task = key.id(), reason = fault.detail, "cannot remove a task");
        }
    }

    /// Counts a task that is being worked on; while there is one, the heartbeat runs.
    fn count_working(self: &Arc<Self>) -> WorkingTask {
        let mut busy = self.activity();
        busy.tasks += 1;
        if !busy.sends_heartbeats {
            busy.sends_heartbeats = true;
            tokio::spawn(Arc::clone(self).send_heartbeats());
        }
        WorkingTask(Arc::clone(self))
    }

    async fn send_heartbeats(self: Arc<Self>) {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            {
                let mut busy = self.activity();
                if busy.tasks == 0 {
                    busy.sends_heartbeats = false;
                    return;
                }
            }
            let Ok(worker) = self.worker() else { return };
            if let Err(fault) = self.store.write_heartbeat(worker, HEARTBEAT_TTL).await {
                tracing::warn!(target: "creole", reason = fault.detail, "cannot write the heartbeat for tasks");
            }
        }
    }
}

/// One task that is being worked on.
struct WorkingTask(Arc<TaskShared>);

impl Drop for WorkingTask {
    fn drop(&mut self) {
        self.0.activity().tasks -= 1;
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
