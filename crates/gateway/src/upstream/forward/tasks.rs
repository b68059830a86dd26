//! Follows tasks of upstreams to their end for callers that do not support tasks.

mod cancel_on_drop;

use std::sync::Arc;
use std::time::Duration;

use creole::Context;
use creole::internal::input::missing_capability;
use creole::internal::telemetry::trace::OutgoingTrace;
use creole::proto::client::CallRequest;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{
    ClientCapabilities, KeyedInputRequest, Task, TaskOutcome, TaskPreference, TaskState,
};
use creole::proto::operation::{Operation, Outcome, Payload};
use creole::proto::revision::TaskModel;
use creole::proto::wire::Raw;
use tokio::time::sleep;

use cancel_on_drop::CancelOnDrop;

use crate::upstream::connections::pool::UpstreamLease;
use crate::upstream::forward::upstream_request;
use crate::upstream::observed_request::ObservedRequest;
use crate::upstream::park;
use crate::upstream::park::request_state::RequestState;
use crate::upstream::park::{ParkedCalls, PreparedCall};
use crate::upstream::relay;
use crate::upstream::settings::UpstreamSettings;
use crate::upstream::upstream_metrics::{RequestMeter, UpstreamMetrics};

/// The minimum and the maximum interval between two polls of a task.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Follows a task of an upstream to its end.
pub(crate) struct TaskFollower<'a> {
    pub(crate) settings: &'a UpstreamSettings,
    /// Measures the requests about the task, if metrics are counted.
    pub(crate) metrics: Option<&'a UpstreamMetrics>,
    pub(crate) parked_calls: &'a Arc<ParkedCalls>,
    /// The session that the task belongs to.
    pub(crate) lease: UpstreamLease,
    pub(crate) context: &'a Context,
    pub(crate) capabilities: &'a Arc<ClientCapabilities>,
    /// Whether no other call can reach that session, so that the task ends with its follower.
    pub(crate) ends_with_call: bool,
}

impl TaskFollower<'_> {
    /// The outcome of a call that became a task: a task here too, if the caller follows tasks.
    pub(crate) async fn start(self, task: &Task) -> Outcome {
        let goes_on = self.context.caller().task_preference != TaskPreference::Never
            && !self.context.is_task();
        match goes_on && !self.ends_with_call {
            true => Outcome::Detach(Some(self.request_state(&task.id))),
            // The caller's input responses were for the call.
            false => self.run(&task.id).await,
        }
    }

    /// Continues a task with the caller's input responses.
    pub(crate) async fn resume(self, id: &str) -> Outcome {
        if self.context.input_responses().next().is_some()
            && let Err(fault) = self.send_responses(id).await
        {
            return fault.into();
        }
        self.run(id).await
    }

    /// Polls the task until it has ended or needs input. If the caller cancels, the task is cancelled.
    async fn run(self, id: &str) -> Outcome {
        let trace = self.context.trace_for_upstream(None, &self.settings.propagation);
        let cancel = Operation::CancelTask { id: id.to_owned() };
        let cancellation = self.task_request(cancel, trace);
        let connection = self.lease.connection.clone();
        let abandon = CancelOnDrop::new(connection, self.context.clone(), cancellation);
        let outcome = self.poll_until_done(id).await;
        abandon.disarm();
        outcome
    }

    async fn poll_until_done(self, id: &str) -> Outcome {
        loop {
            let task = match self.poll_once(id).await {
                Ok(task) => task,
                Err(fault) => return fault.into(),
            };
            if self.fetches_results(&task) {
                return self.fetch_result(id).await;
            }
            match &task.state {
                TaskState::Working => {}
                TaskState::InputRequired(input_requests) if input_requests.is_empty() => {}
                TaskState::InputRequired(input_requests) => {
                    return self.request_input(id, input_requests.clone());
                }
                TaskState::Cancelled => {
                    let detail = "the upstream cancelled the task";
                    return Fault::new(FaultKind::TaskCancelled, detail).into();
                }
                TaskState::Ended(TaskOutcome::Relayed(result)) => {
                    return Outcome::Complete(Payload::Relayed(result.clone()));
                }
                TaskState::Ended(TaskOutcome::Result(result)) => {
                    return Outcome::Complete(Payload::Tool(result.clone()));
                }
                TaskState::Ended(TaskOutcome::Fault(fault)) => return fault.clone().into(),
            }
            sleep(Duration::from_millis(task.poll_ms).clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL))
                .await;
        }
    }

    async fn poll_once(&self, id: &str) -> Result<Arc<Task>, Fault> {
        let id = id.to_owned();
        match self.send(Operation::GetTask { id }).await {
            Outcome::Complete(Payload::Task(task)) => Ok(task),
            Outcome::Fail(fault) => Err(fault),
            _ => Err(Fault::new(FaultKind::Internal, "the upstream did not return its task")),
        }
    }

    /// Whether a separate request fetches the result or the input requests of the task.
    fn fetches_results(&self, task: &Task) -> bool {
        let asks_inline =
            self.lease.connection.greeting().rules.tasks == TaskModel::ClientRequested;
        asks_inline && !matches!(task.state, TaskState::Working | TaskState::Cancelled)
    }

    /// Fetches the result of the task's call. Input requests reach the caller as in any call.
    async fn fetch_result(mut self, id: &str) -> Outcome {
        let operation = Operation::TaskResult { id: id.to_owned() };
        let rules = self.lease.connection.greeting().rules;
        let observed = ObservedRequest::for_call(self.settings, self.context, &operation, rules);
        let measured = operation.clone();
        let meter = self.metrics.map(|metrics| RequestMeter::start(metrics, rules, &measured));
        let mut request = upstream_request::upstream_request(
            operation,
            self.context,
            observed.trace(self.settings, self.context),
            self.capabilities,
            TaskPreference::Never,
            rules,
        );
        request.options.input_responses = None;
        if park::needs_parking(self.context, &self.lease, self.capabilities) {
            let beginning = PreparedCall {
                request,
                mirrored_headers: Arc::default(),
                known_responses: Vec::new(),
                may_repeat: false,
                tap: observed.frame_tap(),
            };
            let outcome = self.parked_calls.run(beginning, self.lease, self.context).await;
            if let Some(meter) = meter {
                meter.end_own(&outcome);
            }
            observed.end(&outcome);
            return outcome;
        }
        let connection = &self.lease.connection;
        let mut call =
            connection.start_recorded_call(request, Arc::default(), observed.frame_tap());
        let outcome = relay::relay_call(&mut call, &mut self.lease, self.context).await;
        if let Some(meter) = meter {
            meter.end_own(&outcome);
        }
        observed.end(&outcome);
        outcome
    }

    /// Ends the round with the input requests of the task. If the caller accepts input requests while it waits,
    /// [`creole::input`] sends them and repeats the call.
    fn request_input(&self, id: &str, input_requests: Vec<KeyedInputRequest>) -> Outcome {
        let is_missing = |ask: &&KeyedInputRequest| !ask.question.is_allowed_by(self.capabilities);
        let missing: Vec<_> =
            input_requests.iter().filter(is_missing).map(|ask| &ask.question).collect();
        match missing.is_empty() {
            true => Outcome::InputRequired {
                requests: input_requests,
                request_state: Some(self.request_state(id)),
            },
            false => missing_capability(&missing).into(),
        }
    }

    fn request_state(&self, id: &str) -> String {
        RequestState::Task { id: id.to_owned(), lane: self.lease.lane }.encode()
    }

    /// Sends the caller's input responses to the task.
    async fn send_responses(&self, id: &str) -> Result<(), Fault> {
        let responses: std::collections::BTreeMap<_, _> = self.context.input_responses().collect();
        self.update(id, Raw::from_value(&responses)).await
    }

    async fn update(&self, id: &str, responses: Raw) -> Result<(), Fault> {
        let id = id.to_owned();
        match self.send(Operation::UpdateTask { id, responses }).await {
            Outcome::Fail(fault) => Err(fault),
            _ => Ok(()),
        }
    }

    async fn send(&self, operation: Operation) -> Outcome {
        let connection = &self.lease.connection;
        let rules = connection.greeting().rules;
        let observed = ObservedRequest::for_call(self.settings, self.context, &operation, rules);
        let trace = observed.trace(self.settings, self.context);
        let measured = operation.clone();
        let meter = self.metrics.map(|metrics| RequestMeter::start(metrics, rules, &measured));
        let request = self.task_request(operation, trace);
        let tap = observed.frame_tap();
        let mut call = connection.start_recorded_call(request, Arc::default(), tap);
        let outcome = call.outcome(drop).await;
        if let Some(meter) = meter {
            meter.end_own(&outcome);
        }
        observed.end(&outcome);
        outcome
    }

    fn task_request(&self, operation: Operation, trace: OutgoingTrace) -> CallRequest {
        let tasking = TaskPreference::Allowed;
        let (context, rules) = (self.context, self.lease.connection.greeting().rules);
        let mut request = upstream_request::upstream_request(
            operation,
            context,
            trace,
            self.capabilities,
            tasking,
            rules,
        );
        request.options.input_responses = None;
        request
    }
}
