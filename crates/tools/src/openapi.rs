//! Tools from OpenAPI documents: each operation of the described service becomes a tool.
//!
//! [`read`] takes a document with its settings and returns an [`Api`]: tools that can be added to a server, and a
//! report on every operation. Versions 3.0 and 3.1 are supported, in JSON and in YAML. By default only reading
//! operations become tools.

mod document_set;
mod names;
mod operation;
mod parameter;
pub mod report;
pub mod request;
mod schema;
pub mod security;
pub mod settings;
pub mod style;
pub mod tool;
mod tool_builder;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use creole::Server;
use creole::internal::fetch::{AllowedAddresses, Fetcher};

use crate::openapi::document_set::remote::DocumentError;
use crate::openapi::security::client_credentials::TokenCache;
use document_set::{DocumentSet, Node};
use report::ApiReport;
pub use security::SchemeSecret;
use security::SecuritySchemes;
pub use settings::{ApiSettings, DocumentSource, OperationOverride, Selector};
use tool::{ApiService, ApiTool, ServiceOptions};
use tool_builder::{ToolBuilder, check_settings, list_operations};

/// A service with an OpenAPI document.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    /// Its name in the configuration.
    pub name: String,
    /// The source of its document.
    pub document: DocumentSource,
    /// The files that were read: the document, if it is a file, and the files it refers to.
    pub files: Arc<[PathBuf]>,
    /// Its tools.
    pub tools: Arc<[ApiTool]>,
    /// The options of its requests.
    pub options: ServiceOptions,
    /// The report on its operations.
    pub report: Arc<ApiReport>,
    /// The reason why its document is unavailable, if it is. The service then has no tools, or those of an earlier
    /// document.
    pub failure: Option<String>,
}

/// The reason why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The part of the settings at fault.
    pub part: SettingsPart,
    /// The error.
    pub message: String,
    /// The correction.
    pub help: Option<String>,
}

/// A part of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsPart {
    /// The document.
    Document,
    /// This entry of `include`.
    Include(usize),
    /// This entry of `exclude`.
    Exclude(usize),
    /// This entry of `overrides`.
    Override(usize),
    /// This entry of `security`.
    Security(usize),
}

impl ApiError {
    fn new(part: SettingsPart, message: impl Into<String>) -> Self {
        Self { part, message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(formatter, "; {help}"))
    }
}

impl std::error::Error for ApiError {}

/// Reads a document and creates tools from its operations. If a URL currently has no OpenAPI document, the [`Api`] has
/// no tools and a failure reason: the service may be down and respond with another page.
///
/// # Errors
/// When the document cannot be used or is of another kind, when the service's address is unknown, or when the settings
/// name operations that the document does not have.
pub fn read(settings: &ApiSettings) -> Result<Api, ApiError> {
    let library = match &settings.document {
        DocumentSource::File(path) => DocumentSet::open(path).map_err(DocumentError::Invalid),
        DocumentSource::Url(url) => {
            document_set::remote::fetch_document(url, settings.allow_private)
        }
    };
    let library = match library {
        Ok(library) => library,
        Err(DocumentError::FetchFailed(reason)) => {
            return Ok(absent(settings, format!("cannot fetch the document: {reason}")));
        }
        Err(DocumentError::Unreadable(reason)) => {
            return Ok(absent(settings, format!("the fetched document is not OpenAPI: {reason}")));
        }
        Err(DocumentError::Invalid(reason)) => {
            let message = format!("cannot read the document: {reason}");
            return Err(ApiError::new(SettingsPart::Document, message));
        }
    };
    let is_old = match (is_version_3_0(library.document()), &settings.document) {
        (Err(error), DocumentSource::Url(_)) => return Ok(absent(settings, error.to_string())),
        (version, _) => version?,
    };
    let base = tool_builder::base_url::resolve_base(settings, library.document())?;
    let schemes = SecuritySchemes::new(&library, &settings.security)?;
    let written = list_operations(&library)?;
    check_settings(settings, &written)?;
    let maker = ToolBuilder::new(&library, settings, is_old, schemes);
    let (tools, operations) = maker.build_tools(&written)?;
    Ok(Api {
        name: settings.name.clone(),
        document: settings.document.clone(),
        files: match &settings.document {
            DocumentSource::File(path) => library.files(path).collect(),
            DocumentSource::Url(_) => Arc::default(),
        },
        tools: tools.into(),
        report: Arc::new(ApiReport { base: base.clone(), operations }),
        options: service_options(settings, base),
        failure: None,
    })
}

/// A service without its document.
fn absent(settings: &ApiSettings, failure: String) -> Api {
    let base = settings.base.clone().unwrap_or_default();
    Api {
        name: settings.name.clone(),
        document: settings.document.clone(),
        files: Arc::default(),
        tools: Arc::default(),
        report: Arc::new(ApiReport { base: base.clone(), operations: Vec::new() }),
        options: service_options(settings, base),
        failure: Some(match &settings.document {
            // The query part may contain a secret.
            DocumentSource::Url(url) => {
                let address = url.split(['?', '#']).next().unwrap_or(url);
                format!("{failure} ({address})")
            }
            DocumentSource::File(_) => failure,
        }),
    }
}

fn service_options(settings: &ApiSettings, base: String) -> ServiceOptions {
    ServiceOptions {
        base,
        headers: settings.headers.clone(),
        auth: settings.auth.clone(),
        retries: settings.retries,
        allow_private: settings.allow_private,
        timeout: settings.timeout,
        max_result_bytes: settings.max_result_bytes,
    }
}

impl Api {
    /// Adds its tools to a server.
    pub fn add(&self, mut server: Server) -> Server {
        let reach = if self.options.allow_private {
            AllowedAddresses::Anywhere
        } else {
            AllowedAddresses::Public
        };
        let is_encrypted = self.options.base.starts_with("https:");
        let fetcher = Fetcher::new(reach, is_encrypted);
        let tokens = TokenCache::default();
        let service =
            Arc::new(ApiService { options: self.options.clone(), fetcher, reach, tokens });
        match &self.failure {
            Some(cause) => {
                let (openapi, reason) = (&*self.name, &**cause);
                tracing::warn!(target: "creole", openapi, reason, "cannot fetch an OpenAPI document");
            }
            None => tracing::info!("{}: {}", self.name, self.report),
        }
        for index in 0..self.tools.len() {
            if let Some(tool) = ApiTool::make(&self.tools, index, &service) {
                server = server.tool(tool);
            }
        }
        server
    }
}

/// Whether a document is of version 3.0, among the supported ones.
fn is_version_3_0(document: Node<'_>) -> Result<bool, ApiError> {
    let said = |key: &str| match document.value.get(key) {
        Some(serde_json::Value::String(text)) => Some(text.clone()),
        Some(number @ serde_json::Value::Number(_)) => Some(number.to_string()),
        _ => None,
    };
    let (version, help) = match (said("openapi"), said("swagger")) {
        (Some(version), _) if version == "3.0" || version.starts_with("3.0.") => return Ok(true),
        (Some(version), _) if version == "3.1" || version.starts_with("3.1.") => return Ok(false),
        (Some(version), _) => (format!("OpenAPI {version}"), "3.0 and 3.1 are supported"),
        (None, Some(version)) => (
            format!("Swagger {version}"),
            "convert it to OpenAPI 3, for example with `npx swagger2openapi`",
        ),
        (None, None) => {
            ("not an OpenAPI document".to_owned(), "an OpenAPI document begins with `openapi: 3.…`")
        }
    };
    Err(ApiError::new(SettingsPart::Document, format!("the document is {version}")).help(help))
}

#[cfg(test)]
mod tests;
