//! Servers and callers for the tests of layers.

#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "only tests use these, including those of other crates"
)]

use creole::internal::sync::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use creole::internal::call::{ClientChannel, Origin};
use creole::{BoxFuture, Context, Middleware, Prompt, Resource, Server, Service, Tool, ToolError};
use creole_proto::fault::Fault;
use creole_proto::model::{Content, InputRequest, Level, ListKind, PromptResult, ToolResult};
use creole_proto::operation::{Caller, Event, Operation, Outcome, Payload};
use creole_proto::revision::Rules;
use creole_proto::server::{Call as Started, CallKey, InputResponse};
use creole_proto::wire::Raw;
use serde_json::Value;

/// A channel that discards all events.
pub struct SilentChannel;

impl ClientChannel for SilentChannel {
    fn send_event(&self, _: CallKey, _: Event) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn request_input(
        &self,
        _: CallKey,
        _: InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(async { Err("nobody is there".to_owned()) })
    }
}

/// A channel that records all events.
#[derive(Default)]
struct RecordingChannel(Mutex<Vec<Event>>);

impl ClientChannel for RecordingChannel {
    fn send_event(&self, _: CallKey, event: Event) -> BoxFuture<'_, ()> {
        self.0.lock().push(event);
        Box::pin(async {})
    }

    fn request_input(
        &self,
        _: CallKey,
        _: InputRequest,
        _: Option<Raw>,
    ) -> BoxFuture<'_, InputResponse> {
        Box::pin(async { Err("nobody is there".to_owned()) })
    }
}

/// The events that a client receives from a tool that reports this progress message and logs this JSON, behind the
/// layer.
pub async fn events_of(
    layer: impl Middleware + 'static,
    message: &'static str,
    data: &'static str,
) -> Vec<Event> {
    let tell = move |_, context: Context| -> BoxFuture<'static, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            context.progress(1.0, None, Some(message)).await;
            context.log(Level::Info, Some("teller"), &Raw::parse(data).unwrap()).await;
            Ok(ToolResult::text("told"))
        })
    };
    let tool = Tool::raw("tell", "Tells", any_object(), tell);
    let service = Server::new("teller").tool(tool).with(layer).start();
    let ears = Arc::new(RecordingChannel::default());
    let operation = Operation::CallTool { name: "tell".to_owned(), arguments: None };
    let caller = Caller { log: Some(Level::Debug), ..plain_caller() };
    let started = Started { key: CallKey(1), operation, caller };
    let outcome =
        service.start_call(started, Arc::clone(&ears) as _, Origin::new("a".into())).0.await;
    assert!(matches!(outcome, Outcome::Complete(_)), "{outcome:?}");
    std::mem::take(&mut ears.0.lock())
}

/// A caller of the newest revision without capabilities.
pub fn plain_caller() -> Caller {
    Caller {
        rules: Rules::CANONICAL,
        capabilities: Arc::default(),
        client: None,
        log: None,
        progress: false,
        input_responses: None,
        extra: None,
        task_preference: Default::default(),
    }
}

/// The outcome of an operation.
pub async fn ask(service: &Service, principal: &str, operation: Operation) -> Outcome {
    ask_as(service, Origin::new(principal.into()), operation).await
}

/// The same from this origin.
pub async fn ask_as(service: &Service, origin: Origin, operation: Operation) -> Outcome {
    let started = Started { key: CallKey(1), operation, caller: plain_caller() };
    service.start_call(started, Arc::new(SilentChannel), origin).0.await
}

/// The outcome of a tool call.
pub async fn call(service: &Service, principal: &str, tool: &str, arguments: &str) -> Outcome {
    let arguments = Some(Raw::parse(arguments).unwrap());
    ask(service, principal, Operation::CallTool { name: tool.to_owned(), arguments }).await
}

/// The names in a list.
pub async fn listed_names(service: &Service, kind: ListKind) -> Vec<String> {
    match ask(service, "a", Operation::List(kind, None)).await {
        Outcome::Complete(Payload::Page(page)) => {
            page.items.iter().map(|item| item.name().to_owned()).collect()
        }
        other => panic!("no page: {other:?}"),
    }
}

/// The listed definition of a tool.
pub async fn definition(service: &Service, tool: &str) -> Value {
    match ask(service, "a", Operation::List(ListKind::Tools, None)).await {
        Outcome::Complete(Payload::Page(page)) => {
            let item = page.items.iter().find(|item| item.name() == tool).unwrap();
            serde_json::from_str(crate::layers::definitions::json_edit::newest_json(item)).unwrap()
        }
        other => panic!("no page: {other:?}"),
    }
}

/// The text of a tool's result.
pub fn text(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Complete(Payload::Tool(result)) => match &result.content[..] {
            [Content::Text { text, .. }] => text,
            other => panic!("no text: {other:?}"),
        },
        other => panic!("no result: {other:?}"),
    }
}

/// The fault of a call.
pub fn fault(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Fail(fault) => fault,
        other => panic!("no fault: {other:?}"),
    }
}

fn any_object() -> Raw {
    Raw::parse(r#"{"type":"object"}"#).unwrap()
}

/// A server whose tool `wait` waits for this many seconds.
pub fn slow_service(layer: impl Middleware + 'static) -> Service {
    let wait = |arguments: Value, _| -> BoxFuture<'static, Result<ToolResult, ToolError>> {
        let seconds = arguments["seconds"].as_u64().unwrap_or(0);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(ToolResult::text("waited"))
        })
    };
    Server::new("slow").tool(Tool::raw("wait", "Waits", any_object(), wait)).with(layer).start()
}

/// Tools that fail a number of times before they succeed: `read` declares that it is read-only, `write` does not.
pub struct FlakyTools {
    calls: AtomicUsize,
    failures: AtomicUsize,
    fault: Fault,
    /// The arguments of the last call.
    last_arguments: RwLock<Value>,
    answer: ToolResult,
}

impl FlakyTools {
    /// A server with these tools, two resources and a prompt, behind the layer.
    pub fn serve(
        layer: impl Middleware + 'static,
        fault: Fault,
        failures: usize,
    ) -> (Service, Arc<Self>) {
        Self::serve_with_result(layer, fault, failures, ToolResult::text("done"))
    }

    /// Like [`Self::serve`], with another result.
    pub fn serve_with_result(
        layer: impl Middleware + 'static,
        fault: Fault,
        failures: usize,
        result: ToolResult,
    ) -> (Service, Arc<Self>) {
        let (calls, failures) = (AtomicUsize::new(0), AtomicUsize::new(failures));
        let given = RwLock::new(Value::Null);
        let flaky =
            Arc::new(Self { calls, failures, fault, last_arguments: given, answer: result });
        let schema =
            r#"{"type":"object","properties":{"a":{"type":"integer"},"token":{"type":"string"}}}"#;
        let schema = Raw::parse(schema).unwrap();
        let read = Tool::raw("read", "Reads", any_object(), Arc::clone(&flaky).run());
        let write = Tool::raw("write", "Writes", schema, Arc::clone(&flaky).run());
        let service = Server::new("flaky")
            .tool(read.read_only())
            .tool(write)
            .resource(Resource::text("test://open", "open", "text/plain", "open"))
            .resource(Resource::text("test://secret", "secret", "text/plain", "secret"))
            .prompt(Prompt::new("prompt", "Says something", |_, _| async {
                Ok::<_, ToolError>(PromptResult::default())
            }))
            .with(layer)
            .start();
        (service, flaky)
    }

    /// The number of tool calls.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Makes the next calls fail.
    pub fn fail(&self, times: usize) {
        self.failures.store(times, Ordering::SeqCst);
    }

    /// The arguments of the last call.
    pub fn last_arguments(&self) -> Value {
        self.last_arguments.read().clone()
    }

    fn run(
        self: Arc<Self>,
    ) -> impl Fn(Value, Context) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync
    {
        move |arguments, _| {
            let flaky = Arc::clone(&self);
            Box::pin(async move {
                flaky.calls.fetch_add(1, Ordering::SeqCst);
                *flaky.last_arguments.write() = arguments;
                let remaining = flaky.failures.load(Ordering::SeqCst);
                if remaining == 0 {
                    return Ok(flaky.answer.clone());
                }
                flaky.failures.store(remaining - 1, Ordering::SeqCst);
                Err(ToolError::Fault(Box::new(flaky.fault.clone())))
            })
        }
    }
}
