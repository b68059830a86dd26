//! Follows a server's tasks to their end, for a client that only needs the result.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::client::CallRequest;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{
    ClientCapabilities, Definition, KeyedInputRequest, Task, TaskOutcome, TaskPreference,
    TaskState, TaskSupport,
};
use creole_proto::operation::{Event, Operation, Outcome, Payload};
use creole_proto::revision::TaskModel;
use tokio::time::{sleep, timeout};

use crate::client::mcp_client::{Client, internal_fault};

/// Minimum and maximum interval between two polls of a task.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum duration of a task.
const MAX_TASK_TIME: Duration = Duration::from_secs(24 * 3600);

impl Client {
    /// Records which tools only run as tasks, for revisions in which calls must request that.
    pub(crate) fn learn_tasks(&self, tools: &[Arc<Definition>]) {
        let required =
            tools.iter().filter(|definition| definition.task_support() == TaskSupport::Required);
        let names: BTreeSet<String> = required.map(|tool| tool.name().to_owned()).collect();
        *self.task_tools.lock() = names;
    }

    /// Allows the server to make the call a task, if the revision has that: the task is then followed.
    pub(crate) fn allow_tasks(&self, request: &mut CallRequest) {
        let Operation::CallTool { name, .. } = &request.operation else { return };
        let connection = self.connection();
        let greeting = connection.greeting();
        if !greeting.server_info.capabilities.tasks {
            return;
        }
        match greeting.rules.tasks {
            TaskModel::Extension => self.declare_tasks(request),
            TaskModel::ClientRequested if self.is_task_tool(name) => {
                request.options.task_preference = TaskPreference::Requested { ttl_ms: None };
            }
            TaskModel::ClientRequested | TaskModel::Absent => {}
        }
    }

    fn declare_tasks(&self, request: &mut CallRequest) {
        let own = ClientCapabilities::clone(&request.options.capabilities);
        request.options.capabilities = Arc::new(ClientCapabilities { tasks: true, ..own });
        request.options.task_preference = TaskPreference::Allowed;
    }

    fn is_task_tool(&self, tool: &str) -> bool {
        self.task_tools.lock().contains(tool)
    }

    /// The outcome of a call that became a task.
    pub(crate) async fn follow_task(&self, task: Arc<Task>) -> Result<Payload, Fault> {
        let followed = timeout(MAX_TASK_TIME, self.poll_to_end(task)).await;
        followed
            .unwrap_or_else(|_| Err(Fault::new(FaultKind::Timeout, "the task did not end in time")))
    }

    async fn poll_to_end(&self, mut task: Arc<Task>) -> Result<Payload, Fault> {
        // The result, and input requests before it, may have to be fetched by a separate request.
        let fetches = self.connection().greeting().rules.tasks == TaskModel::ClientRequested;
        let mut reported = 0;
        loop {
            reported += 1;
            self.report_status(&task, reported);
            match &task.state {
                TaskState::Cancelled => {
                    let detail = "the server cancelled the task";
                    return Err(Fault::new(FaultKind::TaskCancelled, detail));
                }
                TaskState::Working => {}
                _ if fetches => return self.task_request(result_of(&task)).await,
                TaskState::InputRequired(input_requests) => {
                    self.send_task_input(&task.id, input_requests).await?
                }
                TaskState::Ended(TaskOutcome::Relayed(result)) => {
                    return Ok(Payload::Relayed(result.clone()));
                }
                TaskState::Ended(TaskOutcome::Result(result)) => {
                    return Ok(Payload::Tool(result.clone()));
                }
                TaskState::Ended(TaskOutcome::Fault(fault)) => return Err(fault.clone()),
            }
            task = self.poll_until_changed(&task).await?;
        }
    }

    async fn poll_until_changed(&self, before: &Task) -> Result<Arc<Task>, Fault> {
        loop {
            sleep(
                Duration::from_millis(before.poll_ms).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL),
            )
            .await;
            match self.task_request(Operation::GetTask { id: before.id.clone() }).await? {
                Payload::Task(now) if is_unchanged(&now, before) => {}
                Payload::Task(now) => return Ok(now),
                _ => return Err(internal_fault("the server did not return its task")),
            }
        }
    }

    async fn send_task_input(
        &self,
        id: &str,
        input_requests: &[KeyedInputRequest],
    ) -> Result<(), Fault> {
        if input_requests.is_empty() {
            return Ok(());
        }
        let responses = self.callbacks().handle_all(input_requests.to_vec()).await?;
        let id = id.to_owned();
        self.task_request(Operation::UpdateTask { id, responses }).await.map(drop)
    }

    /// A request about a task; input requests meanwhile are handled.
    async fn task_request(&self, operation: Operation) -> Result<Payload, Fault> {
        let mut request = self.request(operation);
        self.declare_tasks(&mut request);
        match self.call_round(&self.connection(), request, [].into()).await {
            Outcome::Complete(payload) => Ok(payload),
            Outcome::Fail(fault) => Err(fault),
            _ => Err(internal_fault("the server's response is not a task")),
        }
    }

    fn report_status(&self, task: &Task, times: u32) {
        let Some(on_event) = &self.callbacks().event else { return };
        let word = match task.state {
            TaskState::Working => "the task is running",
            TaskState::InputRequired(_) => "the task is waiting for input",
            TaskState::Cancelled | TaskState::Ended(_) => return,
        };
        let message = Some(task.message.clone().unwrap_or_else(|| word.to_owned()));
        on_event(Event::Progress { progress: times.into(), total: None, message });
    }
}

fn result_of(task: &Task) -> Operation {
    Operation::TaskResult { id: task.id.clone() }
}

/// Whether a task is unchanged. Input requests that were just answered do not count as new.
fn is_unchanged(now: &Task, before: &Task) -> bool {
    now.state == before.state && now.message == before.message
}
