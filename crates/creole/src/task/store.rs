//! Where tasks are kept: records that are changed under compare-and-set, found by whom they belong to.
//!
//! The principal is part of a record's key, so the id of another caller's task is an unknown id.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::wire::hex;
use serde::{Deserialize, Serialize};

use super::TaskLimits;
use super::record::Record;
use crate::seal::digest;
use crate::state::{State, StateError, Subscription};

/// How often a change is tried again after somebody else was faster.
const MOST_ATTEMPTS: usize = 100;

/// Records of tasks.
#[derive(Clone, Debug)]
pub(crate) struct TaskStore {
    state: State,
    limits: TaskLimits,
}

/// Whose task it is, and which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey {
    owner: String,
    id: String,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Changed {
    /// There is no such task.
    Gone,
    /// There was nothing to change.
    Not(Box<Record>),
    /// It was changed to this.
    To(Box<Record>),
}

/// A principal's tasks, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    tasks: Vec<Listed>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    id: String,
    ends_ms: u64,
}

impl TaskKey {
    pub(crate) fn new(principal: &str, id: &str) -> Self {
        Self { owner: owner(principal), id: id.to_owned() }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// An id of our own is short; a longer one is a client's invention.
    fn path(&self) -> Option<String> {
        (self.id.len() <= 64).then(|| format!("task/{}/{}", self.owner, self.id))
    }
}

impl TaskStore {
    pub(crate) fn new(state: State, limits: TaskLimits) -> Self {
        Self { state, limits }
    }

    /// Adds a record; refused when its owner has too many.
    pub(crate) async fn create(&self, principal: &str, record: &Record) -> Result<(), Fault> {
        self.enlist(principal, record).await?;
        let key = TaskKey::new(principal, &record.task.id);
        let ttl = Some(Duration::from_millis(record.task.ttl_ms));
        let path = key.path().ok_or_else(unknown_task)?;
        let value = self.encoded(record)?;
        match self.state.swap(&path, None, value, ttl).await.map_err(failed)? {
            Some(_) => Ok(()),
            // 128 random bits do not repeat; if they do, nobody gets another's task.
            None => Err(Fault::new(FaultKind::Internal, "the id of a new task was taken")),
        }
    }

    pub(crate) async fn read(&self, key: &TaskKey) -> Result<Option<Record>, Fault> {
        let Some(path) = key.path() else { return Ok(None) };
        match self.state.get(&path).await.map_err(failed)? {
            Some(entry) => decoded(&entry.value).map(Some),
            None => Ok(None),
        }
    }

    /// Applies a change; `change` is run again when somebody else was faster, and says whether it changed
    /// anything.
    pub(crate) async fn change(
        &self,
        key: &TaskKey,
        mut change: impl FnMut(&mut Record, u64) -> bool,
    ) -> Result<Changed, Fault> {
        let Some(path) = key.path() else { return Ok(Changed::Gone) };
        for _ in 0..MOST_ATTEMPTS {
            let Some(entry) = self.state.get(&path).await.map_err(failed)? else {
                return Ok(Changed::Gone);
            };
            let (mut record, now) = (decoded(&entry.value)?, now_ms());
            if !change(&mut record, now) {
                return Ok(Changed::Not(Box::new(record)));
            }
            let left = (record.task.created_ms + record.task.ttl_ms).saturating_sub(now).max(1);
            let ttl = Some(Duration::from_millis(left));
            let value = self.encoded(&record)?;
            let won = self.state.swap(&path, Some(entry.version), value, ttl).await;
            if won.map_err(failed)?.is_some() {
                self.state.publish(&path, Bytes::new()).await.map_err(failed)?;
                return Ok(Changed::To(Box::new(record)));
            }
        }
        Err(Fault::new(FaultKind::Busy, "too many change this task at the same time"))
    }

    /// Takes a record away and tells those who wait for it.
    pub(crate) async fn remove(&self, key: &TaskKey) -> Result<(), Fault> {
        let Some(path) = key.path() else { return Ok(()) };
        self.state.remove(&path).await.map_err(failed)?;
        self.state.publish(&path, Bytes::new()).await.map_err(failed)
    }

    /// News of a task from now on: whoever waits looks at the record first, and again after each.
    pub(crate) async fn watch(&self, key: &TaskKey) -> Result<Watch, Fault> {
        let path = key.path().ok_or_else(unknown_task)?;
        let news = self.state.subscribe(&path).await.map_err(failed)?;
        Ok(Watch { news })
    }

    /// The ids of a principal's tasks, oldest first.
    pub(crate) async fn list(&self, principal: &str) -> Result<Vec<String>, Fault> {
        let (index, _) = self.index(&index_path(principal)).await?;
        Ok(index.tasks.into_iter().map(|listed| listed.id).collect())
    }

    async fn enlist(&self, principal: &str, record: &Record) -> Result<(), Fault> {
        let path = index_path(principal);
        let ends_ms = record.task.created_ms + record.task.ttl_ms;
        for _ in 0..MOST_ATTEMPTS {
            let (mut index, version) = self.index(&path).await?;
            let most = self.limits.per_principal;
            if index.tasks.len() >= most {
                let detail = format!("there are {most} tasks of this caller, the most allowed");
                return Err(Fault::new(FaultKind::Busy, detail));
            }
            index.tasks.push(Listed { id: record.task.id.clone(), ends_ms });
            let last = index.tasks.iter().map(|listed| listed.ends_ms).max().unwrap_or(ends_ms);
            let ttl = Duration::from_millis(last.saturating_sub(now_ms()).max(1));
            let value = Bytes::from(serde_json::to_vec(&index).map_err(broken)?);
            let won = self.state.swap(&path, version, value, Some(ttl)).await;
            if won.map_err(failed)?.is_some() {
                return Ok(());
            }
        }
        Err(Fault::new(FaultKind::Busy, "too many tasks are made at the same time"))
    }

    /// The tasks of an index that have not expired, and its version.
    async fn index(&self, path: &str) -> Result<(Index, Option<u64>), Fault> {
        let Some(entry) = self.state.get(path).await.map_err(failed)? else {
            return Ok((Index::default(), None));
        };
        let mut index: Index = serde_json::from_slice(&entry.value).map_err(broken)?;
        let now = now_ms();
        index.tasks.retain(|listed| listed.ends_ms > now);
        Ok((index, Some(entry.version)))
    }

    /// Says that a process is alive for as long as `ttl`.
    pub(crate) async fn beat(&self, worker: &str, ttl: Duration) -> Result<(), Fault> {
        let beaten = self.state.put(&worker_path(worker), Bytes::new(), Some(ttl)).await;
        beaten.map(drop).map_err(failed)
    }

    /// Whether a process said not too long ago that it is alive.
    pub(crate) async fn is_alive(&self, worker: &str) -> Result<bool, Fault> {
        let beaten = self.state.get(&worker_path(worker)).await;
        beaten.map(|entry| entry.is_some()).map_err(failed)
    }

    fn encoded(&self, record: &Record) -> Result<Bytes, Fault> {
        let text = serde_json::to_vec(record).map_err(broken)?;
        let most = self.limits.record_bytes;
        match text.len() <= most {
            true => Ok(text.into()),
            false => {
                let detail = format!("what there is to keep of the task is over {most} bytes");
                Err(Fault::new(FaultKind::InvalidParams, detail))
            }
        }
    }
}

/// News of one task.
#[derive(Debug)]
pub(crate) struct Watch {
    news: Subscription,
}

impl Watch {
    /// Resolves when the task may have changed or gone.
    pub(crate) async fn changed(&mut self) {
        if self.news.next().await.is_none() {
            // Nobody is left to tell, so we have to look from time to time.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// The fault of a task that does not exist for the caller.
pub(crate) fn unknown_task() -> Fault {
    Fault::new(FaultKind::UnknownTask, "")
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn worker_path(worker: &str) -> String {
    format!("task-worker/{worker}")
}

fn index_path(principal: &str) -> String {
    format!("tasks/{}", owner(principal))
}

/// A principal as a part of keys: any text is as long as another, and none has a slash.
fn owner(principal: &str) -> String {
    hex(&digest(principal.as_bytes()))
}

fn decoded(value: &[u8]) -> Result<Record, Fault> {
    serde_json::from_slice(value).map_err(broken)
}

fn failed(error: StateError) -> Fault {
    Fault::new(FaultKind::BackendUnavailable, format!("tasks cannot be kept: {error}"))
}

fn broken(error: serde_json::Error) -> Fault {
    Fault::new(FaultKind::Internal, format!("a task cannot be read or written: {error}"))
}
