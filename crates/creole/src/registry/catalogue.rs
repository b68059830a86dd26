//! A list of named items in order of addition, with lookup by name and pagination.

use crate::sync::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use creole_proto::http::{MirroredHeader, MirroredHeaderError};
use creole_proto::model::{Definition, Items, ListKind};
use creole_proto::revision::Rules;

use super::collisions::skeleton;
use super::viewer::{Layers, Viewer, ViewerKey};
use crate::call::Context;
use crate::chain;
use crate::chain::ViewerClass;
use crate::seal::cursor::Position;
use crate::telemetry::metrics::{OperationSeries, ServerMetrics};

/// An item to be listed.
pub(super) type DefinedItem<T> = (Definition, T);

/// An item that is not listed, because of another item.
pub(super) struct ExcludedEntry {
    pub(super) name: String,
    /// The name of the other item, and its rank.
    pub(super) holder: String,
    pub(super) rank: u32,
}

/// The maximum number of first pages that a list caches. Beyond it, the oldest one is dropped.
const MAX_FIRST_PAGES: usize = 256;

/// A list of named items. Clients see the items as the chain rewrites them; calls that passed the chain find them by
/// their own names.
pub(super) struct Catalogue<T> {
    kind: ListKind,
    layers: Layers,
    entries: Vec<CatalogueEntry<T>>,
    /// A tree, because each call looks up two names, and a hash that prevents chosen collisions costs more than the few
    /// comparisons here, whose names the server chose.
    index_by_name: BTreeMap<String, usize>,
    /// The positions of items whose visible names differ from their own.
    aliases: HashMap<String, usize>,
    /// The name and rank behind each skeleton, in lists whose names users read. A URI is an address: two that look
    /// alike are distinct.
    skeletons: HashMap<String, (String, u32)>,
    offered: bool,
    /// The first page, which is mostly the only one, cached for each kind of viewer.
    first_pages: Mutex<VecDeque<(ViewerKey, Items)>>,
    /// The metrics of the server, if they are counted.
    metrics: Option<Arc<ServerMetrics>>,
}

struct CatalogueEntry<T> {
    /// The rank of its source: lower ranks are listed first, the server's own items have the lowest.
    rank: u32,
    definition: Arc<Definition>,
    /// The item as clients see it; `None` if they do not.
    visible: Option<VisibleItem>,
    item: Arc<T>,
}

impl<T> CatalogueEntry<T> {
    fn is_visible_to(&self, kind: ListKind, viewer: &Viewer) -> bool {
        let is_usable = |shown: &VisibleItem| {
            (!viewer.mirrors_headers || shown.mirrored_headers().is_ok())
                && viewer.sees(kind, &shown.definition)
        };
        self.visible.as_ref().is_some_and(is_usable)
    }
}

/// An item as clients see it.
struct VisibleItem {
    definition: Arc<Definition>,
    /// Whether the layers leave its name as it is. Each call asks for that.
    has_own_name: bool,
    /// The mirrored headers; an error if clients have to reject the tool.
    mirrored_headers: OnceLock<Result<Arc<[MirroredHeader]>, MirroredHeaderError>>,
    /// Measures its calls, if metrics are counted.
    series: Option<Arc<OperationSeries>>,
}

impl VisibleItem {
    fn mirrored_headers(&self) -> &Result<Arc<[MirroredHeader]>, MirroredHeaderError> {
        self.mirrored_headers.get_or_init(|| self.definition.mirrored_headers().map(Into::into))
    }
}

impl<T> Catalogue<T> {
    /// An empty list of this kind, shown through these layers.
    pub(super) fn new(kind: ListKind, layers: &Layers) -> Self {
        Self {
            kind,
            layers: Arc::clone(layers),
            entries: Vec::new(),
            index_by_name: BTreeMap::new(),
            aliases: HashMap::new(),
            skeletons: HashMap::new(),
            offered: false,
            first_pages: Mutex::default(),
            metrics: None,
        }
    }

    /// Every item: the rank of its source, its definition, and the definition that clients see, unless a layer hides
    /// it.
    pub(super) fn inspect(
        &self,
    ) -> impl Iterator<Item = (u32, &Arc<Definition>, Option<&Arc<Definition>>)> {
        self.entries.iter().map(|entry| {
            let visible = entry.visible.as_ref().map(|shown| &shown.definition);
            (entry.rank, &entry.definition, visible)
        })
    }

    /// The same list, whose items are measured.
    pub(super) fn measured(mut self, metrics: Option<&Arc<ServerMetrics>>) -> Self {
        self.metrics = metrics.cloned();
        self
    }

    /// Whether there is, or ever was, an item: a list that became empty is still offered.
    pub(super) fn is_offered(&self) -> bool {
        self.offered
    }

    /// Adds an item of the server's own, or replaces the one of its name in its place.
    pub(super) fn insert(&mut self, definition: Definition, item: T) {
        self.offered = true;
        let index = self.index_by_name.get(definition.name()).copied();
        let index = index.or_else(|| self.find_remote_confusable(definition.name()));
        let entry = Self::entry(0, definition, item);
        match index {
            Some(index) if self.entries[index].rank == 0 => {
                self.entries[index] = entry;
                self.apply_layers(index);
            }
            Some(index) => {
                // The server's own items precede those of upstreams.
                self.entries.remove(index);
                self.rebuild_index();
                self.push(entry);
            }
            None => self.push(entry),
        }
    }

    /// Replaces all items of one rank; returns the items that are excluded because another item has their name.
    pub(super) fn replace(&mut self, rank: u32, items: Vec<DefinedItem<T>>) -> Vec<ExcludedEntry> {
        self.replace_with(rank, items, Self::find_same_name)
    }

    /// The same for items of an upstream: items whose name is confusable with another one are excluded too.
    pub(super) fn replace_remote(
        &mut self,
        rank: u32,
        items: Vec<DefinedItem<T>>,
    ) -> Vec<ExcludedEntry> {
        self.replace_with(rank, items, |list, rank, name| {
            list.find_same_name(rank, name).or_else(|| list.find_confusable(name))
        })
    }

    fn replace_with(
        &mut self,
        rank: u32,
        items: Vec<DefinedItem<T>>,
        refuse: impl Fn(&Self, u32, &str) -> Option<ExcludedEntry>,
    ) -> Vec<ExcludedEntry> {
        self.offered |= !items.is_empty();
        let before = self.names_of(rank);
        // Dropped at the end, so that the series of items that stay continue.
        let _replaced: Vec<_> = self.entries.extract_if(.., |entry| entry.rank == rank).collect();
        self.clear_first_pages();
        self.rebuild_index();
        let start = self.entries.partition_point(|other| other.rank <= rank);
        let (mut entries, mut refused) = (Vec::with_capacity(items.len()), Vec::new());
        for (definition, item) in items {
            // The position is set below; here only the taken name counts.
            if let Some(holder) = refuse(self, rank, definition.name()) {
                refused.push(holder);
                continue;
            }
            self.index_by_name.insert(definition.name().to_owned(), usize::MAX);
            self.record_skeleton(definition.name().to_owned(), rank);
            entries.push(Self::entry(rank, definition, item));
        }
        let end = start + entries.len();
        self.entries.splice(start..start, entries);
        // Once for all of them: one update per item would be quadratic.
        self.rebuild_index();
        let is_gone = before.iter().any(|name| !self.index_by_name.contains_key(name));
        if !(is_gone && self.reapply_layers_if_renamed()) {
            (start..end).for_each(|index| self.apply_layers(index));
        }
        refused
    }

    /// The item that has this name.
    fn find_same_name(&self, rank: u32, name: &str) -> Option<ExcludedEntry> {
        let index = self.index_by_name.get(name)?;
        // An item without a position yet has the rank that is being replaced.
        let rank = self.entries.get(*index).map_or(rank, |entry| entry.rank);
        Some(ExcludedEntry { name: name.to_owned(), holder: name.to_owned(), rank })
    }

    /// The item that has another, confusable name.
    fn find_confusable(&self, name: &str) -> Option<ExcludedEntry> {
        let (holder, rank) = self.skeletons.get(&skeleton(name))?;
        Some(ExcludedEntry { name: name.to_owned(), holder: holder.clone(), rank: *rank })
    }

    /// The position of an upstream's item whose name is confusable with this one.
    fn find_remote_confusable(&self, name: &str) -> Option<usize> {
        let alike = self.find_confusable(name).filter(|alike| alike.rank != 0)?;
        tracing::warn!(
            item = alike.holder,
            name,
            "item excluded: its name is confusable with an item of this server"
        );
        self.index_by_name.get(&alike.holder).copied()
    }

    fn record_skeleton(&mut self, name: String, rank: u32) {
        if matches!(self.kind, ListKind::Tools | ListKind::Prompts) {
            self.skeletons.entry(skeleton(&name)).or_insert((name, rank));
        }
    }

    /// The names of one rank's items, if layers may have renamed them.
    fn names_of(&self, rank: u32) -> Vec<String> {
        let own = self.entries.iter().filter(|entry| entry.rank == rank && !self.layers.is_empty());
        own.map(|entry| entry.definition.name().to_owned()).collect()
    }

    /// Copies another list's items of one rank, except those whose name is taken or confusable here.
    pub(super) fn copy_from(&mut self, rank: u32, from: &Self, from_rank: u32) {
        for entry in from.entries.iter().filter(|entry| entry.rank == from_rank) {
            self.offered = true;
            let name = entry.definition.name();
            if self.find_same_name(rank, name).or_else(|| self.find_confusable(name)).is_none() {
                let (definition, item) = (Arc::clone(&entry.definition), Arc::clone(&entry.item));
                self.push(CatalogueEntry { rank, definition, visible: None, item });
            }
        }
    }

    /// Whether clients see the same items in the same order.
    pub(super) fn has_same_items(&self, other: &Self) -> bool {
        let seen = |list: &Self| -> Vec<Arc<Definition>> {
            let shown = list.entries.iter().filter_map(|entry| entry.visible.as_ref());
            shown.map(|shown| Arc::clone(&shown.definition)).collect()
        };
        seen(self) == seen(other)
    }

    /// Offers the list although it is still empty.
    pub(super) fn mark_offered(&mut self) {
        self.offered = true;
    }

    fn entry(rank: u32, definition: Definition, item: T) -> CatalogueEntry<T> {
        let (definition, item) = (Arc::new(definition), Arc::new(item));
        CatalogueEntry { rank, definition, visible: None, item }
    }

    /// Applies the layers to an item; it stays hidden if another item already has its visible name.
    fn apply_layers(&mut self, index: usize) {
        self.clear_first_pages();
        let entry = &mut self.entries[index];
        let _before = entry.visible.take();
        self.aliases.retain(|_, other| *other != index);
        let definition = Arc::clone(&entry.definition);
        let Some(shown) = chain::rewrite_definition(&self.layers, self.kind, definition) else {
            return;
        };
        let (own, name) = (self.entries[index].definition.name(), shown.name());
        if self.index_of_visible(name).is_some() {
            tracing::warn!(item = own, name, "item excluded: another item has this name");
            return;
        }
        let has_own_name = own == name;
        if !has_own_name {
            self.aliases.insert(name.to_owned(), index);
        }
        let series = self.metrics.as_ref().and_then(|metrics| metrics.item_series(self.kind, name));
        let mirrored_headers = OnceLock::new();
        self.entries[index].visible =
            Some(VisibleItem { definition: shown, has_own_name, mirrored_headers, series });
    }

    /// The layers that the items are shown through.
    pub(super) fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Applies the layers to every item again, if they assigned names that are free again.
    fn reapply_layers_if_renamed(&mut self) -> bool {
        let gives_names = chain::reassign_names(&self.layers, self.kind);
        if gives_names {
            self.reapply_layers();
        }
        gives_names
    }

    /// Applies the layers to every item again.
    pub(super) fn reapply_layers(&mut self) {
        self.aliases.clear();
        let _before: Vec<_> = self.entries.iter_mut().map(|entry| entry.visible.take()).collect();
        (0..self.entries.len()).for_each(|index| self.apply_layers(index));
    }

    fn index_of_visible(&self, name: &str) -> Option<usize> {
        let is_seen = |index: &usize| {
            self.entries[*index].visible.as_ref().is_some_and(|shown| shown.has_own_name)
        };
        let own = self.index_by_name.get(name).copied().filter(is_seen);
        own.or_else(|| self.aliases.get(name).copied())
    }

    /// The item with this visible name.
    pub(super) fn get_visible(&self, name: &str) -> Option<Arc<T>> {
        Some(Arc::clone(&self.entries[self.index_of_visible(name)?].item))
    }

    /// What measures the calls of the item with this visible name.
    pub(super) fn series(&self, name: &str) -> Option<Arc<OperationSeries>> {
        self.entries[self.index_of_visible(name)?].visible.as_ref()?.series.clone()
    }

    /// The item with this visible name, if callers of the class see it.
    pub(super) fn get_seen(&self, name: &str, class: Option<&dyn ViewerClass>) -> Option<Arc<T>> {
        let entry = &self.entries[self.index_of_visible(name)?];
        let shown = &entry.visible.as_ref()?.definition;
        let is_seen = class.is_none_or(|class| class.sees(self.kind, shown));
        is_seen.then(|| Arc::clone(&entry.item))
    }

    /// The mirrored headers of the tool with this visible name.
    pub(super) fn mirrored_headers(&self, name: &str) -> Option<Arc<[MirroredHeader]>> {
        let shown = self.entries[self.index_of_visible(name)?].visible.as_ref()?;
        shown.mirrored_headers().as_ref().ok().filter(|mirrors| !mirrors.is_empty()).cloned()
    }

    /// Adds an entry after those of its rank.
    fn push(&mut self, entry: CatalogueEntry<T>) {
        let index = self.entries.partition_point(|other| other.rank <= entry.rank);
        self.index_by_name.insert(entry.definition.name().to_owned(), index);
        self.record_skeleton(entry.definition.name().to_owned(), entry.rank);
        let is_last = index == self.entries.len();
        self.entries.insert(index, entry);
        if !is_last {
            self.rebuild_index();
        }
        self.apply_layers(index);
    }

    /// Rebuilds the index of positions.
    fn rebuild_index(&mut self) {
        let names = self.entries.iter().map(|entry| entry.definition.name().to_owned());
        self.index_by_name = names.enumerate().map(|(index, name)| (name, index)).collect();
        self.rebuild_skeletons();
        self.aliases.clear();
        for (index, entry) in self.entries.iter().enumerate() {
            let Some(shown) = &entry.visible else { continue };
            if !shown.has_own_name {
                self.aliases.insert(shown.definition.name().to_owned(), index);
            }
        }
    }

    /// Rebuilds the index of skeletons.
    fn rebuild_skeletons(&mut self) {
        self.skeletons.clear();
        let named = |entry: &CatalogueEntry<T>| (entry.definition.name().to_owned(), entry.rank);
        let all: Vec<_> = self.entries.iter().map(named).collect();
        all.into_iter().for_each(|(name, rank)| self.record_skeleton(name, rank));
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(index) = self.index_by_name.remove(name) else { return false };
        self.clear_first_pages();
        self.entries.remove(index);
        self.aliases.retain(|_, alias| *alias != index);
        let known = self.index_by_name.values_mut().chain(self.aliases.values_mut());
        known.filter(|later| **later > index).for_each(|later| *later -= 1);
        self.rebuild_skeletons();
        self.reapply_layers_if_renamed();
        true
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<T>> {
        let index = *self.index_by_name.get(name)?;
        Some(Arc::clone(&self.entries[index].item))
    }

    /// The same for a call, which is measured as one of this item.
    #[inline]
    pub(super) fn get_measured(&self, name: &str, call: &Context) -> Option<Arc<T>> {
        let entry = &self.entries[*self.index_by_name.get(name)?];
        call.set_item_series(|| entry.visible.as_ref()?.series.clone());
        Some(Arc::clone(&entry.item))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.iter().map(|entry| &entry.item)
    }

    /// The kind of the list.
    pub(super) fn kind(&self) -> ListKind {
        self.kind
    }

    /// All items that some viewer may see.
    pub(super) fn all_visible(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.entries.iter().filter_map(|entry| Some(&entry.visible.as_ref()?.definition))
    }

    /// The items that the viewer sees, each with the rank of its server.
    pub(super) fn visible_to(
        &self,
        viewer: &Viewer,
    ) -> impl Iterator<Item = (u32, &Arc<Definition>)> {
        let seen = self.entries.iter().filter(|entry| entry.is_visible_to(self.kind, viewer));
        seen.filter_map(|entry| Some((entry.rank, &entry.visible.as_ref()?.definition)))
    }

    /// Whether another source has an item with this name, or a confusable one.
    pub(super) fn is_name_taken(&self, rank: u32, name: &str) -> bool {
        let holder = self.index_by_name.get(name).map(|index| self.entries[*index].rank);
        let holder = holder.or_else(|| self.find_confusable(name).map(|alike| alike.rank));
        holder.is_some_and(|holder| holder != rank)
    }

    /// Whether an item of another source has this visible name.
    pub(super) fn is_visible_in_other(&self, rank: u32, name: &str) -> bool {
        self.index_of_visible(name).is_some_and(|index| self.entries[index].rank != rank)
    }

    /// At most `size` items that the viewer sees after the position, and where the page ends if there are more.
    pub(super) fn page(
        &self,
        after: Option<&Position>,
        size: usize,
        rules: &Rules,
        viewer: &Viewer,
    ) -> (Items, Option<Position>) {
        let start = after.map_or(0, |position| self.resume_index(position));
        let rest = self.entries.get(start..).unwrap_or_default();
        let is_visible = |entry: &CatalogueEntry<T>| entry.is_visible_to(self.kind, viewer);
        let shown = || rest.iter().enumerate().filter(|(_, entry)| is_visible(entry));
        // Mostly one page holds all items, and nothing has to be counted.
        let has_more = rest.len() > size && shown().nth(size).is_some();
        let last = if has_more { shown().nth(size - 1) } else { None };
        let next = last.map(|(index, entry)| {
            let after = entry.definition.name().to_owned();
            Position { index: start + index + 1, after }
        });
        let items = || {
            let seen = shown().filter_map(|(_, entry)| entry.visible.as_ref()).take(size);
            seen.map(|shown| Arc::clone(&shown.definition)).collect()
        };
        (if start == 0 { self.first_page(items, rules, viewer.key()) } else { items() }, next)
    }

    /// The cached first page, or a new one that is cached. The number of items on it is the same each time.
    fn first_page(&self, items: impl FnOnce() -> Items, rules: &Rules, viewer: ViewerKey) -> Items {
        // The cache is consistent, even after a panic.
        let mut fronts = self.first_pages.lock();
        let is_known =
            |(who, known): &&(ViewerKey, Items)| *who == viewer && known.is_joined_for(rules);
        if let Some((_, known)) = fronts.iter().find(is_known) {
            return known.clone();
        }
        let items = items().with_joined_text(rules);
        if fronts.len() == MAX_FIRST_PAGES {
            fronts.pop_front();
        }
        fronts.push_back((viewer, items.clone()));
        items
    }

    fn clear_first_pages(&mut self) {
        self.first_pages.get_mut().clear();
    }

    /// The index after the last item of the previous page; if that item was removed, its former position.
    fn resume_index(&self, position: &Position) -> usize {
        let index = self.index_by_name.get(&position.after).map(|index| index + 1);
        index.unwrap_or_else(|| position.index.saturating_sub(1)).min(self.entries.len())
    }
}
