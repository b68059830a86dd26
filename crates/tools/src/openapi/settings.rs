//! What is wanted of a document: which operations, under which names, and how the service is asked.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::client_credentials::ClientCredentials;
use crate::files::pattern::is_match;
use crate::recipe::http::{Auth, RequestMethod};
use crate::recipe::secret::{Secret, SecretSource};
use crate::recipe::tool::ToolHints;

/// What is wanted of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiSettings {
    /// The name that the configuration knows it by.
    pub name: String,
    /// Where the document is.
    pub document: DocumentSource,
    /// Where the service is. Without it the document is asked, if it is trusted.
    pub base: Option<String>,
    /// Whether the document is believed where the service is.
    pub trust_servers: bool,
    /// What stands before the name of each tool.
    pub prefix: String,
    /// The methods whose operations become tools.
    pub methods: Vec<RequestMethod>,
    /// The operations that become tools; all if it is empty.
    pub include: Vec<Selector>,
    /// The operations that do not.
    pub exclude: Vec<Selector>,
    /// Whether operations that are about to go become tools.
    pub deprecated: bool,
    /// What is said of single operations, by their `operationId` or by method and path.
    pub overrides: Vec<(String, OperationOverride)>,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// What is shown at every door.
    pub auth: Option<Auth>,
    /// The secrets for the security schemes of the document, by their names.
    pub security: Vec<(String, SchemeSecret)>,
    /// How often a request that may be repeated is tried again.
    pub retries: u32,
    /// Whether the name of the host may lead to addresses that are not public.
    pub allow_private: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many bytes a result may have.
    pub max_result_bytes: usize,
}

impl ApiSettings {
    /// What is usual: everything that reads becomes a tool.
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

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentSource {
    /// In a file.
    File(PathBuf),
    /// At an address.
    Url(String),
}

/// What is said of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationOverride {
    /// The name of its tool.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub about: Option<String>,
    /// What it does to the world.
    pub hints: ToolHints,
}

/// The secret for a security scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeSecret {
    /// A token.
    Bearer(SecretSource),
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: SecretSource,
    },
    /// The value of a key.
    Value(SecretSource),
    /// What tokens are given for.
    Client(ClientCredentials),
}

/// Operations, chosen by what they are called.
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

/// What an operation is called.
pub(super) struct OperationIdentity<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) tags: Vec<&'a str>,
}

impl Selector {
    /// Reads a selector: an `operationId`, `tag:NAME`, `/path` or `METHOD /path`; `*` stands for anything.
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

    /// Whether it chooses this operation.
    pub(super) fn matches(&self, called: &OperationIdentity<'_>) -> bool {
        match &self.kind {
            SelectorKind::Operation(pattern) => {
                called.id.is_some_and(|id| matches_pattern(pattern, id))
            }
            SelectorKind::Tag(pattern) => {
                called.tags.iter().any(|tag| matches_pattern(pattern, tag))
            }
            SelectorKind::Path(method, pattern) => {
                method.as_ref().is_none_or(|method| method == called.method)
                    && matches_pattern(pattern, called.path)
            }
        }
    }

    /// Whether it names what it chooses, so that also what writes is meant.
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
    is_match(&pattern, &text, |sign| *sign == '*', |sign, letter| sign == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_chosen_by_name_tag_path_and_method() {
        let called = OperationIdentity {
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
            assert!(Selector::new(text).matches(&called), "{text}");
        }
        for text in ["pets", "tag:pet", "/pets", "POST /pets/*", "tag:", ""] {
            assert!(!Selector::new(text).matches(&called), "{text}");
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
