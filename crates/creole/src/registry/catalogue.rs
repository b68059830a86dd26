//! A list of named items in the order in which they came, found by name, shown by pages.

use std::collections::HashMap;
use std::sync::Arc;

use creole_proto::model::Definition;

use crate::cursor::Position;

/// A list of named items.
pub(super) struct Catalogue<T> {
    entries: Vec<Entry<T>>,
    places: HashMap<String, usize>,
    offered: bool,
}

struct Entry<T> {
    /// Whose it is: lower ranks are listed first, the server's own items have the lowest.
    rank: u32,
    definition: Arc<Definition>,
    item: Arc<T>,
}

impl<T> Default for Catalogue<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: HashMap::new(), offered: false }
    }
}

impl<T> Catalogue<T> {
    /// Whether there is anything, or was once: a list that ran empty is still offered.
    pub(super) fn is_offered(&self) -> bool {
        self.offered
    }

    /// Adds an item of the server's own, or replaces the one of its name in its place.
    pub(super) fn insert(&mut self, definition: Definition, item: T) {
        self.offered = true;
        let place = self.places.get(definition.name()).copied();
        let entry = Entry { rank: 0, definition: Arc::new(definition), item: Arc::new(item) };
        match place {
            Some(place) if self.entries[place].rank == 0 => self.entries[place] = entry,
            Some(place) => {
                // What the server has itself comes before what others lend it.
                self.entries.remove(place);
                self.push(entry);
                self.number();
            }
            None => self.push(entry),
        }
    }

    /// Replaces all items of one rank; those whose name somebody else has are left out, and named.
    pub(super) fn replace(&mut self, rank: u32, items: Vec<(Definition, T)>) -> Vec<String> {
        self.offered |= !items.is_empty();
        self.entries.retain(|entry| entry.rank != rank);
        self.number();
        let mut refused = Vec::new();
        for (definition, item) in items {
            if self.places.contains_key(definition.name()) {
                refused.push(definition.name().to_owned());
                continue;
            }
            self.push(Entry { rank, definition: Arc::new(definition), item: Arc::new(item) });
        }
        refused
    }

    /// Adds an entry after those of its rank.
    fn push(&mut self, entry: Entry<T>) {
        let place = self.entries.partition_point(|other| other.rank <= entry.rank);
        self.places.insert(entry.definition.name().to_owned(), place);
        let is_last = place == self.entries.len();
        self.entries.insert(place, entry);
        if !is_last {
            self.number();
        }
    }

    /// Notes anew where everything is.
    fn number(&mut self) {
        let names = self.entries.iter().map(|entry| entry.definition.name().to_owned());
        self.places = names.enumerate().map(|(place, name)| (name, place)).collect();
    }

    pub(super) fn remove(&mut self, name: &str) -> bool {
        let Some(place) = self.places.remove(name) else { return false };
        self.entries.remove(place);
        for later in self.places.values_mut().filter(|later| **later > place) {
            *later -= 1;
        }
        true
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<T>> {
        let place = *self.places.get(name)?;
        Some(Arc::clone(&self.entries[place].item))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.iter().map(|entry| &entry.item)
    }

    /// At most `size` items after the position, and where they end if there are more.
    pub(super) fn page(
        &self,
        after: Option<&Position>,
        size: usize,
    ) -> (Vec<Arc<Definition>>, Option<Position>) {
        let start = after.map_or(0, |position| self.resume(position));
        let end = self.entries.len().min(start + size);
        let shown = &self.entries[start..end];
        let next = shown
            .last()
            .filter(|_| end < self.entries.len())
            .map(|last| Position { index: end, after: last.definition.name().to_owned() });
        (shown.iter().map(|entry| Arc::clone(&entry.definition)).collect(), next)
    }

    /// Right after the item that ended the page before; if it is gone, where it was.
    fn resume(&self, position: &Position) -> usize {
        let place = self.places.get(&position.after).map(|place| place + 1);
        place.unwrap_or_else(|| position.index.saturating_sub(1)).min(self.entries.len())
    }
}
