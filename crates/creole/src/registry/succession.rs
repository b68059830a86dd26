//! One registry in the place of another: what other servers lend moves over, and clients are told what differs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use creole_proto::model::ListKind;

use super::catalogue::Layers;
use super::{Registry, Settings, Shared, Source, State, WeakRegistry};

impl Registry {
    /// A registry that takes the place of this one: it has the same tasks and the same listeners, and keeps
    /// silent until it is seen.
    pub(crate) fn successor(&self, settings: Settings, layers: &Layers) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                state: RwLock::new(State::new(layers)),
                is_seen: AtomicBool::new(false),
                changes: self.shared.changes.clone(),
                tasks: self.shared.tasks.clone(),
                kept: Mutex::default(),
            }),
        }
    }

    /// Tells nobody of changes any more.
    pub(crate) fn fall_silent(&self) {
        self.shared.is_seen.store(false, Ordering::Release);
    }

    /// Tells of changes from now on, and which lists differ from those that clients saw before.
    pub(crate) fn speak_up(&self, before: &Self) -> Vec<ListKind> {
        self.shared.is_seen.store(true, Ordering::Release);
        let changed = self.read().differs_from(&before.read());
        changed.iter().for_each(|kind| self.changed(*kind));
        changed
    }
}

impl State {
    fn differs_from(&self, before: &Self) -> Vec<ListKind> {
        let differs = [
            (ListKind::Tools, !self.tools.looks_like(&before.tools)),
            (ListKind::Resources, !self.resources.looks_like(&before.resources)),
            (ListKind::Templates, !self.templates.looks_like(&before.templates)),
            (ListKind::Prompts, !self.prompts.looks_like(&before.prompts)),
            (ListKind::Skills, !self.shelf.skills.looks_like(&before.shelf.skills)),
        ];
        differs.into_iter().filter_map(|(kind, differs)| differs.then_some(kind)).collect()
    }
}

impl Source {
    /// Moves what the server has to a place in another registry. Calls that run in this one still find it here
    /// for as long as they last.
    pub fn move_to(&mut self, place: Self) {
        if let (Some(from), Some(to)) = (self.registry.upgrade(), place.registry.upgrade()) {
            let (from, named) = (from.read(), &to.shared.settings.named);
            if let Some(identity) = from.offers.get(&self.rank).and_then(|it| it.identity.as_ref())
            {
                named.replace(identity);
            }
            let mut to = to.write();
            to.tools.borrow(place.rank, &from.tools, self.rank);
            to.resources.borrow(place.rank, &from.resources, self.rank);
            to.templates.borrow(place.rank, &from.templates, self.rank);
            to.prompts.borrow(place.rank, &from.prompts, self.rank);
            to.tasks |= from.tasks;
            if let Some(offer) = from.offers.get(&self.rank) {
                to.offers.insert(place.rank, offer.clone());
            }
            if let Some(withheld) = from.withheld.get(&self.rank) {
                to.withheld.insert(place.rank, withheld.clone());
            }
        }
        let mut left = std::mem::replace(self, place);
        // It goes without a trace, so that calls that began before still find what they look for.
        left.registry = WeakRegistry { shared: Weak::new() };
    }
}
