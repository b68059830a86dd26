//! Tools: a name, a sentence, and an async function.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model;
use creole_proto::model::{Content, KeyedInputRequest, TaskSupport, ToolAnnotations, ToolResult};
use creole_proto::wire::Raw;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Context;
use crate::chain::BoxFuture;

type RunTool =
    dyn Fn(Value, Context) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync;

/// A tool: what is announced, and what runs.
#[derive(Clone)]
pub struct Tool {
    pub(crate) definition: Arc<model::Tool>,
    pub(crate) requests_input_first: bool,
    pub(crate) run: Arc<RunTool>,
}

impl Tool {
    /// A tool whose arguments' schema is derived from the type that the function takes.
    ///
    /// The function is `async fn(Arguments) -> Answer` or `async fn(Arguments, Context) -> Answer`. When it
    /// asks the client something (see [`crate::input`]) it is run again from its beginning once the answer is
    /// there, so what it does before a question must bear being done twice.
    ///
    /// The function must not compute for long between two waits. Over stdio it begins on the thread that reads the
    /// input: until its first wait, the connection answers nothing else, not even a ping. Compute in
    /// `tokio::task::spawn_blocking`, and ask [`Context::is_cancelled`] there.
    pub fn new<A, M, H>(name: &str, about: &str, handler: H) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        H: Handler<A, M>,
    {
        let handler = Arc::new(handler);
        let run = move |arguments: Value, context: Context| -> BoxFuture<'static, _> {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let arguments = serde_json::from_value(arguments).map_err(invalid_arguments)?;
                handler.run(arguments, context).await
            })
        };
        Self::raw(name, about, schema_of::<A>(), run)
    }

    /// A tool with a schema of one's own, whose function takes the arguments as JSON.
    pub fn raw<F>(name: &str, about: &str, input_schema: Raw, run: F) -> Self
    where
        F: Fn(Value, Context) -> BoxFuture<'static, Result<ToolResult, ToolError>>,
        F: Send + Sync + 'static,
    {
        let definition = model::Tool {
            name: name.to_owned(),
            title: None,
            description: about.to_owned(),
            input_schema,
            output_schema: None,
            annotations: None,
            task_support: TaskSupport::Forbidden,
            meta: None,
        };
        Self { definition: Arc::new(definition), requests_input_first: false, run: Arc::new(run) }
    }

    /// The name for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.definition_mut().title = Some(title.to_owned());
        self
    }

    /// Says that the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.hints(|hints| {
            hints.read_only_hint = Some(true);
            hints.open_world_hint = Some(false);
        })
    }

    /// Says more about the tool's behaviour.
    #[must_use]
    pub fn hints(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition_mut().annotations.get_or_insert_default());
        self
    }

    /// Says whether the tool runs as a task (see [`crate::task`]).
    #[must_use]
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.definition_mut().task_support = support;
        self
    }

    /// Says that the tool asks before it becomes a task, where such questions can be answered: it is run in
    /// place until it calls [`Context::detach`].
    #[must_use]
    pub fn requests_input_first(mut self) -> Self {
        self.requests_input_first = true;
        self
    }

    /// Announces a schema of one's own for the structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: Raw) -> Self {
        self.definition_mut().output_schema = Some(schema);
        self
    }

    /// Announces the structured result's schema, derived from its type.
    #[must_use]
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.definition_mut().output_schema = Some(schema_of::<T>());
        self
    }
}

impl Tool {
    /// What is announced, to be changed.
    pub(crate) fn definition_mut(&mut self) -> &mut model::Tool {
        Arc::make_mut(&mut self.definition)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tool").field("definition", &self.definition).finish_non_exhaustive()
    }
}

/// The schema of a type, plain and self-contained.
pub fn schema_of<T: JsonSchema>() -> Raw {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    Raw::from_value(&schema)
}

fn invalid_arguments(error: serde_json::Error) -> ToolError {
    ToolError::Fault(Box::new(Fault::new(FaultKind::InvalidArguments, error.to_string())))
}

/// What ends a tool before it has an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolError {
    /// It failed; the model is told.
    Failed(String),
    /// It was refused.
    Fault(Box<Fault>),
    /// The client has to answer something first.
    InputRequired(Vec<KeyedInputRequest>),
    /// It goes on as a task.
    Detach,
}

impl ToolError {
    /// A failure that the model is told.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

/// Any error is a failure of the tool: its text and its causes are told.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        Self::Failed(text)
    }
}

/// An async function that can be a tool.
pub trait Handler<A, M>: Send + Sync + 'static {
    /// Runs it.
    fn run(
        &self,
        arguments: A,
        context: Context,
    ) -> impl Future<Output = Result<ToolResult, ToolError>> + Send;
}

impl<A, F, R, Fut> Handler<A, fn(A) -> R> for F
where
    A: Send + 'static,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send,
    R: IntoToolResult,
{
    async fn run(&self, arguments: A, _: Context) -> Result<ToolResult, ToolError> {
        self(arguments).await.into_tool_result()
    }
}

impl<A, F, R, Fut> Handler<A, fn(A, Context) -> R> for F
where
    A: Send + 'static,
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send,
    R: IntoToolResult,
{
    async fn run(&self, arguments: A, context: Context) -> Result<ToolResult, ToolError> {
        self(arguments, context).await.into_tool_result()
    }
}

/// What a tool's function may return.
pub trait IntoToolResult {
    /// The result it stands for.
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(self))
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult { content: self, ..ToolResult::default() })
    }
}

/// Data as a structured result, with the same as text for clients that know no data.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::structured(Raw::from_value(&self.0)))
    }
}

impl<R: IntoToolResult, E: Into<ToolError>> IntoToolResult for Result<R, E> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        self.map_err(Into::into)?.into_tool_result()
    }
}
