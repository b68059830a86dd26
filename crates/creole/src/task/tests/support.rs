//! Tasks, callers and handlers for the tests.

use super::*;
use creole_test_wait::eventually_async;

pub(super) const PATIENCE: Duration = Duration::from_secs(3600);

pub(super) struct SilentChannel;

impl ClientChannel for SilentChannel {
    fn send_event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn request_input(
        &self,
        _: CallKey,
        _: InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(std::future::pending())
    }
}

pub(super) fn tasks_in(state: State, limits: TaskLimits) -> Tasks {
    Tasks::new(state, limits, Sealer::from_key(&[7; 32]), 2, broadcast::channel(64).0, None)
}

pub(super) fn tasks(limits: TaskLimits) -> Tasks {
    tasks_in(State::default(), limits)
}

pub(super) fn context(principal: &str, era: Era, tasking: TaskPreference) -> Context {
    let capabilities =
        ClientCapabilities { elicitation_form: true, tasks: true, ..ClientCapabilities::default() };
    let caller = Caller {
        rules: Revision::newest(era).rules(),
        capabilities: Arc::new(capabilities),
        client: None,
        log: None,
        progress: false,
        input_responses: None,
        extra: None,
        task_preference: tasking,
    };
    Context::new(
        CallKey(1),
        caller,
        Origin::new(principal.into()),
        Arc::new(SilentChannel),
        false,
        None,
    )
}

pub(super) fn modern(principal: &str) -> Context {
    context(principal, Era::Stateless, TaskPreference::Allowed)
}

pub(super) fn older(principal: &str) -> Context {
    context(principal, Era::Handshake, TaskPreference::Requested { ttl_ms: None })
}

pub(super) async fn make(tasks: &Tasks, context: Context, run: RunCall) -> Result<Task, Fault> {
    let operation = Operation::CallTool { name: "t".into(), arguments: None };
    match tasks.create(Call { operation, context }, run).await {
        Outcome::Complete(Payload::TaskCreated(task)) => Ok((*task).clone()),
        Outcome::Fail(fault) => Err(fault),
        other => panic!("no task: {other:?}"),
    }
}

pub(super) async fn ask(
    tasks: &Tasks,
    operation: Operation,
    context: &Context,
) -> Result<Payload, Fault> {
    match timeout(PATIENCE, tasks.handle_request(&operation, context, None))
        .await
        .expect("an answer in time")?
    {
        Outcome::Complete(payload) => Ok(payload),
        other => panic!("no payload: {other:?}"),
    }
}

pub(super) async fn get(tasks: &Tasks, id: &str, context: &Context) -> Result<TaskState, Fault> {
    match ask(tasks, Operation::GetTask { id: id.into() }, context).await? {
        Payload::Task(task) => Ok(task.state.clone()),
        other => panic!("no task: {other:?}"),
    }
}

/// Polls until the state is a wanted one.
pub(super) async fn until(tasks: &Tasks, id: &str, wanted: fn(&TaskState) -> bool) -> TaskState {
    eventually_async("the task has the wanted state", async || {
        let state = get(tasks, id, &modern("ada")).await.expect("a task");
        wanted(&state).then_some(state)
    })
    .await
}

pub(super) fn never() -> RunCall {
    Arc::new(|_| Box::pin(std::future::pending()))
}

pub(super) fn immediate_result(text: &'static str) -> RunCall {
    Arc::new(move |_| Box::pin(std::future::ready(done(text))))
}

pub(super) fn done(text: &str) -> Outcome {
    Outcome::Complete(Payload::Tool(creole_proto::model::ToolResult::text(text)))
}

/// Sends one input request, then returns the response.
pub(super) fn with_input_request() -> RunCall {
    Arc::new(|call| {
        let result = call.context.elicit_with("q", form("Which?", &json!({"type": "object"})));
        Box::pin(std::future::ready(match result {
            Ok(outcome) => done(&outcome.content.unwrap_or(Value::Null).to_string()),
            Err(ToolError::InputRequired(input_requests)) => {
                Outcome::InputRequired { requests: input_requests, request_state: None }
            }
            Err(other) => panic!("{other:?}"),
        }))
    })
}

pub(super) fn update(id: &str, response: &Value) -> Operation {
    let responses = Raw::from_value(&json!({"q": {"action": "accept", "content": response}}));
    Operation::UpdateTask { id: id.into(), responses }
}

pub(super) fn text(state: &TaskState) -> String {
    match state {
        TaskState::Ended(TaskOutcome::Result(result)) => {
            Raw::from_value(&result.content).as_str().to_owned()
        }
        other => format!("{other:?}"),
    }
}

pub(super) fn kind<T: std::fmt::Debug>(result: Result<T, Fault>) -> FaultKind {
    result.expect_err("a fault").kind
}
