//! A peer made with rmcp, which supports 2026-07-28 and the earlier revisions.
//!
//! It performs the steps of its command line with the server after `--`, and prints the results as
//! one JSON document. `../README.md` describes both.

mod answers;
mod options;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, Implementation, ProtocolVersion,
    ReadResourceRequestParams, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceExt};
use serde_json::{Map, Value, json};

use crate::answers::Notes;
use crate::options::{Called, Options};

/// The timeout of one step, which is then reported as an error.
const STEP: Duration = Duration::from_secs(20);

/// A session whose input requests are answered by [`Notes`].
type Client = RunningService<RoleClient, Notes>;

/// The error of a step or of the session.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    match talk() {
        Ok(document) => {
            println!("{document}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("rmcp: no conversation: {failure} ({failure:?})");
            ExitCode::FAILURE
        }
    }
}

/// Runs the session on one thread and as one task: there a notification's handler, spawned before
/// the result is delivered, has run before the step that waits for the result continues.
fn talk() -> Result<Value, Failure> {
    let options = Options::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::spawn(converse(options)).await? })
}

/// Connects, performs the requested steps, and creates the document of their results.
async fn converse(options: Options) -> Result<Value, Failure> {
    let notes = Notes::default();
    let client = connect(&options, notes.clone()).await?;
    let info = client.peer_info().ok_or("rmcp tells nothing about the server")?;
    let mut document = Map::new();
    document.insert("sdk".into(), json!("rmcp"));
    // rmcp sends its own name and version here, not those of the program.
    document.insert("version".into(), json!(Implementation::from_build_env().version));
    document.insert("protocol".into(), json!(info.protocol_version));
    document.insert("server".into(), json!(info.server_info));
    let modern = info.protocol_version >= ProtocolVersion::V_2026_07_28;
    let mut steps = Steps { client, notes, modern, document, errors: Vec::new() };
    steps.perform(&options).await;
    let Steps { client, mut document, errors, .. } = steps;
    client.cancel().await?;
    document.insert("errors".into(), Value::Array(errors));
    Ok(Value::Object(document))
}

/// Connects to the server, or starts it.
async fn connect(options: &Options, notes: Notes) -> Result<Client, Failure> {
    if let Some(url) = &options.url {
        return negotiate(options, notes, StreamableHttpClientTransport::from_uri(url.as_str()))
            .await;
    }
    let mut command = tokio::process::Command::new(&options.command);
    command.args(&options.arguments);
    negotiate(options, notes, TokioChildProcess::new(command)?).await
}

/// Negotiates according to the mode. The default is that of `serve`.
async fn negotiate<T>(options: &Options, notes: Notes, server: T) -> Result<Client, Failure>
where
    T: Transport<RoleClient> + Send + 'static,
{
    let modern = || vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match options.mode.as_str() {
        "default" => return Ok(notes.serve(server).await?),
        "auto" => ClientLifecycleMode::Auto { preferred_versions: modern(), legacy_version: None },
        "legacy" => ClientLifecycleMode::Initialize,
        "modern" => ClientLifecycleMode::Discover { preferred_versions: modern() },
        other => return Err(format!("--mode {other} is not a mode").into()),
    };
    Ok(notes.serve_with_lifecycle(server, lifecycle).await?)
}

/// The running steps.
struct Steps {
    client: Client,
    notes: Notes,
    modern: bool,
    document: Map<String, Value>,
    errors: Vec<Value>,
}

impl Steps {
    /// Performs the requested steps, in the order of all peers.
    async fn perform(&mut self, options: &Options) {
        let tools = bounded(self.client.list_all_tools()).await;
        self.note("tools", tools.map(|all| names(all.iter().map(|tool| tool.name.as_ref()))));
        if let Some(called) = &options.call {
            self.call("call", called).await;
        }
        if let Some(uri) = &options.read {
            let all = bounded(self.client.list_all_resources()).await;
            self.note("resources", all.map(|all| names(all.iter().map(|one| one.uri.as_str()))));
            let params = ReadResourceRequestParams::new(uri);
            let read = bounded(self.client.read_resource(params)).await;
            self.note("read", read.map(|result| json!(result)));
        }
        if let Some(called) = &options.prompt {
            let all = bounded(self.client.list_all_prompts()).await;
            self.note("prompts", all.map(|all| names(all.iter().map(|one| one.name.as_str()))));
            let mut params = GetPromptRequestParams::new(&called.name);
            params.arguments = Some(called.arguments.clone());
            let prompt = bounded(self.client.get_prompt(params)).await;
            self.note("prompt", prompt.map(|result| json!(result)));
        }
        if let Some(called) = &options.progress {
            self.call("progress_call", called).await;
            self.document.insert("progress".into(), Value::Array(self.notes.progress()));
        }
        if let Some(called) = &options.elicit {
            self.call("elicit_call", called).await;
            self.document.insert("elicited".into(), json!(self.notes.elicited()));
        }
        if let Some(called) = &options.sample {
            self.call("sample_call", called).await;
            self.document.insert("sampled".into(), json!(self.notes.sampled()));
        }
        if let Some(called) = &options.roots {
            self.call("roots_call", called).await;
            self.document.insert("roots".into(), json!(self.notes.rooted()));
        }
        if let Some(called) = &options.list_changed {
            let heard = self.list_changed(called).await;
            self.document.insert("list_changed".into(), json!(heard.is_ok()));
            if let Err(failure) = heard {
                self.failed("list_changed", failure);
            }
        }
    }

    /// Calls a tool and stores its result under `step`.
    async fn call(&mut self, step: &str, called: &Called) {
        let result = bounded(self.client.call_tool(request(called))).await;
        self.note(step, result.map(|result| json!(result)));
    }

    /// Calls a tool that changes the list of tools, and waits for the notification: on a subscription
    /// since 2026-07-28, without one before.
    async fn list_changed(&mut self, called: &Called) -> Result<(), Failure> {
        if !self.modern {
            self.call("list_changed_call", called).await;
            let told = async {
                self.notes.tools_changed().await;
                Ok(())
            };
            return bounded(told).await;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = bounded(self.client.listen(filter)).await?;
        self.call("list_changed_call", called).await;
        match bounded(subscription.next()).await? {
            Some(ServerNotification::ToolListChangedNotification(_)) => Ok(()),
            other => Err(format!("the subscription gave {other:?}").into()),
        }
    }

    /// Stores the result of a step.
    fn note(&mut self, step: &str, came: Result<Value, Failure>) {
        match came {
            Ok(value) => {
                self.document.insert(step.into(), value);
            }
            Err(failure) => self.failed(step, failure),
        }
    }

    /// Stores an error of a step, with the code and data of the server, if any.
    fn failed(&mut self, step: &str, failure: Failure) {
        let note = match failure.downcast_ref::<ServiceError>() {
            Some(ServiceError::McpError(sent)) => json!({
                "step": step, "code": sent.code, "message": sent.message, "data": sent.data,
            }),
            _ => json!({ "step": step, "message": failure.to_string() }),
        };
        self.errors.push(note);
    }
}

/// The output of rmcp's future, or an error after the timeout of a step.
async fn bounded<T>(work: impl Future<Output = Result<T, ServiceError>>) -> Result<T, Failure> {
    match tokio::time::timeout(STEP, work).await {
        Ok(came) => Ok(came?),
        Err(_) => Err(format!("nothing came within {STEP:?}").into()),
    }
}

/// The request that calls a tool.
fn request(called: &Called) -> CallToolRequestParams {
    CallToolRequestParams::new(called.name.clone()).with_arguments(called.arguments.clone())
}

/// Names as a JSON array.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Value {
    all.map(Value::from).collect()
}
