//! Tasks: calls that continue after their response and whose result clients fetch later.
//!
//! A tool declares whether it runs as a task ([`TaskSupport`]). If the client can follow tasks, the response to the
//! call is a task with an unguessable id. The tool continues, independently of the connection. Its input requests (see
//! [`crate::input`]) put the task into the state that waits for input. Every change of a task is a change of its
//! record. The worker and the waiting clients watch the record, so they need not be in the same process.

mod claims;
mod create;
mod follow;
mod gauges;
mod inspect;
mod record;
mod requests;
mod store;
#[cfg(test)]
mod tests;
mod work;

use crate::call::announcement::Announcement;
use crate::sync::Mutex;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{TASKS_EXTENSION, TaskOutcome};
use creole_proto::operation::Caller;
use creole_proto::revision::TaskModel as Kind;
use creole_proto::wire::Raw;
use serde_json::json;
use tokio::sync::{Semaphore, broadcast};

pub use creole_proto::model::TaskSupport;
pub use inspect::InspectedTask;

use crate::random;
use crate::random::NoRandomBytes;
use crate::seal::Sealer;
use crate::state::State;
use crate::telemetry::metrics::Metrics;
use claims::InputClaims;
use gauges::TaskGauges;
use inspect::KeptTasks;
use record::TaskRecord;
use store::{TaskKey, TaskStore};

/// Limits on tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskLimits {
    /// Maximum number of tasks per principal, including finished tasks that are still kept.
    pub per_principal: usize,
    /// Maximum number of tasks that this process keeps at the same time.
    pub total: usize,
    /// How long a task is kept after its creation if the client does not request a time.
    pub ttl: Duration,
    /// The shortest time that a client may request; shorter requests are raised to it.
    pub min_ttl: Duration,
    /// The longest time that a client may request; longer requests are lowered to it.
    pub max_ttl: Duration,
    /// The poll interval that is sent to clients.
    pub poll_interval: Duration,
    /// Maximum size of a task's record in bytes: its input requests, input responses and result.
    pub record_bytes: usize,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            per_principal: 100,
            total: 1000,
            ttl: Duration::from_secs(15 * 60),
            min_ttl: Duration::from_secs(1),
            max_ttl: Duration::from_secs(24 * 3600),
            poll_interval: Duration::from_secs(1),
            record_bytes: 512 * 1024,
        }
    }
}

/// The tasks of a server; clones share them.
#[derive(Clone)]
pub(crate) struct Tasks {
    shared: Arc<TaskShared>,
}

struct TaskShared {
    store: TaskStore,
    limits: TaskLimits,
    sealer: Sealer,
    page_size: usize,
    /// Announces changes of tasks to connections.
    changes: broadcast::Sender<Announcement>,
    /// One permit for each task that this process keeps.
    slots: Arc<Semaphore>,
    /// The name of this process among the processes that share the store. `None` if the system has no random bytes.
    /// Then there are no tasks, because processes with the same name would take each other's tasks for their own.
    worker: Option<String>,
    activity: Mutex<WorkerActivity>,
    claims: InputClaims,
    followed: Mutex<HashSet<String>>,
    gauges: TaskGauges,
    kept: KeptTasks,
}

/// How many tasks are being worked on, and whether the heartbeat is running.
#[derive(Default)]
struct WorkerActivity {
    tasks: usize,
    sends_heartbeats: bool,
}

impl Tasks {
    /// Whether other processes may have tasks in the same store.
    pub(crate) fn are_shared(&self) -> bool {
        self.shared.store.is_shared()
    }

    pub(crate) fn new(
        state: State,
        limits: TaskLimits,
        sealer: Sealer,
        page_size: usize,
        changes: broadcast::Sender<Announcement>,
        metrics: Option<&Arc<Metrics>>,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(limits.total.min(Semaphore::MAX_PERMITS)));
        Self {
            shared: Arc::new(TaskShared {
                store: TaskStore::new(state, limits),
                limits,
                sealer,
                page_size,
                changes,
                slots,
                worker: random_id().ok(),
                activity: Mutex::default(),
                claims: InputClaims::default(),
                followed: Mutex::default(),
                gauges: TaskGauges::new(metrics),
                kept: KeptTasks::default(),
            }),
        }
    }
}

impl TaskShared {
    /// The name of this process.
    fn worker(&self) -> Result<&str, Fault> {
        self.worker.as_deref().ok_or_else(|| NoRandomBytes.into())
    }

    /// The current record. A task whose worker has stopped counts as failed, because no process will finish it.
    async fn read_record(&self, key: &TaskKey) -> Result<Option<TaskRecord>, Fault> {
        let Some(record) = self.store.read(key).await? else { return Ok(None) };
        let is_over =
            record.task.state.is_terminal() || Some(&record.worker) == self.worker.as_ref();
        if is_over || self.store.is_working(&record.worker).await? {
            return Ok(Some(record));
        }
        let fault = Fault::new(FaultKind::Internal, "the server that ran the task has ended");
        let end = TaskOutcome::Fault(fault);
        match self.store.change(key, |record, now| record.end(end.clone(), now)).await? {
            store::TaskChange::NotFound => Ok(None),
            store::TaskChange::Unchanged(record) | store::TaskChange::Updated(record) => {
                Ok(Some(*record))
            }
        }
    }

    fn activity(&self) -> MutexGuard<'_, WorkerActivity> {
        self.activity.lock()
    }
}

/// Rejects a caller that did not declare the extension where tasks are one (SEP-2663, protocol errors).
pub(crate) fn check_declared(caller: &Caller) -> Result<(), Fault> {
    let undeclared = caller.rules.tasks == Kind::Extension && !caller.capabilities.tasks;
    let detail = "This needs a client that declares the tasks extension.";
    if undeclared { Err(missing_extension(FaultKind::MissingCapability, detail)) } else { Ok(()) }
}

/// A fault for a client that lacks the extension.
pub(crate) fn missing_extension(kind: FaultKind, detail: impl Into<String>) -> Fault {
    let needed = json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}});
    Fault::new(kind, detail).with_data(Raw::from_value(&needed))
}

/// 128 random bits as text: an unguessable name.
///
/// # Errors
/// When the system has no random bytes. There is no fallback, because a guessable id gives access to what it names.
pub fn random_id() -> Result<String, Fault> {
    Ok(format!("{:032x}", u128::from_be_bytes(random::random_bytes()?)))
}

impl fmt::Debug for Tasks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tasks").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}
