//! Announces changes of tasks to their followers: sessions that requested a task, and listeners.

use std::sync::{Arc, MutexGuard};

use creole_proto::model::TaskState;
use creole_proto::operation::Change;

use super::TaskShared;
use super::store::{TaskKey, TaskWatch};

impl TaskShared {
    /// Announces a task's changes to connections until it is over, and its current state unless it just runs; returns
    /// whether the task exists.
    ///
    /// The changes are read from the record and do not come from the code that makes them, so any process may make
    /// them. The connections know their followers.
    pub(super) async fn follow(self: &Arc<Self>, key: &TaskKey) -> bool {
        let Ok(watch) = self.store.watch(key).await else { return false };
        let Ok(Some(record)) = self.read_record(key).await else { return false };
        let state = record.task.state.clone();
        if state != TaskState::Working {
            _ = self.changes.send(Change::Task(Arc::new(record.task)).into());
        }
        if !state.is_terminal() && self.followed_tasks().insert(key.id().to_owned()) {
            tokio::spawn(Arc::clone(self).announce_changes(key.clone(), state, watch));
        }
        true
    }

    async fn announce_changes(
        self: Arc<Self>,
        key: TaskKey,
        mut last: TaskState,
        mut watch: TaskWatch,
    ) {
        while !last.is_terminal() {
            watch.changed().await;
            let Ok(Some(record)) = self.read_record(&key).await else { break };
            let is_notified = is_worth_announcing(&last, &record.task.state);
            last = record.task.state.clone();
            if is_notified {
                // A send without receivers is not an error.
                _ = self.changes.send(Change::Task(Arc::new(record.task)).into());
            }
        }
        self.followed_tasks().remove(key.id());
    }

    fn followed_tasks(&self) -> MutexGuard<'_, std::collections::HashSet<String>> {
        self.followed.lock()
    }
}

/// Whether a change is announced: new input requests and the end are. Input responses are not, because the client sent
/// them.
fn is_worth_announcing(before: &TaskState, now: &TaskState) -> bool {
    match (before, now) {
        (_, TaskState::Working) => false,
        (TaskState::InputRequired(before), TaskState::InputRequired(now)) => {
            now.iter().any(|ask| !before.iter().any(|known| known.key == ask.key))
        }
        (before, now) => before != now,
    }
}
