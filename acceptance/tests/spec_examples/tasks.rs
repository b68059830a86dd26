//! Every shape of a task, in the revisions that have tasks.

use std::sync::Arc;

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{
    InputRequest, KeyedInputRequest, Task, TaskOutcome, TaskState, ToolResult,
};
use creole::proto::operation::{Change, Outcome, Payload, SubscriptionFilter, TaskPage};
use creole::proto::revision::TaskModel;
use serde_json::json;

use super::Stage;

#[test]
fn every_task_matches_each_revision() {
    for mut stage in Stage::of_each_revision() {
        let tasks = stage.revision.rules().tasks;
        if tasks == TaskModel::Absent {
            continue;
        }
        let created = Outcome::Complete(Payload::TaskCreated(task(TaskState::Working)));
        stage.answer("tools/call", json!({"name": "t", "task": {}}), created);
        if tasks == TaskModel::Extension {
            let filter =
                SubscriptionFilter { tasks: vec![ID.to_owned()], ..SubscriptionFilter::default() };
            let listening = Outcome::Complete(Payload::Listening(filter));
            let expected = json!({"notifications": {"taskIds": [ID]}});
            stage.answer("subscriptions/listen", expected, listening);
        }
        let about = || json!({"taskId": ID});
        for state in states() {
            let task = task(state);
            stage.answer("tasks/get", about(), Outcome::Complete(Payload::Task(Arc::clone(&task))));
            // A session gets notifications about a task until it ends.
            if tasks == TaskModel::Extension || !task.state.is_terminal() {
                stage.announce(&Change::Task(task));
            }
        }
        match tasks {
            TaskModel::Extension => {
                let empty = || Outcome::Complete(Payload::Empty);
                stage.answer("tasks/cancel", about(), empty());
                let responses = json!({"taskId": ID, "inputResponses": {"q": {}}});
                stage.answer("tasks/update", responses, empty());
            }
            TaskModel::ClientRequested | TaskModel::Absent => {
                let cancelled = Payload::Task(task(TaskState::Cancelled));
                stage.answer("tasks/cancel", about(), Outcome::Complete(cancelled));
                let tasks = states().into_iter().map(task).collect();
                let page = Payload::Tasks(TaskPage { tasks, next: Some("n".into()) });
                stage.answer("tasks/list", json!({}), Outcome::Complete(page));
                let result = Payload::Tool(ToolResult::text("t"));
                stage.answer("tasks/result", about(), Outcome::Complete(result));
                let failed = Fault::new(FaultKind::ToolFailed, "no");
                stage.answer("tasks/result", about(), failed.into());
            }
        }
    }
}

const ID: &str = "0123456789abcdef0123456789abcdef";

fn task(state: TaskState) -> Arc<Task> {
    let message = Some("m".to_owned());
    let (created_ms, updated_ms) = (1_785_000_000_000, 1_785_000_000_001);
    let (ttl_ms, poll_ms) = (60_000, 1000);
    Arc::new(Task { id: ID.into(), state, message, created_ms, updated_ms, ttl_ms, poll_ms })
}

fn states() -> Vec<TaskState> {
    let ask = KeyedInputRequest { key: "q".into(), question: InputRequest::Roots };
    let fault =
        |kind| TaskState::Ended(TaskOutcome::Fault(Fault::new(kind, "no").with_subject("t")));
    vec![
        TaskState::Working,
        TaskState::InputRequired(vec![ask]),
        TaskState::Ended(TaskOutcome::Result(ToolResult::text("t"))),
        TaskState::Ended(TaskOutcome::Result(ToolResult::error("t"))),
        fault(FaultKind::ToolFailed),
        fault(FaultKind::Internal),
        TaskState::Cancelled,
    ]
}
