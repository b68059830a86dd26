//! What is wanted of a document: which operations, under which names, and how the service is asked.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::grant::Grant;
use crate::files::pattern::is_match;
use crate::recipe::http::{Auth, Verb};
use crate::recipe::secret::{Held, Secret};
use crate::recipe::tool::Hints;

/// What is wanted of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiSettings {
    /// The name that the configuration knows it by.
    pub name: String,
    /// Where the document is.
    pub document: Document,
    /// Where the service is. Without it the document is asked, if it is trusted.
    pub base: Option<String>,
    /// Whether the document is believed where the service is.
    pub trust_servers: bool,
    /// What stands before the name of each tool.
    pub prefix: String,
    /// The methods whose operations become tools.
    pub methods: Vec<Verb>,
    /// The operations that become tools; all if it is empty.
    pub include: Vec<Selector>,
    /// The operations that do not.
    pub exclude: Vec<Selector>,
    /// Whether operations that are about to go become tools.
    pub deprecated: bool,
    /// What is said of single operations, by their `operationId` or by method and path.
    pub overrides: Vec<(String, Override)>,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
    /// What is shown at every door.
    pub auth: Option<Auth>,
    /// The secrets for the security schemes of the document, by their names.
    pub security: Vec<(String, Given)>,
    /// How often a request that may be repeated is tried again.
    pub retries: u32,
    /// Whether the name of the host may lead to addresses that are not public.
    pub allow_private: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many bytes a result may have.
    pub longest: usize,
}

impl ApiSettings {
    /// What is usual: everything that reads becomes a tool.
    pub fn new(name: &str, document: Document) -> Self {
        Self {
            name: name.to_owned(),
            document,
            base: None,
            trust_servers: false,
            prefix: String::new(),
            methods: vec![Verb::Get],
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
            longest: 1_048_576,
        }
    }
}

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// In a file.
    File(PathBuf),
    /// At an address.
    Url(String),
}

/// What is said of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override {
    /// The name of its tool.
    pub name: Option<String>,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub about: Option<String>,
    /// What it does to the world.
    pub hints: Hints,
}

/// The secret for a security scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A token.
    Bearer(Held),
    /// A name and a password.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: Held,
    },
    /// The value of a key.
    Value(Held),
    /// What tokens are given for.
    Client(Grant),
}

/// Operations, chosen by what they are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Operation(String),
    Tag(String),
    Path(Option<String>, String),
}

/// What an operation is called.
pub(super) struct Called<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) tags: Vec<&'a str>,
}

impl Selector {
    /// Reads a selector: an `operationId`, `tag:NAME`, `/path` or `METHOD /path`; `*` stands for anything.
    pub fn new(text: &str) -> Self {
        let kind = match (text.strip_prefix("tag:"), text.split_once(' ')) {
            (Some(tag), _) => Kind::Tag(tag.to_owned()),
            (None, Some((method, path))) if path.starts_with('/') => {
                Kind::Path(Some(method.to_ascii_uppercase()), path.to_owned())
            }
            _ if text.starts_with('/') => Kind::Path(None, text.to_owned()),
            _ => Kind::Operation(text.to_owned()),
        };
        Self { text: text.to_owned(), kind }
    }

    /// Whether it chooses this operation.
    pub(super) fn chooses(&self, called: &Called<'_>) -> bool {
        match &self.kind {
            Kind::Operation(pattern) => called.id.is_some_and(|id| fits(pattern, id)),
            Kind::Tag(pattern) => called.tags.iter().any(|tag| fits(pattern, tag)),
            Kind::Path(method, pattern) => {
                method.as_ref().is_none_or(|method| method == called.method)
                    && fits(pattern, called.path)
            }
        }
    }

    /// Whether it names what it chooses, so that also what writes is meant.
    pub(super) fn names(&self) -> bool {
        match &self.kind {
            Kind::Operation(pattern) => !pattern.contains('*'),
            Kind::Tag(_) => false,
            Kind::Path(method, _) => method.is_some(),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    is_match(&pattern, &text, |sign| *sign == '*', |sign, letter| sign == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_chosen_by_name_tag_path_and_method() {
        let called = Called {
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
            assert!(Selector::new(text).chooses(&called), "{text}");
        }
        for text in ["pets", "tag:pet", "/pets", "POST /pets/*", "tag:", ""] {
            assert!(!Selector::new(text).chooses(&called), "{text}");
        }
        assert!(Selector::new("createPet").names() && Selector::new("DELETE /pets/*").names());
        assert!(!Selector::new("create*").names() && !Selector::new("tag:pets").names());
    }
}
