//! The filter layer: hides items by name and by hints.

use creole::internal::sync::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};
use creole_proto::wire::Object;

use crate::layers::NamePatterns;
use crate::layers::definitions::hints::{HintedTools, Hints};
use crate::layers::definitions::json_edit::newest_json;
use crate::layers::operation_item::{item_of, withheld_fault};

/// The conditions for visible items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterSettings {
    /// The lists that the filter applies to.
    pub kinds: Vec<ListKind>,
    /// Only these items. Empty for all.
    pub allow: NamePatterns,
    /// None of these items.
    pub deny: NamePatterns,
    /// Only tools that are read-only, or only the others.
    pub read_only: Option<bool>,
    /// Only tools that may be destructive, or only the others.
    pub destructive: Option<bool>,
    /// Only tools that are idempotent, or only the others.
    pub idempotent: Option<bool>,
    /// Only tools that reach the outside world, or only the others.
    pub open_world: Option<bool>,
}

/// A layer that hides items. A hidden item is not listed, and requests for it get the error of an unknown item. Only a
/// dialect with an error code for denied resources reports the denial.
#[derive(Debug)]
pub struct Filter {
    settings: FilterSettings,
    /// Tools whose hints satisfy the conditions. All others, including those never seen, are unknown.
    matching_tools: HintedTools,
    /// The patterns that have matched an item.
    matched_patterns: Mutex<HashSet<String>>,
}

impl Filter {
    /// A layer with these settings.
    pub fn new(settings: FilterSettings) -> Self {
        Self {
            settings,
            matching_tools: HintedTools::default(),
            matched_patterns: Mutex::default(),
        }
    }

    fn allows(&self, kind: ListKind, name: &str) -> bool {
        let FilterSettings { kinds, allow, deny, .. } = &self.settings;
        !kinds.contains(&kind)
            || ((allow.is_empty() || allow.contains(name)) && !deny.contains(name))
    }

    /// Records which patterns match an item.
    fn record_matches(&self, kind: ListKind, name: &str) {
        if self.settings.kinds.contains(&kind) {
            let FilterSettings { allow, deny, .. } = &self.settings;
            let matching = allow.matching(name).chain(deny.matching(name)).map(str::to_owned);
            self.matched_patterns.lock().extend(matching);
        }
    }

    fn uses_hints(&self, kind: ListKind) -> bool {
        let FilterSettings { read_only, destructive, idempotent, open_world, .. } = self.settings;
        kind == ListKind::Tools
            && [read_only, destructive, idempotent, open_world].iter().any(Option::is_some)
    }

    fn matches_hints(&self, hints: Hints) -> bool {
        let wanted = &self.settings;
        wanted.read_only.is_none_or(|value| value == hints.read_only)
            && wanted.destructive.is_none_or(|value| value == hints.destructive)
            && wanted.idempotent.is_none_or(|value| value == hints.idempotent)
            && wanted.open_world.is_none_or(|value| value == hints.open_world)
    }

    fn is_visible(&self, kind: ListKind, name: &str) -> bool {
        self.allows(kind, name) && (!self.uses_hints(kind) || self.matching_tools.contains(name))
    }
}

impl Middleware for Filter {
    fn kind(&self) -> &'static str {
        "filter"
    }

    fn handle<'a>(&'a self, mut call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if let Operation::Listen(filter) = &mut call.operation {
            filter.uris.retain(|uri| self.is_visible(ListKind::Resources, uri));
        }
        match item_of(&call.operation) {
            Some((kind, name)) if !self.is_visible(kind, name) => {
                let fault = withheld_fault(&call.operation);
                Box::pin(async move { fault.into() })
            }
            _ => next.call(call),
        }
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        if self.uses_hints(kind) {
            self.matching_tools.record(kind, &item, |hints| self.matches_hints(hints));
        }
        let name = match kind {
            ListKind::Templates => {
                let uri = Object::new(newest_json(&item))
                    .and_then(|value| value.string("uriTemplate").ok()?);
                uri.unwrap_or_default().into_owned()
            }
            _ => item.name().to_owned(),
        };
        self.record_matches(kind, &name);
        self.is_visible(kind, &name).then_some(item)
    }

    fn unmatched_patterns(&self) -> Vec<String> {
        let matched = self.matched_patterns.lock();
        let FilterSettings { allow, deny, .. } = &self.settings;
        let of = |key: &'static str, names: &NamePatterns| {
            let unmatched = names.patterns().iter().filter(|text| !matched.contains(*text));
            unmatched.map(|text| format!("`{text}` in `{key}` of a filter")).collect::<Vec<_>>()
        };
        [of("allow", allow), of("deny", deny)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{FlakyTools, ask, call, fault, listed_names, text};
    use creole_proto::fault::{Fault, FaultKind};

    fn serve(settings: FilterSettings) -> creole::Service {
        let kinds = vec![ListKind::Tools, ListKind::Resources, ListKind::Prompts];
        let settings = FilterSettings { kinds, ..settings };
        FlakyTools::serve(Filter::new(settings), Fault::new(FaultKind::Internal, ""), 0).0
    }

    #[tokio::test]
    async fn a_denied_item_is_neither_listed_nor_callable() {
        let deny = NamePatterns::new(["wr*", "test://secret", "pro*", "sz*"]);
        let service = serve(FilterSettings { deny, ..FilterSettings::default() });
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["read"]);
        assert_eq!(listed_names(&service, ListKind::Resources).await, ["test://open"]);
        assert!(listed_names(&service, ListKind::Prompts).await.is_empty());
        assert_eq!(text(&call(&service, "a", "read", "{}").await), "done");
        let unmatched = service.registry().unmatched_patterns();
        assert_eq!(unmatched, ["`sz*` in `deny` of a filter"]);
        let hidden = fault(call(&service, "a", "write", "{}").await);
        let never = fault(call(&service, "a", "never", "{}").await);
        assert_eq!((hidden.kind, hidden.subject.as_str()), (FaultKind::UnknownTool, "write"));
        assert_eq!(
            (hidden.kind, hidden.detail, hidden.data),
            (never.kind, never.detail, never.data)
        );
        for uri in ["test://secret", "test://never"] {
            let read = Operation::ReadResource { uri: uri.to_owned() };
            let fault = fault(ask(&service, "a", read).await);
            let expected = match uri {
                "test://secret" => FaultKind::ResourceDenied,
                _ => FaultKind::ResourceNotFound,
            };
            assert_eq!((fault.kind, fault.subject.as_str()), (expected, uri));
        }
        let prompt = Operation::GetPrompt { name: "prompt".to_owned(), arguments: None };
        assert_eq!(fault(ask(&service, "a", prompt).await).kind, FaultKind::UnknownPrompt);
    }

    #[tokio::test]
    async fn only_allowed_items_are_available() {
        let allow = NamePatterns::new(["write", "test://*"]);
        let service = serve(FilterSettings { allow, ..FilterSettings::default() });
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["write"]);
        assert_eq!(listed_names(&service, ListKind::Resources).await.len(), 2);
        fault(call(&service, "a", "read", "{}").await);
    }

    #[tokio::test]
    async fn tools_are_told_by_their_hints() {
        let read_only = Some(true);
        let service = serve(FilterSettings { read_only, ..FilterSettings::default() });
        assert_eq!(listed_names(&service, ListKind::Tools).await, ["read"]);
        assert_eq!(text(&call(&service, "a", "read", "{}").await), "done");
        assert_eq!(fault(call(&service, "a", "write", "{}").await).kind, FaultKind::UnknownTool);
    }
}
