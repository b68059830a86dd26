//! Tools: each has a name, a description and an async function.

mod handler;
mod output;

use std::fmt;
use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model;
use creole_proto::model::{
    KeyedInputRequest, TaskPreference, TaskSupport, ToolAnnotations, ToolResult,
};
use creole_proto::wire::Raw;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Context;
use crate::chain::BoxFuture;
pub use handler::Handler;
use handler::WithState;
pub use output::{IntoToolResult, Json};

type RunTool =
    dyn Fn(Value, Context) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync;

/// A tool: its definition and its function.
#[derive(Clone)]
pub struct Tool {
    pub(crate) definition: Arc<model::Tool>,
    pub(crate) requests_input_first: bool,
    pub(crate) run: Arc<RunTool>,
}

impl Tool {
    /// A tool whose schemas are derived from the types that the function takes and returns.
    ///
    /// The function is `async` and takes nothing, `(Arguments)`, `(Context)` or `(Arguments, Context)`. `Arguments`
    /// implements [`Deserialize`](serde::Deserialize) and [`JsonSchema`]. The function returns one of these, or a
    /// `Result` of one of these:
    ///
    /// - a `String` or `&'static str`, which becomes a block of text;
    /// - any value that implements [`Serialize`](serde::Serialize) and [`JsonSchema`], which becomes structured
    ///   content, and whose schema is announced;
    /// - [`Json`], which becomes structured content without an announced schema;
    /// - a `Vec` of [`Content`](creole_proto::model::Content), or a [`ToolResult`].
    ///
    /// The error of a `Result` is a [`ToolError`] or any [`std::error::Error`]. It should not implement `Serialize` and
    /// `JsonSchema` both: the whole `Result` would also be a value, and the compiler could not choose.
    ///
    /// ```
    /// use creole::{Context, Tool, ToolError};
    /// use schemars::JsonSchema;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Place {
    ///     /// The name of the city.
    ///     city: String,
    /// }
    ///
    /// #[derive(Serialize, JsonSchema)]
    /// struct Weather {
    ///     celsius: f64,
    /// }
    ///
    /// async fn weather(place: Place, context: Context) -> Result<Weather, ToolError> {
    ///     context.progress(0.5, Some(1.0), Some(&place.city)).await;
    ///     Ok(Weather { celsius: "21.5".parse()? })
    /// }
    ///
    /// async fn version() -> &'static str {
    ///     "1.0"
    /// }
    ///
    /// let weather = Tool::new("weather", "Tells the weather of a city", weather);
    /// let version = Tool::new("version", "Tells the version of the station", version);
    /// # drop((weather, version));
    /// ```
    ///
    /// When the function requests input from the client (see [`crate::input`]), it runs again from its beginning once
    /// the response is there. So everything before an input request must be safe to run twice.
    ///
    /// The function should not compute for long between two waits, because it holds a thread meanwhile. Over stdio it
    /// begins on the thread that reads the input. The connection notices after 100 to 200 ms that it computes, and goes on
    /// with another thread, for at most 16 such calls at a time. On other byte streams it holds up its connection. Compute
    /// in `tokio::task::spawn_blocking`, and check [`Context::is_cancelled`] there.
    ///
    /// ```compile_fail
    /// # use creole::Tool;
    /// // This is not an async function.
    /// Tool::new("wrong", "", || "text");
    /// ```
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
        let mut tool = Self::raw(name, about, schema_of::<A>(), run);
        if let Some(schema) = H::output_schema() {
            tool = tool.output_schema(schema);
        }
        tool
    }

    /// The same for a function whose first parameter is a state that it shares with other tools. Each call gets a
    /// clone, so the state is cheap to clone: an [`Arc`], or a struct of them.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use creole::{Server, Tool};
    ///
    /// async fn add(counter: Arc<AtomicU64>) -> u64 {
    ///     counter.fetch_add(1, Ordering::Relaxed) + 1
    /// }
    ///
    /// async fn reset(counter: Arc<AtomicU64>) {
    ///     counter.store(0, Ordering::Relaxed);
    /// }
    ///
    /// let counter = Arc::new(AtomicU64::new(0));
    /// let server = Server::new("counter")
    ///     .tool(Tool::with_state("add", "Adds one", &counter, add))
    ///     .tool(Tool::with_state("reset", "Starts again at zero", &counter, reset));
    /// # drop(server);
    /// ```
    pub fn with_state<S, A, M, F>(name: &str, about: &str, state: &S, function: F) -> Self
    where
        S: Clone,
        A: DeserializeOwned + JsonSchema + Send + 'static,
        WithState<S, F>: Handler<A, M>,
    {
        Self::new(name, about, WithState { state: state.clone(), function })
    }

    /// A tool with a custom schema, whose function takes the arguments as JSON.
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

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.definition_mut().title = Some(title.to_owned());
        self
    }

    /// Announces that the tool is read-only.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.hints(|hints| {
            hints.read_only_hint = Some(true);
            hints.open_world_hint = Some(false);
        })
    }

    /// Sets the annotations of the tool's behaviour.
    #[must_use]
    pub fn hints(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(self.definition_mut().annotations.get_or_insert_default());
        self
    }

    /// Sets whether the tool runs as a task: the client gets its result later, with `tasks/result`.
    #[must_use]
    pub fn task(mut self, support: TaskSupport) -> Self {
        self.definition_mut().task_support = support;
        self
    }

    /// The tool requests input before it becomes a task, if the client supports that: it runs in place until it calls
    /// [`Context::detach`].
    #[must_use]
    pub fn requests_input_first(mut self) -> Self {
        self.requests_input_first = true;
        self
    }

    /// Announces a custom schema of the structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: Raw) -> Self {
        self.definition_mut().output_schema = Some(schema);
        self
    }

    /// Announces the schema of the structured result, derived from its type. For functions that return [`Json`] or a
    /// [`ToolResult`].
    #[must_use]
    pub fn output<T: JsonSchema>(mut self) -> Self {
        self.definition_mut().output_schema = Some(schema_of::<T>());
        self
    }
}

impl Tool {
    /// The definition, for changes.
    pub(crate) fn definition_mut(&mut self) -> &mut model::Tool {
        Arc::make_mut(&mut self.definition)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tool").field("definition", &self.definition).finish_non_exhaustive()
    }
}

/// The schema of a type, without references to other documents.
pub(crate) fn schema_of<T: JsonSchema>() -> Raw {
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

impl Context {
    /// Continues the call as a task, if the client supports tasks. `?` ends the handler, the client gets the task,
    /// and the handler runs again from its beginning with the responses so far. Otherwise, and within a task, the
    /// handler just continues. For tools that [request input first](crate::Tool::requests_input_first).
    #[doc(hidden)]
    pub fn detach(&self) -> Result<(), ToolError> {
        let stays = self.is_task() || self.caller().task_preference == TaskPreference::Never;
        if stays { Ok(()) } else { Err(ToolError::Detach) }
    }
}

/// Why a tool ends without a result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolError {
    /// The tool failed. The model sees the text.
    Failed(String),
    /// The call is rejected with a fault.
    Fault(Box<Fault>),
    /// The client must respond to input requests first.
    InputRequired(Vec<KeyedInputRequest>),
    /// The call continues as a task.
    #[doc(hidden)]
    Detach,
}

impl ToolError {
    /// A failure whose text the model sees.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

/// Any error is a failure of the tool. The model sees its text and its causes.
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
