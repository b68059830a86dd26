//! Which operations of a document become tools, and what they are called.

use std::collections::HashSet;

use super::clean::sentence;
use super::library::{Library, Node};
use super::names::{self, Names};
use super::operation::{Written, make};
use super::report::{Fate, Kept};
use super::schema::Schemas;
use super::security::Doors;
use super::settings::{ApiSettings, Called, Override, Selector};
use super::tool::ApiTool;
use super::{ApiError, Part, base};
use crate::recipe::http::Verb;
use crate::recipe::tool::Hints;

/// How many operations a document may have.
const MOST_OPERATIONS: usize = 10_000;
/// How many bytes a report says of an operation at once.
const MOST_SAID: usize = 300;
/// How many bytes the description of a tool may have.
const MOST_ABOUT: usize = 1_024;

/// The operations of a document, in the order of their paths.
pub(super) fn operations(library: &Library) -> Result<Vec<Found<'_>>, ApiError> {
    let mut found = Vec::new();
    for (path, item) in library.document().get("paths").into_iter().flat_map(Node::members) {
        if !path.starts_with('/') {
            continue;
        }
        let item = library.resolve(item).unwrap_or(item);
        for method in ["get", "post", "put", "patch", "delete", "head", "options", "trace"] {
            // A reference in the place of an operation is not allowed, and common.
            let node = item.get(method).map(|node| library.resolve(node).unwrap_or(node));
            if let Some(node) = node.filter(|node| node.value.is_object()) {
                found.push(Found { path, item, node, method: method.to_ascii_uppercase() });
            }
        }
        if found.len() > MOST_OPERATIONS {
            let what = format!("the document has more than {MOST_OPERATIONS} operations");
            return Err(ApiError::new(Part::Document, what));
        }
    }
    Ok(found)
}

/// An operation as it was found.
pub(super) struct Found<'a> {
    path: &'a str,
    item: Node<'a>,
    node: Node<'a>,
    method: String,
}

impl<'a> Found<'a> {
    fn id(&self) -> Option<&'a str> {
        self.node.text("operationId").filter(|id| !id.trim().is_empty())
    }

    /// Its method and path.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn called(&self) -> Called<'_> {
        let tags = self.node.get("tags").into_iter().flat_map(Node::items);
        let tags = tags.filter_map(|tag| tag.value.as_str()).collect();
        Called { id: self.id(), method: &self.method, path: self.path, tags }
    }

    fn verb(&self) -> Option<Verb> {
        match self.method.as_str() {
            "GET" => Some(Verb::Get),
            "POST" => Some(Verb::Post),
            "PUT" => Some(Verb::Put),
            "PATCH" => Some(Verb::Patch),
            "DELETE" => Some(Verb::Delete),
            _ => None,
        }
    }
}

/// That everything is there that the settings name: who mistypes what is to be left out would offer it.
pub(super) fn check_named(settings: &ApiSettings, written: &[Found<'_>]) -> Result<(), ApiError> {
    let chosen = |selector: &Selector| written.iter().any(|it| selector.chooses(&it.called()));
    let lists = [
        (&settings.include, Part::Include as fn(usize) -> Part),
        (&settings.exclude, Part::Exclude as fn(usize) -> Part),
    ];
    let help = "an operation is chosen by its `operationId`, `tag:NAME`, `/path` or `METHOD /path`; `*` stands for \
                anything";
    for (selectors, part) in lists {
        if let Some(index) = selectors.iter().position(|selector| !chosen(selector)) {
            let what = format!("`{}` chooses no operation of the document", selectors[index]);
            return Err(ApiError::new(part(index), what).help(help));
        }
    }
    let is_named = |name: &str| written.iter().any(|it| it.id() == Some(name) || it.name() == name);
    match settings.overrides.iter().position(|(name, _)| !is_named(name)) {
        None => Ok(()),
        Some(index) => {
            let what = format!("the document has no operation `{}`", settings.overrides[index].0);
            let help = "write its `operationId`, or its method and path as in `\"GET /pets\"`";
            Err(ApiError::new(Part::Override(index), what).help(help))
        }
    }
}

/// Makes tools of operations.
pub(super) struct Maker<'a> {
    library: &'a Library,
    settings: &'a ApiSettings,
    schemas: Schemas<'a>,
    doors: Doors,
    names: Names,
    tools: Vec<ApiTool>,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        library: &'a Library,
        settings: &'a ApiSettings,
        is_old: bool,
        doors: Doors,
    ) -> Self {
        let (schemas, names) = (Schemas::new(library, is_old), Names::default());
        Self { library, settings, schemas, doors, names, tools: Vec::new() }
    }

    /// The tools, and what became of each operation.
    pub(super) fn make(
        mut self,
        written: &[Found<'a>],
    ) -> Result<(Vec<ApiTool>, Vec<Fate>), ApiError> {
        self.reserve(written)?;
        let fates = written.iter().map(|found| self.fate(found)).collect();
        Ok((self.tools, fates))
    }

    /// Takes the names that somebody chose, before others are given away.
    fn reserve(&mut self, written: &[Found<'a>]) -> Result<(), ApiError> {
        for (index, (_, own)) in self.settings.overrides.iter().enumerate() {
            if let Some(name) = &own.name
                && !self.names.take(name)
            {
                let what = format!("two operations are called `{name}`");
                return Err(ApiError::new(Part::Override(index), what));
            }
        }
        let mut seen = HashSet::new();
        for (index, (name, _)) in self.settings.overrides.iter().enumerate() {
            let operation = written.iter().find(|it| it.id() == Some(name) || it.name() == *name);
            if !seen.insert(operation.map(Found::name)) {
                let what = format!("`{name}` is an operation of which more is said above");
                return Err(ApiError::new(Part::Override(index), what));
            }
        }
        Ok(())
    }

    fn fate(&mut self, found: &Found<'a>) -> Fate {
        let outcome = self.wanted(found).and_then(|verb| self.tool(found, verb));
        // A report is read at a terminal, and a document may be anybody's.
        let clean = |text: String| sentence(&text, MOST_SAID);
        let outcome = outcome.map_err(clean).map(|kept| Kept {
            renamed: kept.renamed.map(clean),
            notes: kept.notes.into_iter().map(clean).collect(),
            ..kept
        });
        Fate { operation: clean(found.name()), outcome }
    }

    /// The method of an operation, if it is to become a tool; why not, otherwise.
    fn wanted(&self, found: &Found<'a>) -> Result<Verb, String> {
        let (settings, called) = (self.settings, found.called());
        let Some(verb) = found.verb() else {
            let method = &found.method;
            return Err(format!(
                "its method is {method}, which brings nothing that a tool could show"
            ));
        };
        if settings.exclude.iter().any(|selector| selector.chooses(&called)) {
            return Err("it is chosen by `exclude`".to_owned());
        }
        let chosen = settings.include.iter().filter(|selector| selector.chooses(&called));
        let chosen: Vec<&Selector> = chosen.collect();
        let is_named = chosen.iter().any(|selector| selector.names());
        if !settings.include.is_empty() && chosen.is_empty() {
            return Err("it is not chosen by `include`".to_owned());
        }
        if !settings.methods.contains(&verb) && !is_named {
            return Err(format!("it is a {}, and `methods` does not have that", found.method));
        }
        if found.node.is("deprecated") && !settings.deprecated && !is_named {
            return Err("it is deprecated".to_owned());
        }
        let document = self.library.document();
        match base::elsewhere(found.node, found.item, document) {
            Some(host) => Err(format!("it is served by {}", sentence(&host, 100))),
            None => Ok(verb),
        }
    }

    fn tool(&mut self, found: &Found<'a>, verb: Verb) -> Result<Kept, String> {
        let written = Written { path: found.path, verb, item: found.item, node: found.node };
        let has_auth = self.settings.auth.is_some();
        let made = make(self.library, &mut self.schemas, &self.doors, &written, has_auth)?;
        let own = self.own(found);
        let (name, renamed) = self.name(found, &own);
        let usual = Hints {
            read_only: Some(verb == Verb::Get),
            destructive: matches!(verb, Verb::Delete | Verb::Put).then_some(true),
            idempotent: (verb != Verb::Get).then(|| verb.is_idempotent()),
            open_world: Some(true),
        };
        self.tools.push(ApiTool {
            name: name.clone(),
            title: own.title.clone(),
            about: own.about.clone().unwrap_or_else(|| about(found)),
            schema: made.schema,
            hints: Hints {
                read_only: own.hints.read_only.or(usual.read_only),
                destructive: own.hints.destructive.or(usual.destructive),
                idempotent: own.hints.idempotent.or(usual.idempotent),
                open_world: own.hints.open_world.or(usual.open_world),
            },
            operation: made.operation,
        });
        Ok(Kept { tool: name, renamed, notes: made.notes })
    }

    fn own(&self, found: &Found<'a>) -> Override {
        let is_it = |name: &str| found.id() == Some(name) || found.name() == name;
        let own = self.settings.overrides.iter().find(|(name, _)| is_it(name));
        own.map(|(_, own)| own.clone()).unwrap_or_default()
    }

    /// The name of a tool, and why it is not what the document calls the operation.
    fn name(&mut self, found: &Found<'a>, own: &Override) -> (String, Option<String>) {
        if let Some(name) = &own.name {
            return (name.clone(), Some("named by the configuration".to_owned()));
        }
        let of_id = found.id().map(names::snake).filter(|name| !name.is_empty());
        let (wished, why) = match of_id {
            Some(name) => (name, None),
            None => (
                names::of_path(&found.method, found.path),
                Some("it has no `operationId`".to_owned()),
            ),
        };
        let name = self.names.give(&self.settings.prefix, &wished);
        let is_as_wished = name.strip_prefix(&self.settings.prefix) == Some(&wished);
        let changed = || match wished.len() > name.len() {
            true => format!("`{wished}` is too long"),
            false => format!("there are several `{wished}`"),
        };
        let why = why.or_else(|| (!is_as_wished).then(changed));
        (name, why)
    }
}

/// What an operation does, for the model.
fn about(found: &Found<'_>) -> String {
    let text = |key: &str| found.node.text(key).unwrap_or_default().trim();
    let (summary, description) = (text("summary"), text("description"));
    let both = match (summary.is_empty(), description.is_empty()) {
        (true, true) => found.name(),
        (false, true) => summary.to_owned(),
        (true, false) => description.to_owned(),
        (false, false) if description.starts_with(summary) => description.to_owned(),
        (false, false) => format!("{summary}\n\n{description}"),
    };
    sentence(&both, MOST_ABOUT)
}
