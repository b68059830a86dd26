//! News of tasks for those who follow them: sessions that asked for a task, and listeners.

use std::sync::{Arc, MutexGuard, PoisonError};

use creole_proto::model::TaskState;
use creole_proto::operation::Change;

use super::TaskShared;
use super::store::{TaskKey, TaskWatch};

impl TaskShared {
    /// Tells connections of a task's news until it is over, how it stands included if it does not just run;
    /// tells whether there is such a task.
    ///
    /// The news come from the record and not from those who change it, so it does not matter which process
    /// does. Who follows is kept by the connections.
    pub(super) async fn follow(self: &Arc<Self>, key: &TaskKey) -> bool {
        let Ok(news) = self.store.watch(key).await else { return false };
        let Ok(Some(record)) = self.read_record(key).await else { return false };
        let state = record.task.state.clone();
        if state != TaskState::Working {
            _ = self.changes.send(Change::Task(Arc::new(record.task)).into());
        }
        if !state.is_terminal() && self.followed_tasks().insert(key.id().to_owned()) {
            tokio::spawn(Arc::clone(self).announce_changes(key.clone(), state, news));
        }
        true
    }

    async fn announce_changes(
        self: Arc<Self>,
        key: TaskKey,
        mut last: TaskState,
        mut news: TaskWatch,
    ) {
        while !last.is_terminal() {
            news.changed().await;
            let Ok(Some(record)) = self.read_record(&key).await else { break };
            let is_told = is_worth_announcing(&last, &record.task.state);
            last = record.task.state.clone();
            if is_told {
                // Nobody listening is not an error.
                _ = self.changes.send(Change::Task(Arc::new(record.task)).into());
            }
        }
        self.followed_tasks().remove(key.id());
    }

    fn followed_tasks(&self) -> MutexGuard<'_, std::collections::HashSet<String>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a change is worth telling: new questions and the end are; that answers arrived the one who gave
/// them knows.
fn is_worth_announcing(before: &TaskState, now: &TaskState) -> bool {
    match (before, now) {
        (_, TaskState::Working) => false,
        (TaskState::InputRequired(before), TaskState::InputRequired(now)) => {
            now.iter().any(|ask| !before.iter().any(|known| known.key == ask.key))
        }
        (before, now) => before != now,
    }
}
