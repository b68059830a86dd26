//! Announcements to classes of callers: a class whose list did not change is not told.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use creole_proto::model::ListKind;
use creole_proto::operation::Change;
use creole_proto::revision::Rules;

use super::catalogue::Catalogue;
use super::viewer::Layers;
use super::{Announcement, Recipients, Registry, RegistryState};
use crate::call::announcement::RecipientFilter;
use crate::chain;
use crate::chain::ViewerClass;
use crate::principal::Principal;
use crate::sync::Mutex;

/// The maximum number of classes whose lists are remembered. Beyond it, all are forgotten, and told of every change.
const MAX_CLASSES: usize = 64;

/// The lists that classes of callers have read.
#[derive(Default)]
pub(super) struct ClassLists(Mutex<HashMap<u64, SeenLists>>);

struct SeenLists {
    class: Arc<dyn ViewerClass>,
    /// The digests of the lists that were read, by the lists that are announced together.
    digests: HashMap<&'static str, u64>,
}

/// The list that a change of this kind is announced as: templates and skills are announced as resources.
fn announced_as(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tools => "tools",
        ListKind::Prompts => "prompts",
        ListKind::Resources | ListKind::Templates | ListKind::Skills => "resources",
    }
}

impl RegistryState {
    fn digest(&self, list: &str, class: &dyn ViewerClass) -> u64 {
        let mut hasher = DefaultHasher::new();
        match list {
            "tools" => self.tools.hash_seen(class, &mut hasher),
            "prompts" => self.prompts.hash_seen(class, &mut hasher),
            _ => {
                self.resources.hash_seen(class, &mut hasher);
                self.templates.hash_seen(class, &mut hasher);
                self.skill_index.skills.hash_seen(class, &mut hasher);
            }
        }
        hasher.finish()
    }
}

impl<T> Catalogue<T> {
    fn hash_seen(&self, class: &dyn ViewerClass, hasher: &mut impl Hasher) {
        for item in self.all_visible().filter(|item| class.sees(self.kind(), item)) {
            item.name().hash(hasher);
            item.text(Rules::CANONICAL).hash(hasher);
        }
    }
}

impl ClassLists {
    /// Records the list that a class reads now.
    pub(super) fn record(
        &self,
        kind: ListKind,
        class: &Arc<dyn ViewerClass>,
        state: &RegistryState,
    ) {
        let mut seen = self.0.lock();
        if seen.len() >= MAX_CLASSES && !seen.contains_key(&class.id()) {
            seen.clear();
        }
        let lists = seen
            .entry(class.id())
            .or_insert_with(|| SeenLists { class: Arc::clone(class), digests: HashMap::new() });
        let list = announced_as(kind);
        lists.digests.entry(list).or_insert_with(|| state.digest(list, &**class));
    }

    /// The classes whose list is the same as before the change. The others have the new one from now on.
    fn unchanged(&self, kind: ListKind, state: &RegistryState) -> Vec<u64> {
        let list = announced_as(kind);
        let mut unchanged = Vec::new();
        for (id, lists) in self.0.lock().iter_mut() {
            let Some(before) = lists.digests.get_mut(list) else { continue };
            let now = state.digest(list, &*lists.class);
            if *before == now {
                unchanged.push(*id);
            }
            *before = now;
        }
        unchanged
    }
}

/// The callers that a change concerns.
struct ConcernedCallers {
    layers: Layers,
    change: ConcernedBy,
}

enum ConcernedBy {
    /// A list: all classes but those whose list did not change.
    List { unchanged: Vec<u64> },
    /// A resource: the classes that see it.
    Resource(String),
}

impl RecipientFilter for ConcernedCallers {
    fn includes(&self, principal: &Principal) -> bool {
        let Some(class) = chain::viewer_class(&self.layers, principal) else { return true };
        match &self.change {
            ConcernedBy::List { unchanged } => !unchanged.contains(&class.id()),
            ConcernedBy::Resource(uri) => class.sees_resource(uri),
        }
    }
}

impl Registry {
    /// The announcement for the callers that it concerns, if a layer shows callers different items.
    pub(super) fn for_concerned(&self, announcement: Announcement) -> Announcement {
        let layers = Arc::clone(self.read().tools.layers());
        let has_classes = || chain::viewer_class(&layers, &Principal::local()).is_some();
        if announcement.to != Recipients::All || layers.is_empty() || !has_classes() {
            return announcement;
        }
        let change = match &announcement.change {
            Change::List(kind) => ConcernedBy::List {
                unchanged: self.shared.class_lists.unchanged(*kind, &self.read()),
            },
            Change::Resource(uri) => ConcernedBy::Resource(uri.clone()),
            _ => return announcement,
        };
        let to = Recipients::Filtered(Arc::new(ConcernedCallers { layers, change }));
        Announcement { to, ..announcement }
    }
}
