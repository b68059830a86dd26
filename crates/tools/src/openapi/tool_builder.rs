//! Selects the operations of a document that become tools, and names them.

pub(crate) mod base_url;

use std::collections::HashSet;

use super::document_set::{DocumentSet, Node, clean_text};
use super::operation::{OperationSource, build_operation};
use super::report::{GeneratedTool, OperationOutcome};
use super::schema::SchemaInliner;
use super::security::SecuritySchemes;
use super::settings::{ApiSettings, OperationIdentity, OperationOverride, Selector};
use super::tool::ApiTool;
use super::{ApiError, SettingsPart};
use crate::openapi::names;
use crate::openapi::names::ToolNames;
use crate::recipe::http::RequestMethod;
use crate::recipe::tool::ToolHints;

/// Maximum number of operations of a document.
const MAX_OPERATIONS: usize = 10_000;
/// Maximum size of a text about an operation in the report, in bytes.
const MAX_REPORT_BYTES: usize = 300;
/// Maximum size of a tool's description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 1_024;

/// The operations of a document, ordered by path.
pub(super) fn list_operations(library: &DocumentSet) -> Result<Vec<OperationEntry<'_>>, ApiError> {
    let mut found = Vec::new();
    for (path, item) in library.document().get("paths").into_iter().flat_map(Node::members) {
        if !path.starts_with('/') {
            continue;
        }
        let item = library.resolve(item).unwrap_or(item);
        for method in ["get", "post", "put", "patch", "delete", "head", "options", "trace"] {
            // A reference in place of an operation is not allowed, but common.
            let node = item.get(method).map(|node| library.resolve(node).unwrap_or(node));
            if let Some(node) = node.filter(|node| node.value.is_object()) {
                found.push(OperationEntry {
                    path,
                    item,
                    node,
                    method: method.to_ascii_uppercase(),
                });
            }
        }
        if found.len() > MAX_OPERATIONS {
            let message = format!("the document has more than {MAX_OPERATIONS} operations");
            return Err(ApiError::new(SettingsPart::Document, message));
        }
    }
    Ok(found)
}

/// An operation as found in the document.
pub(super) struct OperationEntry<'a> {
    path: &'a str,
    item: Node<'a>,
    node: Node<'a>,
    method: String,
}

impl<'a> OperationEntry<'a> {
    fn id(&self) -> Option<&'a str> {
        self.node.text("operationId").filter(|id| !id.trim().is_empty())
    }

    /// Its method and path.
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn identity(&self) -> OperationIdentity<'_> {
        let tags = self.node.get("tags").into_iter().flat_map(Node::items);
        let tags = tags.filter_map(|tag| tag.value.as_str()).collect();
        OperationIdentity { id: self.id(), method: &self.method, path: self.path, tags }
    }

    fn http_method(&self) -> Option<RequestMethod> {
        match self.method.as_str() {
            "GET" => Some(RequestMethod::Get),
            "POST" => Some(RequestMethod::Post),
            "PUT" => Some(RequestMethod::Put),
            "PATCH" => Some(RequestMethod::Patch),
            "DELETE" => Some(RequestMethod::Delete),
            _ => None,
        }
    }
}

/// Checks that the document has everything that the settings name. A misspelt exclusion would otherwise offer the
/// operation.
pub(super) fn check_settings(
    settings: &ApiSettings,
    written: &[OperationEntry<'_>],
) -> Result<(), ApiError> {
    let chosen =
        |selector: &Selector| written.iter().any(|entry| selector.matches(&entry.identity()));
    let lists = [
        (&settings.include, SettingsPart::Include as fn(usize) -> SettingsPart),
        (&settings.exclude, SettingsPart::Exclude as fn(usize) -> SettingsPart),
    ];
    let help = "select operations by `operationId`, `tag:NAME`, `/path` or `METHOD /path`; `*` \
        matches any characters";
    for (selectors, part) in lists {
        if let Some(index) = selectors.iter().position(|selector| !chosen(selector)) {
            let message = format!("`{}` matches no operation of the document", selectors[index]);
            return Err(ApiError::new(part(index), message).help(help));
        }
    }
    let is_named =
        |name: &str| written.iter().any(|entry| entry.id() == Some(name) || entry.name() == name);
    match settings.overrides.iter().position(|(name, _)| !is_named(name)) {
        None => Ok(()),
        Some(index) => {
            let message =
                format!("the document has no operation `{}`", settings.overrides[index].0);
            let help = "write its `operationId`, or its method and path such as `\"GET /pets\"`";
            Err(ApiError::new(SettingsPart::Override(index), message).help(help))
        }
    }
}

/// Creates tools from operations.
pub(super) struct ToolBuilder<'a> {
    library: &'a DocumentSet,
    settings: &'a ApiSettings,
    schemas: SchemaInliner<'a>,
    schemes: SecuritySchemes,
    names: ToolNames,
    tools: Vec<ApiTool>,
}

impl<'a> ToolBuilder<'a> {
    pub(super) fn new(
        library: &'a DocumentSet,
        settings: &'a ApiSettings,
        is_old: bool,
        schemes: SecuritySchemes,
    ) -> Self {
        let (schemas, names) = (SchemaInliner::new(library, is_old), ToolNames::default());
        Self { library, settings, schemas, schemes, names, tools: Vec::new() }
    }

    /// The tools, and the outcome of each operation.
    pub(super) fn build_tools(
        mut self,
        written: &[OperationEntry<'a>],
    ) -> Result<(Vec<ApiTool>, Vec<OperationOutcome>), ApiError> {
        self.reserve(written)?;
        let outcomes = written.iter().map(|entry| self.build_outcome(entry)).collect();
        Ok((self.tools, outcomes))
    }

    /// Reserves the configured names before others are assigned.
    fn reserve(&mut self, written: &[OperationEntry<'a>]) -> Result<(), ApiError> {
        for (index, (_, own)) in self.settings.overrides.iter().enumerate() {
            if let Some(name) = &own.name
                && !self.names.reserve(name)
            {
                let message = format!("two operations have the name `{name}`");
                return Err(ApiError::new(SettingsPart::Override(index), message));
            }
        }
        let mut seen = HashSet::new();
        for (index, (name, _)) in self.settings.overrides.iter().enumerate() {
            let operation =
                written.iter().find(|entry| entry.id() == Some(name) || entry.name() == *name);
            if !seen.insert(operation.map(OperationEntry::name)) {
                let message = format!("the operation `{name}` is configured twice");
                return Err(ApiError::new(SettingsPart::Override(index), message));
            }
        }
        Ok(())
    }

    fn build_outcome(&mut self, entry: &OperationEntry<'a>) -> OperationOutcome {
        let outcome = self.select_method(entry).and_then(|verb| self.build_tool(entry, verb));
        // The report is shown on a terminal, and the document may be untrusted.
        let clean = |text: String| clean_text(&text, MAX_REPORT_BYTES);
        let outcome = outcome.map_err(clean).map(|tool| GeneratedTool {
            rename_reason: tool.rename_reason.map(clean),
            notes: tool.notes.into_iter().map(clean).collect(),
            ..tool
        });
        OperationOutcome { operation: clean(entry.name()), outcome }
    }

    /// The method of an operation that becomes a tool; otherwise the reason why it does not.
    fn select_method(&self, entry: &OperationEntry<'a>) -> Result<RequestMethod, String> {
        let (settings, identity) = (self.settings, entry.identity());
        let Some(verb) = entry.http_method() else {
            let method = &entry.method;
            return Err(format!("its method {method} has no response body"));
        };
        if settings.exclude.iter().any(|selector| selector.matches(&identity)) {
            return Err("it matches `exclude`".to_owned());
        }
        let chosen = settings.include.iter().filter(|selector| selector.matches(&identity));
        let chosen: Vec<&Selector> = chosen.collect();
        let is_named = chosen.iter().any(|selector| selector.is_explicit());
        if !settings.include.is_empty() && chosen.is_empty() {
            return Err("it does not match `include`".to_owned());
        }
        if !settings.methods.contains(&verb) && !is_named {
            return Err(format!("its method {} is not in `methods`", entry.method));
        }
        if entry.node.is_true("deprecated") && !settings.deprecated && !is_named {
            return Err("it is deprecated".to_owned());
        }
        let document = self.library.document();
        match base_url::other_host(entry.node, entry.item, document) {
            Some(host) => Err(format!("its server is {}", clean_text(&host, 100))),
            None => Ok(verb),
        }
    }

    fn build_tool(
        &mut self,
        entry: &OperationEntry<'a>,
        verb: RequestMethod,
    ) -> Result<GeneratedTool, String> {
        let written =
            OperationSource { path: entry.path, verb, item: entry.item, node: entry.node };
        let has_auth = self.settings.auth.is_some();
        let made =
            build_operation(self.library, &mut self.schemas, &self.schemes, &written, has_auth)?;
        let own = self.override_for(entry);
        let (name, renamed) = self.name(entry, &own);
        let usual = ToolHints {
            read_only: Some(verb == RequestMethod::Get),
            destructive: matches!(verb, RequestMethod::Delete | RequestMethod::Put).then_some(true),
            idempotent: (verb != RequestMethod::Get).then(|| verb.is_idempotent()),
            open_world: Some(true),
        };
        self.tools.push(ApiTool {
            name: name.clone(),
            title: own.title.clone(),
            about: own.about.clone().unwrap_or_else(|| describe_operation(entry)),
            schema: made.schema,
            hints: ToolHints {
                read_only: own.hints.read_only.or(usual.read_only),
                destructive: own.hints.destructive.or(usual.destructive),
                idempotent: own.hints.idempotent.or(usual.idempotent),
                open_world: own.hints.open_world.or(usual.open_world),
            },
            operation: made.operation,
        });
        Ok(GeneratedTool { tool: name, rename_reason: renamed, notes: made.notes })
    }

    fn override_for(&self, entry: &OperationEntry<'a>) -> OperationOverride {
        let is_match = |name: &str| entry.id() == Some(name) || entry.name() == name;
        let own = self.settings.overrides.iter().find(|(name, _)| is_match(name));
        own.map(|(_, own)| own.clone()).unwrap_or_default()
    }

    /// The name of a tool, and the reason why it differs from the document's.
    fn name(
        &mut self,
        entry: &OperationEntry<'a>,
        own: &OperationOverride,
    ) -> (String, Option<String>) {
        if let Some(name) = &own.name {
            return (name.clone(), Some("named in the configuration".to_owned()));
        }
        let of_id = entry.id().map(names::to_snake_case).filter(|name| !name.is_empty());
        let (wished, reason) = match of_id {
            Some(name) => (name, None),
            None => (
                names::name_of_path(&entry.method, entry.path),
                Some("it has no `operationId`".to_owned()),
            ),
        };
        let name = self.names.assign(&self.settings.prefix, &wished);
        let is_as_wished = name.strip_prefix(&self.settings.prefix) == Some(&wished);
        let changed = || match wished.len() > name.len() {
            true => format!("`{wished}` is too long"),
            false => format!("several operations have the name `{wished}`"),
        };
        let reason = reason.or_else(|| (!is_as_wished).then(changed));
        (name, reason)
    }
}

/// The description of an operation for the model.
fn describe_operation(entry: &OperationEntry<'_>) -> String {
    let text = |key: &str| entry.node.text(key).unwrap_or_default().trim();
    let (summary, description) = (text("summary"), text("description"));
    let both = match (summary.is_empty(), description.is_empty()) {
        (true, true) => entry.name(),
        (false, true) => summary.to_owned(),
        (true, false) => description.to_owned(),
        (false, false) if description.starts_with(summary) => description.to_owned(),
        (false, false) => format!("{summary}\n\n{description}"),
    };
    clean_text(&both, MAX_DESCRIPTION_BYTES)
}
