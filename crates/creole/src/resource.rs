//! Resources and templates of resources.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use creole_proto::model;
use creole_proto::model::{CacheHints, Contents};

use crate::call::Context;
use crate::chain::BoxFuture;
use crate::tool::ToolError;
use crate::uri_template::UriTemplate;

/// Reads a resource: its uri, the values of its template's variables, and who asks.
pub(crate) type ReadResource = dyn Fn(String, Variables, Context) -> BoxFuture<'static, Result<Vec<Contents>, ToolError>>
    + Send
    + Sync;

/// The values of a template's variables.
pub type Variables = BTreeMap<String, String>;

/// Proposes values for what was typed so far; `Variables` holds what is settled already.
pub type Completer =
    Arc<dyn Fn(String, Variables) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// One resource.
#[derive(Clone)]
pub struct Resource {
    pub(crate) definition: model::Resource,
    pub(crate) read: Arc<ReadResource>,
    pub(crate) cache: CacheHints,
}

impl Resource {
    /// A resource that a function reads.
    pub fn new<F, Fut>(uri: &str, name: &str, read: F) -> Self
    where
        F: Fn(String, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Contents>, ToolError>> + Send + 'static,
    {
        let definition =
            model::Resource { uri: uri.to_owned(), name: name.to_owned(), ..Default::default() };
        let read = move |uri, _: Variables, context| -> BoxFuture<'static, _> {
            Box::pin(read(uri, context))
        };
        Self { definition, read: Arc::new(read), cache: CacheHints::NONE }
    }

    /// A resource that is a fixed text.
    pub fn text(uri: &str, name: &str, mime_type: &str, text: &str) -> Self {
        let contents = Contents::text(uri, mime_type, text);
        let resource = Self::new(uri, name, move |_, _| {
            let contents = contents.clone();
            async move { Ok(vec![contents]) }
        });
        resource.mime_type(mime_type)
    }

    /// The same way of reading for another resource, which is announced like this.
    #[must_use]
    pub fn with_definition(&self, definition: model::Resource) -> Self {
        Self { definition, ..self.clone() }
    }

    /// The name for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.definition.title = Some(title.to_owned());
        self
    }

    /// What it is.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.definition.description = Some(about.to_owned());
        self
    }

    /// Its media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: &str) -> Self {
        self.definition.mime_type = Some(mime_type.to_owned());
        self
    }

    /// How long what was read may be kept.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.cache = hints;
        self
    }
}

/// A family of resources.
#[derive(Clone)]
pub struct Template {
    pub(crate) definition: model::ResourceTemplate,
    pub(crate) pattern: UriTemplate,
    pub(crate) read: Arc<ReadResource>,
    pub(crate) completers: BTreeMap<String, Completer>,
}

impl Template {
    /// A family of resources that a function reads; `{name}` in the template stands for one part of a uri,
    /// `{+name}` for any rest.
    pub fn new<F, Fut>(uri_template: &str, name: &str, read: F) -> Self
    where
        F: Fn(String, Variables, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Contents>, ToolError>> + Send + 'static,
    {
        let definition = model::ResourceTemplate {
            uri_template: uri_template.to_owned(),
            name: name.to_owned(),
            ..Default::default()
        };
        let read = move |uri, variables, context| -> BoxFuture<'static, _> {
            Box::pin(read(uri, variables, context))
        };
        Self {
            definition,
            pattern: UriTemplate::new(uri_template),
            read: Arc::new(read),
            completers: BTreeMap::new(),
        }
    }

    /// The name for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.definition.title = Some(title.to_owned());
        self
    }

    /// What they are.
    #[must_use]
    pub fn about(mut self, about: &str) -> Self {
        self.definition.description = Some(about.to_owned());
        self
    }

    /// Their media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: &str) -> Self {
        self.definition.mime_type = Some(mime_type.to_owned());
        self
    }

    /// Proposes values for a variable.
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
