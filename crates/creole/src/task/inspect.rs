//! The tasks of this process as operators see them. The id of a task is a secret, so only its digest is shown.

use std::collections::HashMap;
use std::sync::Arc;

use creole_proto::fault::Fault;
use creole_proto::model::{TaskOutcome, TaskState};
use creole_proto::wire::hex;

use super::record::TaskRecord;
use super::store::{TaskChange, TaskKey};
use super::{TaskShared, Tasks};
use crate::call::Call;
use crate::secrets::digest;
use crate::sync::Mutex;

/// How many bytes of the digest identify a task.
const DIGEST_BYTES: usize = 8;

/// A task that this process keeps.
#[derive(Clone, Debug)]
pub struct InspectedTask {
    /// The start of the SHA-256 of its id, in hexadecimal digits.
    pub digest: String,
    /// Who created it.
    pub principal: String,
    /// The client's revision of the protocol.
    pub revision: &'static str,
    /// The tool.
    pub tool: String,
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`.
    pub status: &'static str,
    /// What the task says about its state.
    pub message: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it changed last, in milliseconds since 1970.
    pub updated_ms: u64,
}

/// The tasks that this process keeps, by the digests of their ids.
#[derive(Debug, Default)]
pub(super) struct KeptTasks(Mutex<HashMap<String, KeptTask>>);

#[derive(Clone, Debug)]
struct KeptTask {
    key: TaskKey,
    principal: String,
    revision: &'static str,
}

/// Removes its task from the kept ones when it is dropped.
pub(super) struct KeptTaskGuard {
    shared: Arc<TaskShared>,
    digest: String,
}

impl Drop for KeptTaskGuard {
    fn drop(&mut self) {
        self.shared.kept.0.lock().remove(&self.digest);
    }
}

impl TaskShared {
    /// Shows a task to operators until the guard is dropped.
    pub(super) fn keep(self: &Arc<Self>, key: &TaskKey, call: &Call) -> KeptTaskGuard {
        let task = KeptTask {
            key: key.clone(),
            principal: call.context.principal().id().to_owned(),
            revision: call.context.caller().rules.name,
        };
        let digest = hex(&digest(key.id().as_bytes())[..DIGEST_BYTES]);
        self.kept.0.lock().insert(digest.clone(), task);
        KeptTaskGuard { shared: Arc::clone(self), digest }
    }
}

impl Tasks {
    /// The tasks that this process keeps, oldest first. One whose record cannot be read is left out.
    pub(crate) async fn inspect(&self) -> Vec<InspectedTask> {
        let kept: Vec<_> = self.shared.kept.0.lock().clone().into_iter().collect();
        let mut tasks = Vec::with_capacity(kept.len());
        for (digest, KeptTask { key, principal, revision }) in kept {
            let Ok(Some(record)) = self.shared.store.read(&key).await else { continue };
            let (status, tool) = (status(&record.task.state), record.tool);
            let (created_ms, updated_ms) = (record.task.created_ms, record.task.updated_ms);
            let message = record.task.message;
            tasks.push(InspectedTask {
                digest,
                principal,
                revision,
                tool,
                status,
                message,
                created_ms,
                updated_ms,
            });
        }
        tasks.sort_by(|one, other| {
            one.created_ms.cmp(&other.created_ms).then_with(|| one.digest.cmp(&other.digest))
        });
        tasks
    }

    /// Cancels the task with this digest. Returns whether it was running, or `None` if there is none.
    pub(crate) async fn cancel_inspected(&self, digest: &str) -> Result<Option<bool>, Fault> {
        let kept = self.shared.kept.0.lock().get(digest).map(|task| task.key.clone());
        let Some(key) = kept else { return Ok(None) };
        Ok(match self.shared.store.change(&key, TaskRecord::cancel).await? {
            TaskChange::Updated(_) => Some(true),
            TaskChange::Unchanged(_) => Some(false),
            TaskChange::NotFound => None,
        })
    }
}

/// The status of a task in one word of the protocol.
fn status(state: &TaskState) -> &'static str {
    match state {
        TaskState::Working => "working",
        TaskState::InputRequired(_) => "input_required",
        TaskState::Ended(TaskOutcome::Fault(_)) => "failed",
        TaskState::Ended(_) => "completed",
        TaskState::Cancelled => "cancelled",
    }
}
