//! OpenAPI documents as tools: each operation of a service that is described in one becomes a tool.
//!
//! [`read`] takes a document and what is wanted of it, and gives an [`Api`]: tools that are ready to be added to a
//! server, and a report on what became of every operation. Versions 3.0 and 3.1 are known, in JSON and in YAML. Only
//! what reads becomes a tool, unless more is asked for.

mod base;
mod body;
mod clean;
pub mod grant;
mod library;
mod maker;
mod names;
mod operation;
mod parameter;
mod remote;
pub mod report;
pub mod request;
mod schema;
pub mod security;
pub mod settings;
pub mod style;
pub mod tool;
pub mod upload;
mod yaml;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use creole::Server;
use creole::client::http::fetch::{Fetcher, Reach};

use grant::Tokens;
use library::{Library, Node};
use maker::{Maker, check_named, operations};
use remote::NoDocument;
use report::Report;
use security::Doors;
pub use settings::{ApiSettings, Document, Given, Override, Selector};
use tool::{ApiTool, Service, Terms};

/// A service that is described in a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Api {
    /// The name that the configuration knows it by.
    pub name: String,
    /// Where its document is.
    pub document: Document,
    /// The files that were read: that of the document, if it is in one, and those that it refers to.
    pub files: Arc<[PathBuf]>,
    /// Its tools.
    pub tools: Arc<[ApiTool]>,
    /// How it is asked.
    pub terms: Terms,
    /// What became of its operations.
    pub report: Arc<Report>,
    /// Why there is no document at its address, if there is none. It then has no tools, or those of an earlier document.
    pub failure: Option<String>,
}

/// Why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// What of the settings is at fault.
    pub part: Part,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub help: Option<String>,
}

/// A part of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The document.
    Document,
    /// This one of `include`.
    Include(usize),
    /// This one of `exclude`.
    Exclude(usize),
    /// This one of `overrides`.
    Override(usize),
    /// This one of `security`.
    Security(usize),
}

impl ApiError {
    fn new(part: Part, what: impl Into<String>) -> Self {
        Self { part, what: what.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        self.help.iter().try_for_each(|help| write!(formatter, "; {help}"))
    }
}

impl std::error::Error for ApiError {}

/// Reads a document and makes tools of its operations. If there is no OpenAPI document at an address now, the [`Api`] has
/// no tools and says why: the service may be down and answer with a page of another kind.
///
/// # Errors
/// When the document cannot be used or is of another kind, when it is not known where the service is, or when the
/// settings name what the document does not have.
pub fn read(settings: &ApiSettings) -> Result<Api, ApiError> {
    let library = match &settings.document {
        Document::File(path) => Library::open(path).map_err(NoDocument::Unusable),
        Document::Url(url) => remote::fetched(url, settings.allow_private),
    };
    let library = match library {
        Ok(library) => library,
        Err(NoDocument::Unfetched(why)) => {
            return Ok(absent(settings, format!("the document cannot be fetched: {why}")));
        }
        Err(NoDocument::Unreadable(why)) => {
            return Ok(absent(settings, format!("what was fetched is no OpenAPI document: {why}")));
        }
        Err(NoDocument::Unusable(why)) => {
            let what = format!("the document cannot be read: {why}");
            return Err(ApiError::new(Part::Document, what));
        }
    };
    let is_old = match (version(library.document()), &settings.document) {
        (Err(error), Document::Url(_)) => return Ok(absent(settings, error.to_string())),
        (version, _) => version?,
    };
    let base = base::base(settings, library.document())?;
    let doors = Doors::new(&library, &settings.security)?;
    let written = operations(&library)?;
    check_named(settings, &written)?;
    let maker = Maker::new(&library, settings, is_old, doors);
    let (tools, operations) = maker.make(&written)?;
    Ok(Api {
        name: settings.name.clone(),
        document: settings.document.clone(),
        files: match &settings.document {
            Document::File(path) => library.files(path).collect(),
            Document::Url(_) => Arc::default(),
        },
        tools: tools.into(),
        report: Arc::new(Report { base: base.clone(), operations }),
        terms: terms(settings, base),
        failure: None,
    })
}

/// A service whose document is not there.
fn absent(settings: &ApiSettings, failure: String) -> Api {
    let base = settings.base.clone().unwrap_or_default();
    Api {
        name: settings.name.clone(),
        document: settings.document.clone(),
        files: Arc::default(),
        tools: Arc::default(),
        report: Arc::new(Report { base: base.clone(), operations: Vec::new() }),
        terms: terms(settings, base),
        failure: Some(match &settings.document {
            // Behind the `?` there may be a secret.
            Document::Url(url) => {
                let address = url.split(['?', '#']).next().unwrap_or(url);
                format!("{failure} ({address})")
            }
            Document::File(_) => failure,
        }),
    }
}

fn terms(settings: &ApiSettings, base: String) -> Terms {
    Terms {
        base,
        headers: settings.headers.clone(),
        auth: settings.auth.clone(),
        retries: settings.retries,
        allow_private: settings.allow_private,
        timeout: settings.timeout,
        longest: settings.longest,
    }
}

impl Api {
    /// Adds its tools to a server.
    pub fn add(&self, mut server: Server) -> Server {
        let reach = if self.terms.allow_private { Reach::Anywhere } else { Reach::Public };
        let is_encrypted = self.terms.base.starts_with("https:");
        let fetcher = Fetcher::new(reach, is_encrypted);
        let tokens = Tokens::default();
        let service = Arc::new(Service { terms: self.terms.clone(), fetcher, reach, tokens });
        match &self.failure {
            Some(why) => {
                let (openapi, reason) = (&*self.name, &**why);
                tracing::warn!(target: "creole", openapi, reason, "not reached");
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

/// Whether a document is of version 3.0, of those that are known.
fn version(document: Node<'_>) -> Result<bool, ApiError> {
    let said = |key: &str| match document.value.get(key) {
        Some(serde_json::Value::String(text)) => Some(text.clone()),
        Some(number @ serde_json::Value::Number(_)) => Some(number.to_string()),
        _ => None,
    };
    let (version, help) = match (said("openapi"), said("swagger")) {
        (Some(version), _) if version == "3.0" || version.starts_with("3.0.") => return Ok(true),
        (Some(version), _) if version == "3.1" || version.starts_with("3.1.") => return Ok(false),
        (Some(version), _) => (format!("of OpenAPI {version}"), "3.0 and 3.1 are known"),
        (None, Some(version)) => (
            format!("of Swagger {version}"),
            "convert it to OpenAPI 3, for example with `npx swagger2openapi`",
        ),
        (None, None) => ("no OpenAPI document".to_owned(), "it begins with `openapi: 3.…`"),
    };
    Err(ApiError::new(Part::Document, format!("the document is {version}")).help(help))
}

#[cfg(test)]
mod tests;
