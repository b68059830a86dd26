//! The settings for a document: the selected operations, the names of their tools and the options of requests.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::files::pattern::is_match;
use crate::openapi::security::SchemeSecret;
use crate::recipe::http::{Auth, RequestMethod};
use crate::recipe::secret::Secret;
use crate::recipe::tool::ToolHints;

/// The settings for a document.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiSettings {
    /// Its name in the configuration.
    pub name: String,
    /// The source of the document.
    pub document: DocumentSource,
    /// The base URL of the service. Defaults to the document's, if that is trusted.
    pub base: Option<String>,
    /// Whether the document's base URL is trusted.
    pub trust_servers: bool,
    /// The prefix of each tool's name.
    pub prefix: String,
    /// The methods whose operations become tools.
    pub methods: Vec<RequestMethod>,
    /// The operations that become tools; all if it is empty.
    pub include: Vec<Selector>,
    /// The operations that are excluded.
    pub exclude: Vec<Selector>,
    /// Whether deprecated operations become tools.
    pub deprecated: bool,
    /// Overrides for single operations, by `operationId` or by method and path.
    pub overrides: Vec<(String, OperationOverride)>,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// The credentials of every request.
    pub auth: Option<Auth>,
    /// The secrets for the security schemes of the document, by name.
    pub security: Vec<(String, SchemeSecret)>,
    /// Maximum number of retries of an idempotent request.
    pub retries: u32,
    /// Whether the host name may resolve to non-public addresses.
    pub allow_private: bool,
    /// Maximum duration of a call.
    pub timeout: Duration,
    /// Maximum size of a result, in bytes.
    pub max_result_bytes: usize,
}

impl ApiSettings {
    /// The default settings: all reading operations become tools.
    pub fn new(name: &str, document: DocumentSource) -> Self {
        Self {
            name: name.to_owned(),
            document,
            base: None,
            trust_servers: false,
            prefix: String::new(),
            methods: vec![RequestMethod::Get],
            include: Vec::new(),
            exclude: Vec::new(),
            deprecated: false,
            overrides: Vec::new(),
            headers: Vec::new(),
            auth: None,
            security: Vec::new(),
            retries: 2,
            allow_private: false,
            timeout: Duration::from_secs(50),
            max_result_bytes: 1_048_576,
        }
    }
}

/// The source of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentSource {
    /// A file.
    File(PathBuf),
    /// A URL.
    Url(String),
}

/// The overrides for one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationOverride {
    /// The name of its tool.
    pub name: Option<String>,
    /// The display name.
    pub title: Option<String>,
    /// Its description.
    pub about: Option<String>,
    /// The hints about its behaviour.
    pub hints: ToolHints,
}

/// A selection of operations by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    text: String,
    kind: SelectorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SelectorKind {
    Operation(String),
    Tag(String),
    Path(Option<String>, String),
}

/// The names of an operation.
pub(super) struct OperationIdentity<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) tags: Vec<&'a str>,
}

impl Selector {
    /// Parses a selector: an `operationId`, `tag:NAME`, `/path` or `METHOD /path`; `*` matches anything.
    pub fn new(text: &str) -> Self {
        let kind = match (text.strip_prefix("tag:"), text.split_once(' ')) {
            (Some(tag), _) => SelectorKind::Tag(tag.to_owned()),
            (None, Some((method, path))) if path.starts_with('/') => {
                SelectorKind::Path(Some(method.to_ascii_uppercase()), path.to_owned())
            }
            _ if text.starts_with('/') => SelectorKind::Path(None, text.to_owned()),
            _ => SelectorKind::Operation(text.to_owned()),
        };
        Self { text: text.to_owned(), kind }
    }

    /// Whether it selects this operation.
    pub(super) fn matches(&self, identity: &OperationIdentity<'_>) -> bool {
        match &self.kind {
            SelectorKind::Operation(pattern) => {
                identity.id.is_some_and(|id| matches_pattern(pattern, id))
            }
            SelectorKind::Tag(pattern) => {
                identity.tags.iter().any(|tag| matches_pattern(pattern, tag))
            }
            SelectorKind::Path(method, pattern) => {
                method.as_ref().is_none_or(|method| method == identity.method)
                    && matches_pattern(pattern, identity.path)
            }
        }
    }

    /// Whether it names its operations explicitly, so that it includes writing ones.
    pub(super) fn is_explicit(&self) -> bool {
        match &self.kind {
            SelectorKind::Operation(pattern) => !pattern.contains('*'),
            SelectorKind::Tag(_) => false,
            SelectorKind::Path(method, _) => method.is_some(),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn matches_pattern(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    is_match(&pattern, &text, |sign| *sign == '*', |sign, character| sign == character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_chosen_by_name_tag_path_and_method() {
        let identity = OperationIdentity {
            id: Some("pets/list"),
            method: "GET",
            path: "/pets/{id}",
            tags: vec!["pets", "animals"],
        };
        for text in [
            "pets/list",
            "pets/*",
            "*",
            "tag:pets",
            "tag:a*",
            "/pets/{id}",
            "/pets*",
            "get /pets/*",
        ] {
            assert!(Selector::new(text).matches(&identity), "{text}");
        }
        for text in ["pets", "tag:pet", "/pets", "POST /pets/*", "tag:", ""] {
            assert!(!Selector::new(text).matches(&identity), "{text}");
        }
        assert!(
            Selector::new("createPet").is_explicit()
                && Selector::new("DELETE /pets/*").is_explicit()
        );
        assert!(
            !Selector::new("create*").is_explicit() && !Selector::new("tag:pets").is_explicit()
        );
    }
}
