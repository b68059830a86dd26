//! The excluded items of an upstream. Each exclusion is logged when it begins, not at each fetch.

use creole::internal::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::MutexGuard;

use creole::proto::model::{ExcludedItem, ListKind};

/// The maximum number of remembered items per list and kind of reason. Further ones are only counted.
const MAX_REMEMBERED: usize = 100;

/// The kind of reason for an exclusion. A different check finds each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExclusionReason {
    /// The definition breaks the rules of its kind.
    Definition,
    /// The name is invalid, or another item has it.
    Name,
    /// The schema requires headers that cannot be sent.
    Headers,
}

/// The exclusions that were logged.
#[derive(Debug, Default)]
pub(crate) struct ExcludedItems(Mutex<BTreeMap<(ListKind, ExclusionReason), Vec<ExcludedItem>>>);

impl ExcludedItems {
    /// Replaces the excluded items of a list, and logs those that are new.
    pub(crate) fn replace(
        &self,
        upstream: &str,
        kind: ListKind,
        reason: ExclusionReason,
        now: Vec<ExcludedItem>,
    ) {
        log_excluded(upstream, kind, self.newly_excluded(kind, reason, now));
    }

    /// Adds items of a list that are excluded for some clients only.
    pub(crate) fn extend(
        &self,
        upstream: &str,
        kind: ListKind,
        reason: ExclusionReason,
        more: Vec<ExcludedItem>,
    ) {
        let mut now = self.lock().get(&(kind, reason)).cloned().unwrap_or_default();
        now.extend(more.into_iter().filter(|item| !now.contains(item)).collect::<Vec<_>>());
        self.replace(upstream, kind, reason, now);
    }

    /// Whether an item of this name is excluded.
    pub(crate) fn contains(&self, kind: ListKind, name: &str) -> bool {
        let said = self.lock();
        let mut items = said.iter().filter(|((of, _), _)| *of == kind).flat_map(|(_, items)| items);
        items.any(|item| item.name == name)
    }

    /// All excluded items with their lists.
    pub(crate) fn all(&self) -> Vec<(ListKind, ExcludedItem)> {
        let said = self.lock();
        let each = said.iter().flat_map(|((kind, _), items)| {
            items.iter().map(|excluded_item| (*kind, excluded_item.clone()))
        });
        each.collect()
    }

    fn newly_excluded(
        &self,
        kind: ListKind,
        reason: ExclusionReason,
        now: Vec<ExcludedItem>,
    ) -> Vec<ExcludedItem> {
        let now = bounded_items(now);
        let before = self.lock().insert((kind, reason), now.clone()).unwrap_or_default();
        now.into_iter().filter(|item| !before.contains(item)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(ListKind, ExclusionReason), Vec<ExcludedItem>>> {
        self.0.lock()
    }
}

fn bounded_items(mut items: Vec<ExcludedItem>) -> Vec<ExcludedItem> {
    if items.len() > MAX_REMEMBERED {
        let further = items.len() - MAX_REMEMBERED;
        items.truncate(MAX_REMEMBERED);
        let reason = "more items of this list are excluded".to_owned();
        items.push(ExcludedItem { name: format!("{further} more"), reason });
    }
    items
}

fn log_excluded(upstream: &str, kind: ListKind, items: Vec<ExcludedItem>) {
    for ExcludedItem { name, reason } in items {
        let list = kind.member();
        tracing::warn!(target: "creole", upstream, list, item = name, why = reason, "item excluded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(names: &[&str]) -> Vec<ExcludedItem> {
        let item = |name: &&str| ExcludedItem { name: (*name).into(), reason: "bad".into() };
        names.iter().map(item).collect()
    }

    #[test]
    fn an_excluded_item_is_logged_once_until_it_returns() {
        let left_out = ExcludedItems::default();
        let news =
            |kind, now: &[&str]| left_out.newly_excluded(kind, ExclusionReason::Name, items(now));
        assert_eq!(news(ListKind::Tools, &["a", "b"]), items(&["a", "b"]));
        assert_eq!(news(ListKind::Tools, &["b", "c", "a"]), items(&["c"]));
        assert_eq!(news(ListKind::Prompts, &["a"]), items(&["a"]));
        assert!(news(ListKind::Tools, &["c"]).is_empty());
        assert_eq!(news(ListKind::Tools, &["a", "c"]), items(&["a"]));
        left_out.extend("up", ListKind::Tools, ExclusionReason::Name, items(&["c", "d"]));
        let names: Vec<_> = left_out.all().into_iter().map(|(_, item)| item.name).collect();
        assert_eq!(names, ["a", "c", "d", "a"]);
    }

    #[test]
    fn a_list_of_bad_items_is_remembered_within_a_limit() {
        let left_out = ExcludedItems::default();
        let many: Vec<_> = (0..5000).map(|number| number.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        left_out.replace("up", ListKind::Tools, ExclusionReason::Definition, items(&many));
        let all = left_out.all();
        assert_eq!((all.len(), &*all[MAX_REMEMBERED].1.name), (MAX_REMEMBERED + 1, "4900 more"));
    }
}
