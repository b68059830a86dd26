//! Tasks: calls that go on after their answer, which clients come back for.
//!
//! A tool says whether it runs as a task ([`TaskSupport`]). Where the client can follow one, the call is
//! answered with a task that is kept under an id that nobody can guess, and the tool runs on, whatever
//! becomes of the connection. Its questions (see [`crate::input`]) let the task wait for input. What happens to
//! a task happens to its record; whoever works on it and whoever waits for it watch the record, so they need
//! not be in the same process.

mod claims;
mod create;
mod follow;
mod record;
mod requests;
mod store;
#[cfg(test)]
mod tests;
mod work;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{TASKS_EXTENSION, TaskOutcome};
use creole_proto::operation::Caller;
use creole_proto::revision::TaskModel as Kind;
use creole_proto::wire::Raw;
use serde_json::json;
use tokio::sync::{Semaphore, broadcast};

pub use creole_proto::model::TaskSupport;

use crate::random;
use crate::random::NoRandomBytes;
use crate::registry::Announcement;
use crate::seal::Sealer;
use crate::state::State;
use claims::InputClaims;
use record::TaskRecord;
use store::{TaskKey, TaskStore};

/// How much tasks may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// The most tasks of one caller, those that are over and still kept included.
    pub per_principal: usize,
    /// The most tasks that this process keeps at the same time.
    pub total: usize,
    /// How long a task is kept after its creation when the client does not say.
    pub ttl: Duration,
    /// The shortest time that a client may wish for; shorter wishes are raised to it.
    pub min_ttl: Duration,
    /// The longest time that a client may wish for; longer wishes are cut to it.
    pub max_ttl: Duration,
    /// How long clients are asked to wait between two looks.
    pub poll_interval: Duration,
    /// The most bytes that are kept of one task: its questions, answers and result.
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
    /// Where news are told to connections.
    changes: broadcast::Sender<Announcement>,
    /// One permit for each task that this process keeps.
    slots: Arc<Semaphore>,
    /// The name of this process, for others that share the store. Nothing if the system had no random bytes; then there
    /// are no tasks, because processes with one name would take each other's tasks for their own.
    worker: Option<String>,
    activity: Mutex<WorkerActivity>,
    claims: InputClaims,
    followed: Mutex<HashSet<String>>,
}

/// How many tasks are worked on, and whether others are told that we are alive.
#[derive(Default)]
struct WorkerActivity {
    tasks: usize,
    sends_heartbeats: bool,
}

impl Tasks {
    pub(crate) fn new(
        state: State,
        limits: TaskLimits,
        sealer: Sealer,
        page_size: usize,
        changes: broadcast::Sender<Announcement>,
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
            }),
        }
    }
}

impl TaskShared {
    /// The name of this process.
    fn worker(&self) -> Result<&str, Fault> {
        self.worker.as_deref().ok_or_else(|| NoRandomBytes.into())
    }

    /// A record as it stands. A task whose worker is gone has failed: nobody will finish it.
    async fn read_record(&self, key: &TaskKey) -> Result<Option<TaskRecord>, Fault> {
        let Some(record) = self.store.read(key).await? else { return Ok(None) };
        let is_over =
            record.task.state.is_terminal() || Some(&record.worker) == self.worker.as_ref();
        if is_over || self.store.is_alive(&record.worker).await? {
            return Ok(Some(record));
        }
        let fault = Fault::new(FaultKind::Internal, "the server that worked on the task is gone");
        let end = TaskOutcome::Fault(fault);
        match self.store.change(key, |record, now| record.end(end.clone(), now)).await? {
            store::TaskChange::NotFound => Ok(None),
            store::TaskChange::Unchanged(record) | store::TaskChange::Updated(record) => {
                Ok(Some(*record))
            }
        }
    }

    fn activity(&self) -> MutexGuard<'_, WorkerActivity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a caller that did not declare the extension where tasks are one (SEP-2663, protocol errors).
pub(crate) fn check_declared(caller: &Caller) -> Result<(), Fault> {
    let undeclared = caller.rules.tasks == Kind::Extension && !caller.capabilities.tasks;
    let detail = "This needs a client that declares the extension for tasks.";
    if undeclared { Err(missing_extension(FaultKind::MissingCapability, detail)) } else { Ok(()) }
}

/// A fault that names the extension as what the client lacks.
pub(crate) fn missing_extension(kind: FaultKind, detail: impl Into<String>) -> Fault {
    let needed = json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}});
    Fault::new(kind, detail).with_data(Raw::from_value(&needed))
}

/// 128 random bits as text: a name that nobody can guess.
///
/// # Errors
/// Without randomness there are no such names: whoever guesses one might have what it stands for.
pub fn random_id() -> Result<String, Fault> {
    Ok(format!("{:032x}", u128::from_be_bytes(random::random_bytes()?)))
}

impl fmt::Debug for Tasks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tasks").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}
