//! Replaces one registry by another: sources move over, and the differences are announced to clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use creole_proto::model::ListKind;

use super::viewer::Layers;
use super::{ItemSource, Registry, RegistrySettings, RegistryShared, RegistryState, WeakRegistry};
use crate::principal::Principal;
use crate::sync::{Mutex, RwLock};

impl Registry {
    /// A registry that replaces this one: it has the same tasks and the same receivers of changes, and announces
    /// nothing until it is visible.
    pub(crate) fn new_replacement(&self, settings: RegistrySettings, layers: &Layers) -> Self {
        Self {
            shared: Arc::new(RegistryShared {
                state: RwLock::new(RegistryState::new(layers, settings.metrics.as_ref())),
                settings,
                is_visible: AtomicBool::new(false),
                changes: self.shared.changes.clone(),
                tasks: self.shared.tasks.clone(),
                attached: Mutex::default(),
                class_lists: super::class_lists::ClassLists::default(),
            }),
        }
    }

    /// Stops announcing changes.
    pub(crate) fn stop_announcing(&self) {
        self.shared.is_visible.store(false, Ordering::Release);
    }

    /// Starts announcing changes, and announces the lists that differ from those that clients saw before.
    pub(crate) fn start_announcing(&self, before: &Self) -> Vec<ListKind> {
        self.shared.is_visible.store(true, Ordering::Release);
        // Other rules may show each caller other items of the same lists.
        let rules = |registry: &Self| {
            registry.viewer_class(&Principal::local()).map(|class| class.rules_digest())
        };
        let are_rules_changed = rules(self) != rules(before);
        let changed = self.read().changed_lists(&before.read(), are_rules_changed);
        changed.iter().for_each(|kind| self.announce_list_changed(*kind));
        changed
    }
}

impl RegistryState {
    fn changed_lists(&self, before: &Self, are_rules_changed: bool) -> Vec<ListKind> {
        let lists = [
            (ListKind::Tools, !self.tools.has_same_items(&before.tools)),
            (ListKind::Resources, !self.resources.has_same_items(&before.resources)),
            (ListKind::Templates, !self.templates.has_same_items(&before.templates)),
            (ListKind::Prompts, !self.prompts.has_same_items(&before.prompts)),
            (ListKind::Skills, !self.skill_index.skills.has_same_items(&before.skill_index.skills)),
        ];
        let is_changed = |differs: bool| differs || are_rules_changed;
        lists
            .into_iter()
            .filter_map(|(kind, differs)| is_changed(differs).then_some(kind))
            .collect()
    }
}

impl ItemSource {
    /// Moves the upstream's items to a source of another registry. Calls that run in this one still find them here.
    pub fn move_to(&mut self, source: Self) {
        if let (Some(from), Some(to)) = (self.registry.upgrade(), source.registry.upgrade()) {
            let (from, named) = (from.read(), &to.shared.settings.result_identity);
            if let Some(identity) = from
                .remote_servers
                .get(&self.rank)
                .and_then(|remote_server| remote_server.identity.as_ref())
            {
                named.replace(identity);
            }
            let mut to = to.write();
            to.tools.copy_from(source.rank, &from.tools, self.rank);
            to.resources.copy_from(source.rank, &from.resources, self.rank);
            to.templates.copy_from(source.rank, &from.templates, self.rank);
            to.prompts.copy_from(source.rank, &from.prompts, self.rank);
            to.has_task_tools |= from.has_task_tools;
            if let Some(offer) = from.remote_servers.get(&self.rank) {
                to.remote_servers.insert(source.rank, offer.clone());
            }
            if let Some(withheld) = from.withheld.get(&self.rank) {
                to.withheld.insert(source.rank, withheld.clone());
            }
        }
        let mut left = std::mem::replace(self, source);
        // Dropped without effect, so that earlier calls still find their items.
        left.registry = WeakRegistry { shared: Weak::new() };
    }
}
