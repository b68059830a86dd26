//! The store of tasks: records that are changed under compare-and-set, found by principal.
//!
//! The principal is part of a record's key, so the id of another principal's task is an unknown id.

use std::time::Duration;

use bytes::Bytes;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::wire::hex;
use serde::{Deserialize, Serialize};

use super::TaskLimits;
use super::record::TaskRecord;
use crate::secrets::digest;
use crate::state::{State, StateError, Subscription};

/// How long a process counts as working on its tasks after its last heartbeat.
pub(super) const HEARTBEAT_TTL: Duration = Duration::from_secs(24);

/// The interval between two heartbeats.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(6);

/// Maximum number of attempts of a change when other writers are faster.
const MAX_ATTEMPTS: usize = 100;

/// Records of tasks.
#[derive(Clone, Debug)]
pub(crate) struct TaskStore {
    state: State,
    limits: TaskLimits,
}

/// The principal and the id of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey {
    owner: String,
    id: String,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskChange {
    /// The task does not exist.
    NotFound,
    /// The change had no effect.
    Unchanged(Box<TaskRecord>),
    /// The record after the change.
    Updated(Box<TaskRecord>),
}

/// A principal's tasks, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TaskIndex {
    tasks: Vec<IndexedTask>,
}

#[derive(Debug, Serialize, Deserialize)]
struct IndexedTask {
    id: String,
    ends_ms: u64,
}

impl TaskKey {
    pub(crate) fn new(principal: &str, id: &str) -> Self {
        Self { owner: principal_key(principal), id: id.to_owned() }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Our own ids are short; a longer one is not ours.
    fn path(&self) -> Option<String> {
        (self.id.len() <= 64).then(|| format!("task/{}/{}", self.owner, self.id))
    }
}

impl TaskStore {
    pub(crate) fn new(state: State, limits: TaskLimits) -> Self {
        Self { state, limits }
    }

    /// Whether other processes may use the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.state.is_shared()
    }

    /// The time by the clock that all replicas share, in milliseconds since 1970: each of them computes how long a task is
    /// still kept.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.state.time().as_millis()).unwrap_or(u64::MAX)
    }

    /// Adds a record; fails when its owner has too many.
    pub(crate) async fn create(&self, principal: &str, record: &TaskRecord) -> Result<(), Fault> {
        self.add_to_index(principal, record).await?;
        let key = TaskKey::new(principal, &record.task.id);
        let ttl = Some(Duration::from_millis(record.task.ttl_ms));
        let path = key.path().ok_or_else(unknown_task)?;
        let value = self.encode_record(record)?;
        match self.state.swap(&path, None, value, ttl).await.map_err(state_fault)? {
            Some(_) => Ok(()),
            // 128 random bits do not repeat; if they do, no caller gets another's task.
            None => Err(Fault::new(FaultKind::Internal, "the id of a new task is already in use")),
        }
    }

    pub(crate) async fn read(&self, key: &TaskKey) -> Result<Option<TaskRecord>, Fault> {
        let Some(path) = key.path() else { return Ok(None) };
        match self.state.get(&path).await.map_err(state_fault)? {
            Some(entry) => decode_record(&entry.value).map(Some),
            None => Ok(None),
        }
    }

    /// Applies a change; `change` runs again when another writer was faster, and returns whether it changed anything.
    pub(crate) async fn change(
        &self,
        key: &TaskKey,
        mut change: impl FnMut(&mut TaskRecord, u64) -> bool,
    ) -> Result<TaskChange, Fault> {
        let Some(path) = key.path() else { return Ok(TaskChange::NotFound) };
        for _ in 0..MAX_ATTEMPTS {
            let Some(entry) = self.state.get(&path).await.map_err(state_fault)? else {
                return Ok(TaskChange::NotFound);
            };
            let (mut record, now) = (decode_record(&entry.value)?, self.now_ms());
            if !change(&mut record, now) {
                return Ok(TaskChange::Unchanged(Box::new(record)));
            }
            let remaining =
                (record.task.created_ms + record.task.ttl_ms).saturating_sub(now).max(1);
            let ttl = Some(Duration::from_millis(remaining));
            let value = self.encode_record(&record)?;
            let won = self.state.swap(&path, Some(entry.version), value, ttl).await;
            if won.map_err(state_fault)?.is_some() {
                self.state.publish(&path, Bytes::new()).await.map_err(state_fault)?;
                return Ok(TaskChange::Updated(Box::new(record)));
            }
        }
        Err(Fault::new(
            FaultKind::Busy,
            "too many requests change this task at the same time; try again",
        ))
    }

    /// Removes a record and notifies its watchers.
    pub(crate) async fn remove(&self, key: &TaskKey) -> Result<(), Fault> {
        let Some(path) = key.path() else { return Ok(()) };
        self.state.remove(&path).await.map_err(state_fault)?;
        self.state.publish(&path, Bytes::new()).await.map_err(state_fault)
    }

    /// Watches a task from now on: a waiter reads the record first, and again after each signal.
    pub(crate) async fn watch(&self, key: &TaskKey) -> Result<TaskWatch, Fault> {
        let path = key.path().ok_or_else(unknown_task)?;
        let subscription = self.state.subscribe(&path).await.map_err(state_fault)?;
        Ok(TaskWatch { subscription })
    }

    /// The ids of a principal's tasks, oldest first.
    pub(crate) async fn list(&self, principal: &str) -> Result<Vec<String>, Fault> {
        let (index, _) = self.index(&index_path(principal)).await?;
        Ok(index.tasks.into_iter().map(|listed| listed.id).collect())
    }

    async fn add_to_index(&self, principal: &str, record: &TaskRecord) -> Result<(), Fault> {
        let path = index_path(principal);
        let ends_ms = record.task.created_ms + record.task.ttl_ms;
        for _ in 0..MAX_ATTEMPTS {
            let (mut index, version) = self.index(&path).await?;
            let max = self.limits.per_principal;
            if index.tasks.len() >= max {
                let detail = format!(
                    "the limit of {max} tasks per principal is reached; cancel or finish one"
                );
                return Err(Fault::new(FaultKind::Busy, detail));
            }
            index.tasks.push(IndexedTask { id: record.task.id.clone(), ends_ms });
            let last = index.tasks.iter().map(|listed| listed.ends_ms).max().unwrap_or(ends_ms);
            let ttl = Duration::from_millis(last.saturating_sub(self.now_ms()).max(1));
            let value = Bytes::from(serde_json::to_vec(&index).map_err(corrupt_record_fault)?);
            let won = self.state.swap(&path, version, value, Some(ttl)).await;
            if won.map_err(state_fault)?.is_some() {
                return Ok(());
            }
        }
        Err(Fault::new(FaultKind::Busy, "too many tasks are created at the same time; try again"))
    }

    /// The tasks of an index that have not expired, and its version.
    async fn index(&self, path: &str) -> Result<(TaskIndex, Option<u64>), Fault> {
        let Some(entry) = self.state.get(path).await.map_err(state_fault)? else {
            return Ok((TaskIndex::default(), None));
        };
        let mut index: TaskIndex =
            serde_json::from_slice(&entry.value).map_err(corrupt_record_fault)?;
        let now = self.now_ms();
        index.tasks.retain(|listed| listed.ends_ms > now);
        Ok((index, Some(entry.version)))
    }

    /// Records that a process works on tasks for `ttl`.
    pub(crate) async fn write_heartbeat(&self, worker: &str, ttl: Duration) -> Result<(), Fault> {
        let written = self.state.put(&worker_path(worker), Bytes::new(), Some(ttl)).await;
        written.map(drop).map_err(state_fault)
    }

    /// Whether a process works on its tasks. It may have written no heartbeat while the state was unavailable.
    pub(crate) async fn is_working(&self, worker: &str) -> Result<bool, Fault> {
        let heartbeat = self.state.get(&worker_path(worker)).await.map_err(state_fault)?;
        Ok(heartbeat.is_some() || self.state.was_unavailable_within(HEARTBEAT_TTL))
    }

    fn encode_record(&self, record: &TaskRecord) -> Result<Bytes, Fault> {
        let text = serde_json::to_vec(record).map_err(corrupt_record_fault)?;
        let max = self.limits.record_bytes;
        match text.len() <= max {
            true => Ok(text.into()),
            false => {
                let detail = format!("the record of the task has more than {max} bytes");
                Err(Fault::new(FaultKind::InvalidParams, detail))
            }
        }
    }
}

/// Signals changes of one task.
#[derive(Debug)]
pub(crate) struct TaskWatch {
    subscription: Subscription,
}

impl TaskWatch {
    /// Resolves when the task may have changed or been removed.
    pub(crate) async fn changed(&mut self) {
        if self.subscription.next().await.is_none() {
            // The signals are over, so the waiter has to poll.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// The fault of a task that does not exist for the caller.
pub(crate) fn unknown_task() -> Fault {
    Fault::new(FaultKind::UnknownTask, "")
}

fn worker_path(worker: &str) -> String {
    format!("task-worker/{worker}")
}

fn index_path(principal: &str) -> String {
    format!("tasks/{}", principal_key(principal))
}

/// A principal as a part of keys: of fixed length, and without a slash.
fn principal_key(principal: &str) -> String {
    hex(&digest(principal.as_bytes()))
}

fn decode_record(value: &[u8]) -> Result<TaskRecord, Fault> {
    serde_json::from_slice(value).map_err(corrupt_record_fault)
}

fn state_fault(error: StateError) -> Fault {
    let kind = match error.is_temporary() {
        true => FaultKind::BackendUnavailable,
        false => FaultKind::Internal,
    };
    Fault::new(kind, format!("cannot store tasks: {error}"))
}

fn corrupt_record_fault(error: serde_json::Error) -> Fault {
    Fault::new(FaultKind::Internal, format!("cannot read or write a task: {error}"))
}
