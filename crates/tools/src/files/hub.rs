//! The one watcher of a process: systems give each user few of them, however much each may watch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

use super::watch::{Shared, locked};

/// The hub, while somebody watches.
static HUB: Mutex<Weak<Hub>> = Mutex::new(Weak::new());

/// Passes on what the system tells to all who watch.
pub(super) struct Hub {
    system: Mutex<System>,
    listeners: Mutex<Vec<Weak<Shared>>>,
}

struct System {
    watcher: RecommendedWatcher,
    /// How many watch each folder.
    counts: BTreeMap<PathBuf, usize>,
}

impl Hub {
    /// The hub, which tells this one too from now on.
    pub(super) fn join(listener: &Arc<Shared>) -> Result<Arc<Self>, String> {
        let mut slot = locked(&HUB);
        let hub = match slot.upgrade() {
            Some(hub) => hub,
            None => Self::open()?,
        };
        *slot = Arc::downgrade(&hub);
        drop(slot);
        let mut listeners = locked(&hub.listeners);
        listeners.retain(|other| other.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
        drop(listeners);
        Ok(hub)
    }

    fn open() -> Result<Arc<Self>, String> {
        let slot: Arc<Mutex<Weak<Self>>> = Arc::default();
        let inner = Arc::clone(&slot);
        let told = move |event: notify::Result<Event>| {
            let hub = locked(&inner).upgrade();
            if let Some(hub) = hub {
                hub.tell(&event);
            }
        };
        let watcher = notify::recommended_watcher(told).map_err(|error| error.to_string())?;
        let system = Mutex::new(System { watcher, counts: BTreeMap::new() });
        let hub = Arc::new(Self { system, listeners: Mutex::default() });
        *locked(&slot) = Arc::downgrade(&hub);
        Ok(hub)
    }

    fn tell(&self, event: &notify::Result<Event>) {
        let listeners: Vec<_> = locked(&self.listeners).iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|listener| listener.note(event));
    }

    /// Watches what is directly in a folder; also one that came in place of another.
    pub(super) fn watch(&self, folder: &Path) -> Result<(), String> {
        let mut system = locked(&self.system);
        let watched = system.watcher.watch(folder, RecursiveMode::NonRecursive);
        watched.map_err(|error| error.to_string())?;
        *system.counts.entry(folder.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Watches a folder no longer, unless somebody else does.
    pub(super) fn unwatch(&self, folder: &Path) {
        let mut system = locked(&self.system);
        let Some(count) = system.counts.get_mut(folder) else { return };
        *count -= 1;
        if *count == 0 {
            system.counts.remove(folder);
            // What is gone is not watched any more anyway.
            _ = system.watcher.unwatch(folder);
        }
    }
}
