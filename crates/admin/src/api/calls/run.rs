//! Runs one operation of a server, as a client of a chosen revision within this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::http::Method;
use creole::client::{Client, ClientBuilder, LineServer};
use creole::internal::sync::Mutex;
use creole::internal::task::random_id;
use creole::internal::telemetry::Via;
use creole::stream::memory_pair;
use creole_proto::fault::Fault;
use creole_proto::model::{InputRequest, Level};
use creole_proto::operation::Event;
use creole_proto::revision::Revision;
use creole_proto::wire::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, interval_at, sleep, timeout};

use crate::Admin;
use crate::access::Caller;
use crate::api::calls::{open_stream, signed_out};
use crate::api::items::find_server;
use crate::clock;
use crate::host::ServerView;
use crate::http::events::{EventWriter, KEEP_ALIVE, StreamClosed};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::reply::Reply;
use crate::request::ApiRequest;
use crate::routes::{Answer, Route, schema};
use crate::settings::Role;

/// How long an operator may take to answer an input request.
const INPUT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The default and the maximum time of an operation, in milliseconds.
const DEFAULT_TIMEOUT: u64 = 60_000;
const MAX_TIMEOUT: u64 = 30 * 60_000;
/// How many events may wait to be written.
const EVENT_QUEUE: usize = 256;
/// The operations that can be run.
const METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

pub(in crate::api) fn routes() -> Vec<Route> {
    let run = Route::new(
        (Method::POST, "/servers/{server}/calls"),
        Role::Operate,
        "Runs one operation through the whole chain, as a client of a chosen revision",
        Answer::Events(&[
            ("started", schema::<RunStarted>),
            ("progress", schema::<RunProgress>),
            ("log", schema::<LogMessage>),
            ("input_request", schema::<InputNeeded>),
            ("result", schema::<RunResult>),
            ("error", schema::<RunError>),
            ("cancelled", schema::<RunCancelled>),
        ]),
        run,
    );
    vec![
        run.body::<NewRun>(),
        Route::act(
            Method::POST,
            "/calls/{call}/input",
            Role::Operate,
            "Answers an input request of a running operation",
            answer_input,
        )
        .body::<InputAnswer>(),
        Route::act(
            Method::DELETE,
            "/calls/{call}",
            Role::Operate,
            "Cancels a running operation",
            cancel,
        ),
    ]
}

/// An operation to run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRun {
    /// `tools/call`, `prompts/get` or `resources/read`.
    method: String,
    /// The parameters of the method, as in the protocol.
    #[schemars(with = "Map<String, Value>")]
    params: Raw,
    /// The client to act as.
    #[serde(default, rename = "as")]
    acting: ActingClient,
    /// How long it may take.
    timeout_ms: Option<u64>,
}

impl NewRun {
    /// A member of the parameters that is a text.
    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.params.as_object()?.get(name)?).ok()
    }
}

/// A client to act as.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ActingClient {
    /// Its revision. Default: the newest one.
    revision: Option<String>,
    /// What it declares: `elicitation`, `sampling`, `roots`. Default: all of them.
    capabilities: Option<Map<String, Value>>,
}

/// The answer to an input request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InputAnswer {
    /// The key of the input request.
    key: String,
    /// The response, as in the protocol.
    response: Option<Map<String, Value>>,
    /// Whether the client refuses to answer.
    #[serde(default)]
    decline: bool,
}

/// The operation has started.
#[derive(Serialize, JsonSchema)]
struct RunStarted {
    /// The id for its input responses and its cancellation.
    call: String,
    /// The revision of the client.
    revision: &'static str,
}

/// Progress of the operation.
#[derive(Serialize, JsonSchema)]
struct RunProgress {
    progress: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A log message of the server.
#[derive(Serialize, JsonSchema)]
struct LogMessage {
    level: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<String>,
    data: Value,
}

/// The server needs input.
#[derive(Serialize, JsonSchema)]
struct InputNeeded {
    /// The key for the answer.
    key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    kind: &'static str,
    /// The parameters of the request.
    params: Value,
    /// The number of the input request, from 1.
    round: u64,
}

/// The operation has succeeded.
#[derive(Serialize, JsonSchema)]
struct RunResult {
    /// The result, as the client of this revision gets it.
    result: Value,
    /// How long it took.
    duration_ms: f64,
    /// The ids of its calls in the list of calls.
    calls: Vec<String>,
}

/// The operation has failed.
#[derive(Serialize, JsonSchema)]
struct RunError {
    /// The code that the client got.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    /// The kind of the fault.
    fault: &'static str,
    /// What failed.
    message: String,
    /// Further data of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// How long it took.
    duration_ms: f64,
    /// The ids of its calls in the list of calls.
    calls: Vec<String>,
}

/// The operation was cancelled.
#[derive(Serialize, JsonSchema)]
struct RunCancelled {}

/// An event to write.
enum RunEvent {
    Progress(RunProgress),
    Log(LogMessage),
    Input(InputNeeded),
}

/// The operations that run.
#[derive(Default)]
pub(crate) struct Runs(Mutex<HashMap<String, Arc<Run>>>);

struct Run {
    /// Who started it.
    owner: String,
    cancelled: Notify,
    inputs: Mutex<HashMap<String, oneshot::Sender<Option<Raw>>>>,
    rounds: AtomicU64,
    events: mpsc::Sender<RunEvent>,
}

impl Run {
    /// Asks the operator, and waits for the response.
    async fn ask(self: Arc<Self>, request: InputRequest) -> Option<Raw> {
        let key = random_id().ok()?;
        let (sender, response) = oneshot::channel();
        self.inputs.lock().insert(key.clone(), sender);
        let (kind, params) = match request {
            InputRequest::Form { message, schema } => {
                let schema: Value = schema.decode().unwrap_or_default();
                let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
                ("elicitation/create", params)
            }
            InputRequest::Url { message, url, id } => {
                let params =
                    json!({"mode": "url", "message": message, "url": url, "elicitationId": id});
                ("elicitation/create", params)
            }
            InputRequest::Sample { params } => {
                ("sampling/createMessage", params.decode().unwrap_or_default())
            }
            InputRequest::Roots => ("roots/list", json!({})),
        };
        let round = self.rounds.fetch_add(1, Ordering::Relaxed) + 1;
        let needed = InputNeeded { key: key.clone(), kind, params, round };
        self.events.send(RunEvent::Input(needed)).await.ok()?;
        let response = timeout(INPUT_TIMEOUT, response).await;
        self.inputs.lock().remove(&key);
        response.ok()?.ok()?
    }

    /// Progress and log messages are dropped while the reader of the stream is slow.
    fn tell(&self, event: Event) {
        let event = match event {
            Event::Progress { progress, total, message } => {
                RunEvent::Progress(RunProgress { progress, total, message })
            }
            Event::Log { level, logger, data } => RunEvent::Log(LogMessage {
                level: level.name().to_owned(),
                logger,
                data: data.decode().unwrap_or_default(),
            }),
            Event::ElicitationCompleted(_) => return,
        };
        let _ = self.events.try_send(event);
    }
}

async fn run(admin: Arc<Admin>, request: ApiRequest) -> Result<Reply, Problem> {
    let wanted: NewRun = request.json()?;
    let server = find_server(&admin, request.name(0))?;
    let invalid = |detail: String| {
        Problem::new(ProblemCode::InvalidBody, "This operation cannot be run").detail(detail)
    };
    if !METHODS.contains(&wanted.method.as_str()) {
        return Err(invalid(format!("`method` must be one of {}", METHODS.join(", "))));
    }
    let member = if wanted.method == "resources/read" { "uri" } else { "name" };
    if wanted.text(member).is_none() {
        return Err(invalid(format!("`params` needs `{member}`")));
    }
    let revision = match wanted.acting.revision.as_deref() {
        None => Revision::ALL.into_iter().next_back(),
        Some(name) => Revision::from_name(name),
    };
    let revision = revision.ok_or_else(|| invalid("`revision` is unknown".to_owned()))?;
    let caller = request.caller()?.clone();
    let (writer, pieces) = open_stream(&admin)?;
    tokio::spawn(async move {
        let _ = execute(&admin, &server, caller, wanted, revision, writer).await;
    });
    Ok(Reply::events(pieces))
}

/// Runs an operation to its end, and writes what happens.
async fn execute(
    admin: &Admin,
    server: &ServerView,
    caller: Caller,
    wanted: NewRun,
    revision: Revision,
    mut writer: EventWriter,
) -> Result<(), StreamClosed> {
    let (events, mut queue) = mpsc::channel(EVENT_QUEUE);
    let run = Arc::new(Run {
        owner: caller.name().to_owned(),
        cancelled: Notify::new(),
        inputs: Mutex::default(),
        rounds: AtomicU64::new(0),
        events,
    });
    let id = random_id().map_err(|_| StreamClosed)?;
    admin.runs.0.lock().insert(id.clone(), Arc::clone(&run));
    let _registered = RegisteredRun(&admin.runs, id.clone());
    let started_at = clock::now();
    writer.send("started", &RunStarted { call: id, revision: revision.rules().name }).await?;
    let (start, limit) =
        (Instant::now(), wanted.timeout_ms.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT));
    let mut working = Box::pin(operate(server, &caller, wanted, revision, Arc::clone(&run)));
    let mut limit = Box::pin(sleep(Duration::from_millis(limit)));
    let mut silence = interval_at(Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    let ended = loop {
        tokio::select! {
            biased;
            event = queue.recv() => if let Some(event) = event {
                write(&mut writer, event).await?;
            },
            ended = &mut working => break Some(ended),
            () = run.cancelled.notified() => break None,
            () = &mut limit => break None,
            () = signed_out(&caller) => break None,
            () = writer.closed() => return Err(StreamClosed),
            _ = silence.tick() => writer.keep_alive().await?,
        }
    };
    drop(working);
    while let Ok(event) = queue.try_recv() {
        write(&mut writer, event).await?;
    }
    let (duration_ms, calls) =
        (clock::ms(start.elapsed()), own_calls(admin, &run.owner, &started_at));
    match ended {
        None => writer.send("cancelled", &RunCancelled {}).await,
        Some(Ok(result)) => {
            let result = result.decode().unwrap_or_default();
            writer.send("result", &RunResult { result, duration_ms, calls }).await
        }
        Some(Err(fault)) => {
            let error = RunError {
                code: fault.foreign_code,
                fault: fault.kind.name(),
                message: fault.detail.clone(),
                data: fault.data.as_ref().and_then(|data| data.decode().ok()),
                duration_ms,
                calls,
            };
            writer.send("error", &error).await
        }
    }
}

/// Removes an operation from the table when it ends.
struct RegisteredRun<'a>(&'a Runs, String);

impl Drop for RegisteredRun<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

async fn write(writer: &mut EventWriter, event: RunEvent) -> Result<(), StreamClosed> {
    match event {
        RunEvent::Progress(progress) => writer.send("progress", &progress).await,
        RunEvent::Log(message) => writer.send("log", &message).await,
        RunEvent::Input(needed) => writer.send("input_request", &needed).await,
    }
}

/// The ids of the calls that the console made for this caller since then, oldest first.
fn own_calls(admin: &Admin, owner: &str, since: &str) -> Vec<String> {
    let is_own = |call: &crate::live::call::CallSummary| {
        call.via == Via::Console.name()
            && call.principal == owner
            && call.started.as_str() >= since
            && METHODS.contains(&call.method.as_str())
    };
    let (calls, _) = admin.live.ring().find(is_own, 0, 16);
    calls.into_iter().rev().map(|call| call.id).collect()
}

/// Connects a client within this process, and runs the operation.
async fn operate(
    server: &ServerView,
    caller: &Caller,
    wanted: NewRun,
    revision: Revision,
    run: Arc<Run>,
) -> Result<Raw, Fault> {
    let (near, far) = memory_pair();
    let (service, principal) = (server.service.clone(), caller.principal.clone());
    let serving = tokio::spawn(async move {
        let (input, output) = far.split();
        // The other end reports how it ended.
        let _ = service.serve_principal(principal, Via::Console, input, output).await;
    });
    let _serving = AbortOnDrop(serving);
    let declares = |name: &str| match &wanted.acting.capabilities {
        None => true,
        Some(capabilities) => capabilities.contains_key(name),
    };
    let mut builder = ClientBuilder::new("creole-console", env!("CARGO_PKG_VERSION"))
        .revision(revision)
        .dialect(server.service.profile().dialect.clone());
    let ask = |run: &Arc<Run>| {
        let run = Arc::clone(run);
        move |request| Arc::clone(&run).ask(request)
    };
    if declares("elicitation") {
        builder = builder.on_form(ask(&run)).on_url(ask(&run));
    }
    if declares("sampling") {
        builder = builder.on_sampling(ask(&run));
    }
    if declares("roots") {
        builder = builder.roots(&[]);
    }
    let listener = Arc::clone(&run);
    let builder = builder.on_event(Level::Debug, move |event| listener.tell(event));
    let (input, output) = near.split();
    let transport = Box::new(LineServer::new(&server.name, input, output));
    let client = builder.connect_over(transport).await?;
    let result = call(&client, &wanted).await;
    client.close().await;
    result
}

async fn call(client: &Client, wanted: &NewRun) -> Result<Raw, Fault> {
    let text = |name: &str| wanted.text(name).unwrap_or_default();
    // The text of the arguments is sent as it is: a number keeps all its digits.
    let written = wanted.params.as_object().and_then(|params| params.get("arguments"));
    let arguments = written.and_then(|text| Raw::parse(text).ok());
    let arguments = &arguments.unwrap_or_else(|| Raw::from_static("{}"));
    match wanted.method.as_str() {
        "tools/call" => Ok(client.call_tool(&text("name"), arguments).await?.into_raw()),
        "prompts/get" => client.get_prompt(&text("name"), arguments).await,
        _ => client.read_resource(&text("uri")).await,
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The running operation that the caller started. Those of others are reported as unknown.
fn own_run(admin: &Admin, request: &ApiRequest) -> Result<Arc<Run>, Problem> {
    let found = admin.runs.0.lock().get(request.name(0)).map(Arc::clone);
    let caller = request.caller()?.name();
    let unknown = || {
        Problem::not_found("running operation", request.name(0))
            .detail("it has ended, or another caller started it")
    };
    found.filter(|run| run.owner == caller).ok_or_else(unknown)
}

async fn answer_input(admin: Arc<Admin>, request: ApiRequest) -> Result<(), Problem> {
    let answer: InputAnswer = request.json()?;
    let run = own_run(&admin, &request)?;
    let response = match (answer.response, answer.decline) {
        (Some(response), false) => Some(Raw::from_value(&response)),
        (None, true) => None,
        _ => {
            let title = "Send either `response` or `decline`";
            return Err(Problem::new(ProblemCode::InvalidBody, title));
        }
    };
    let waiting = run.inputs.lock().remove(&answer.key);
    let answered = || {
        Problem::new(ProblemCode::Conflict, "This input request is not open")
            .detail("it was answered, or the operation has ended")
    };
    waiting.ok_or_else(answered)?.send(response).map_err(|_| answered())
}

async fn cancel(admin: Arc<Admin>, request: ApiRequest) -> Result<(), Problem> {
    own_run(&admin, &request)?.cancelled.notify_one();
    Ok(())
}
