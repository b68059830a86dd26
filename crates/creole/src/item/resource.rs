//! Resources and resource templates.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use creole_proto::model;
use creole_proto::model::{CacheHints, Contents};

use crate::call::Context;
use crate::chain::BoxFuture;
use crate::item::tool::ToolError;
use crate::item::uri_template::UriTemplate;

/// Reads a resource, given its uri, the values of its template's variables, and the context of the call.
pub(crate) type ReadResource = dyn Fn(String, Variables, Context) -> BoxFuture<'static, Result<Vec<Contents>, ToolError>>
    + Send
    + Sync;

/// The values of a template's variables.
pub type Variables = BTreeMap<String, String>;

/// Suggests values for a partial input. `Variables` holds the values that are already set.
pub(crate) type Completer =
    Arc<dyn Fn(String, Variables) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// The return types of a resource's function: a `String`, one or several [`Contents`], or a `Result` of them.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    note = "a resource returns a `String`, a `Contents`, a `Vec<Contents>`, or a `Result` of one of them whose error is a \
            `ToolError`"
)]
pub trait IntoContents {
    /// The contents of the resource at this uri. Text gets this media type, if the resource has one.
    #[doc(hidden)]
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<Contents>, ToolError>;
}

impl IntoContents for String {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<Contents>, ToolError> {
        let (uri, mime_type) = (uri.to_owned(), mime_type.map(str::to_owned));
        Ok(vec![Contents { uri, mime_type, text: Some(self), ..Contents::default() }])
    }
}

impl IntoContents for Contents {
    fn into_contents(self, _: &str, _: Option<&str>) -> Result<Vec<Contents>, ToolError> {
        Ok(vec![self])
    }
}

impl IntoContents for Vec<Contents> {
    fn into_contents(self, _: &str, _: Option<&str>) -> Result<Vec<Contents>, ToolError> {
        Ok(self)
    }
}

impl<C: IntoContents> IntoContents for Result<C, ToolError> {
    fn into_contents(self, uri: &str, mime_type: Option<&str>) -> Result<Vec<Contents>, ToolError> {
        self?.into_contents(uri, mime_type)
    }
}

/// The media type of text that a function returns. It is set once the resource is built.
type TextType = Arc<OnceLock<String>>;

/// One resource.
#[derive(Clone)]
pub struct Resource {
    pub(crate) definition: model::Resource,
    pub(crate) read: Arc<ReadResource>,
    pub(crate) cache: CacheHints,
    text_type: TextType,
}

impl Resource {
    /// A resource that a function reads, given the uri and the context of the call.
    ///
    /// ```
    /// use creole::{Resource, ToolError};
    ///
    /// let motd = Resource::new("file:///etc/motd", "motd", |_, _| async {
    ///     let read = || std::fs::read_to_string("/etc/motd");
    ///     Ok::<_, ToolError>(tokio::task::spawn_blocking(read).await??)
    /// });
    /// let motd = motd.mime_type("text/plain");
    /// # drop(motd);
    /// ```
    pub fn new<F, Fut>(uri: &str, name: &str, read: F) -> Self
    where
        F: Fn(String, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoContents> + Send + 'static,
    {
        let definition =
            model::Resource { uri: uri.to_owned(), name: name.to_owned(), ..Default::default() };
        let text_type = TextType::default();
        let mime_type = Arc::clone(&text_type);
        let read = move |uri: String, _: Variables, context| -> BoxFuture<'static, _> {
            let (reading, mime_type) = (read(uri.clone(), context), Arc::clone(&mime_type));
            Box::pin(async move {
                reading.await.into_contents(&uri, mime_type.get().map(String::as_str))
            })
        };
        Self { definition, read: Arc::new(read), cache: CacheHints::NONE, text_type }
    }

    /// A resource with a fixed text.
    pub fn text(uri: &str, name: &str, mime_type: &str, text: &str) -> Self {
        let contents = Contents::text(uri, mime_type, text);
        let resource = Self::new(uri, name, move |_, _| {
            let contents = contents.clone();
            async move { contents }
        });
        resource.mime_type(mime_type)
    }

    /// A resource with the same function and another definition.
    #[must_use]
    #[doc(hidden)]
    pub fn with_definition(&self, definition: model::Resource) -> Self {
        Self { definition, ..self.clone() }
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.definition.title = Some(title.to_owned());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.definition.description = Some(about.to_owned());
        self
    }

    /// Sets the media type. It can be set once.
    #[must_use]
    pub fn mime_type(mut self, mime_type: &str) -> Self {
        _ = self.text_type.set(mime_type.to_owned());
        self.definition.mime_type = Some(mime_type.to_owned());
        self
    }

    /// Sets how long clients may cache the contents.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.cache = hints;
        self
    }
}

/// A resource template.
#[derive(Clone)]
pub struct Template {
    pub(crate) definition: model::ResourceTemplate,
    pub(crate) pattern: UriTemplate,
    pub(crate) read: Arc<ReadResource>,
    pub(crate) completers: BTreeMap<String, Completer>,
    text_type: TextType,
}

impl Template {
    /// A template whose resources a function reads. `{name}` matches one segment of a uri, `{+name}` any rest.
    pub fn new<F, Fut>(uri_template: &str, name: &str, read: F) -> Self
    where
        F: Fn(String, Variables, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoContents> + Send + 'static,
    {
        let definition = model::ResourceTemplate {
            uri_template: uri_template.to_owned(),
            name: name.to_owned(),
            ..Default::default()
        };
        let text_type = TextType::default();
        let mime_type = Arc::clone(&text_type);
        let read = move |uri: String, variables, context| -> BoxFuture<'static, _> {
            let reading = read(uri.clone(), variables, context);
            let mime_type = Arc::clone(&mime_type);
            Box::pin(async move {
                reading.await.into_contents(&uri, mime_type.get().map(String::as_str))
            })
        };
        Self {
            definition,
            pattern: UriTemplate::new(uri_template),
            read: Arc::new(read),
            completers: BTreeMap::new(),
            text_type,
        }
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.definition.title = Some(title.to_owned());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.definition.description = Some(about.to_owned());
        self
    }

    /// Sets the media type. It can be set once.
    #[must_use]
    pub fn mime_type(mut self, mime_type: &str) -> Self {
        _ = self.text_type.set(mime_type.to_owned());
        self.definition.mime_type = Some(mime_type.to_owned());
        self
    }

    /// Suggests values for a variable.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: &str, propose: F) -> Self
    where
        F: Fn(String, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(variable.to_owned(), completer(propose));
        self
    }
}

pub(crate) fn completer<F, Fut>(propose: F) -> Completer
where
    F: Fn(String, Variables) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Vec<String>> + Send + 'static,
{
    Arc::new(move |typed, settled| Box::pin(propose(typed, settled)))
}

impl fmt::Debug for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Resource")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Template")
            .field("definition", &self.definition)
            .finish_non_exhaustive()
    }
}
