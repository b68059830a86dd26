//! How a call becomes a task.

use std::sync::Arc;
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Task, TaskPreference, TaskState};
use creole_proto::operation::{Outcome, Payload};
use creole_proto::revision::TaskModel as Kind;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::record::{Answers, Record};
use super::store::{TaskKey, now_ms};
use super::work::{Job, Run};
use super::{Shared, Tasks, random_id};
use crate::ask;
use crate::call::{Call, Round};

/// How often others are told that we are alive, and how long they believe it.
const BEAT: Duration = Duration::from_secs(20);
const BELIEVED: Duration = Duration::from_secs(90);

impl Tasks {
    /// Makes a task of a call: it is kept before the answer goes out (SEP-2663, task creation).
    pub(crate) async fn make(&self, call: Call, run: Run) -> Outcome {
        match self.start(call, run).await {
            Ok(task) => Outcome::Complete(Payload::TaskCreated(Arc::new(task))),
            Err(fault) => fault.into(),
        }
    }

    async fn start(&self, call: Call, run: Run) -> Result<Task, Fault> {
        let shared = &self.shared;
        let round = ask::opened(&call, &shared.sealer)?;
        // What the call itself kept when it asked to go on as a task is newer than what the client brought.
        let state = call.context.state().map(str::to_owned).or(round.state);
        let slot = Arc::clone(&shared.slots).try_acquire_owned().map_err(|_| {
            let most = shared.limits.total;
            Fault::new(FaultKind::Busy, format!("there are {most} tasks, the most allowed"))
        })?;
        let record = shared.record(&call, round.answers)?;
        let principal = call.context.principal().to_owned();
        let key = TaskKey::new(&principal, &record.task.id);
        let expires = Instant::now() + Duration::from_millis(record.task.ttl_ms);
        let (created, is_created) = oneshot::channel();
        let shared = Arc::clone(shared);
        // A task of its own from the start: a request that is dropped meanwhile leaves nothing half-made.
        tokio::spawn(async move {
            let working = shared.working();
            let task = record.task.clone();
            let is_followed = call.context.caller().rules.tasks == Kind::ClientRequested;
            if let Err(fault) = shared.keep(&principal, &record).await {
                _ = created.send(Err(fault));
                return;
            }
            if is_followed {
                shared.follow(&key).await;
            }
            if created.send(Ok(task)).is_err() {
                // Nobody knows of the task, so nobody would come back for it.
                shared.forget(&key).await;
                return;
            }
            let round = Round { answers: record.answers, state };
            let job = Job { call, run, key: key.clone(), round };
            shared.work_until(job, expires).await;
            drop(working);
            tokio::time::sleep_until(expires).await;
            shared.forget(&key).await;
            drop(slot);
        });
        is_created.await.unwrap_or_else(|_| {
            Err(Fault::new(FaultKind::Internal, "the task could not be started"))
        })
    }
}

impl Shared {
    fn record(&self, call: &Call, answers: Answers) -> Result<Record, Fault> {
        let now = now_ms();
        let task = Task {
            id: random_id()?,
            state: TaskState::Working,
            message: None,
            created_ms: now,
            updated_ms: now,
            ttl_ms: self.ttl_ms(call.context.caller().task_preference),
            poll_ms: milliseconds(self.limits.poll),
        };
        Ok(Record { task, answers, refused: None, worker: self.worker()?.to_owned() })
    }

    /// How long a task is kept: what the client wishes, within limits.
    fn ttl_ms(&self, tasking: TaskPreference) -> u64 {
        let limits = &self.limits;
        let wish = match tasking {
            TaskPreference::Requested { ttl_ms: Some(wish) } => wish,
            _ => milliseconds(limits.ttl),
        };
        let shortest = milliseconds(limits.shortest_ttl);
        wish.clamp(shortest, milliseconds(limits.longest_ttl).max(shortest))
    }

    async fn keep(&self, principal: &str, record: &Record) -> Result<(), Fault> {
        self.store.beat(self.worker()?, BELIEVED).await?;
        self.store.create(principal, record).await
    }

    /// Takes a task away that is expired or unknown to its owner.
    async fn forget(&self, key: &TaskKey) {
        if let Err(fault) = self.store.remove(key).await {
            // The store forgets it by itself when its time is over.
            tracing::warn!(target: "creole", task = key.id(), reason = fault.detail, "task not removed");
        }
    }

    /// Counts a task that is worked on; while there is one, others are told that we are alive.
    fn working(self: &Arc<Self>) -> Working {
        let mut busy = self.busy();
        busy.tasks += 1;
        if !busy.beating {
            busy.beating = true;
            tokio::spawn(Arc::clone(self).beat());
        }
        Working(Arc::clone(self))
    }

    async fn beat(self: Arc<Self>) {
        loop {
            tokio::time::sleep(BEAT).await;
            {
                let mut busy = self.busy();
                if busy.tasks == 0 {
                    busy.beating = false;
                    return;
                }
            }
            let Ok(worker) = self.worker() else { return };
            if let Err(fault) = self.store.beat(worker, BELIEVED).await {
                tracing::warn!(target: "creole", reason = fault.detail, "no sign of life for tasks");
            }
        }
    }
}

/// One task that is worked on.
struct Working(Arc<Shared>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.busy().tasks -= 1;
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
