//! Prompts: message templates with named arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use creole_proto::model;
use creole_proto::model::{Content, PromptArgument, PromptMessage, PromptResult, Role};

use crate::call::Context;
use crate::chain::BoxFuture;
use crate::item::resource::{Completer, Variables, completer};
use crate::item::tool::ToolError;

type Render =
    dyn Fn(Variables, Context) -> BoxFuture<'static, Result<PromptResult, ToolError>> + Send + Sync;

/// The return types of a prompt's function: a `String`, which becomes one user message, messages, a [`PromptResult`],
/// or a `Result` of them.
#[diagnostic::on_unimplemented(
    message = "a prompt cannot return `{Self}`",
    note = "a prompt returns a `String`, a `Vec<PromptMessage>`, a `PromptResult`, or a `Result` of one of them whose error \
            is a `ToolError`"
)]
pub trait IntoPromptResult {
    /// The result of the prompt.
    #[doc(hidden)]
    fn into_prompt_result(self) -> Result<PromptResult, ToolError>;
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
        vec![PromptMessage { role: Role::User, content: Content::text(self) }].into_prompt_result()
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
        Ok(PromptResult { description: None, messages: self })
    }
}

impl IntoPromptResult for PromptResult {
    fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
        Ok(self)
    }
}

impl<R: IntoPromptResult> IntoPromptResult for Result<R, ToolError> {
    fn into_prompt_result(self) -> Result<PromptResult, ToolError> {
        self?.into_prompt_result()
    }
}

/// One prompt.
#[derive(Clone)]
pub struct Prompt {
    pub(crate) definition: model::Prompt,
    pub(crate) render: Arc<Render>,
    pub(crate) completers: BTreeMap<String, Completer>,
}

impl Prompt {
    /// A prompt that a function renders, given its arguments and the context of the call.
    ///
    /// ```
    /// use creole::Prompt;
    ///
    /// let review = Prompt::new("review", "Reviews a file", |arguments, _| async move {
    ///     format!("Please review {}.", arguments["path"])
    /// });
    /// let review = review.required("path", "The file to review");
    /// # drop(review);
    /// ```
    pub fn new<F, Fut>(name: &str, about: &str, render: F) -> Self
    where
        F: Fn(Variables, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoPromptResult> + Send + 'static,
    {
        let definition = model::Prompt {
            name: name.to_owned(),
            description: Some(about.to_owned()),
            ..Default::default()
        };
        let render = move |arguments, context| -> BoxFuture<'static, _> {
            let rendering = render(arguments, context);
            Box::pin(async move { rendering.await.into_prompt_result() })
        };
        Self { definition, render: Arc::new(render), completers: BTreeMap::new() }
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.definition.title = Some(title.to_owned());
        self
    }

    /// Adds a required argument.
    #[must_use]
    pub fn required(self, name: &str, about: &str) -> Self {
        self.argument(name, about, true)
    }

    /// Adds an optional argument.
    #[must_use]
    pub fn optional(self, name: &str, about: &str) -> Self {
        self.argument(name, about, false)
    }

    /// Suggests values for an argument.
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: &str, propose: F) -> Self
    where
        F: Fn(String, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(argument.to_owned(), completer(propose));
        self
    }

    fn argument(mut self, name: &str, about: &str, required: bool) -> Self {
        self.definition.arguments.push(PromptArgument {
            name: name.to_owned(),
            description: Some(about.to_owned()),
            required,
        });
        self
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prompt")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}
