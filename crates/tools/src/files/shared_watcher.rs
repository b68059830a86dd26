//! The file watcher that the whole process shares. Operating systems allow each user few watchers, but many paths per
//! watcher.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use creole::internal::sync::Mutex;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};

/// The shared watcher, while it has subscribers.
static SHARED_WATCHER: Mutex<Weak<SharedWatcher>> = Mutex::new(Weak::new());

/// A subscriber.
pub(super) trait WatchListener: Send + Sync {
    /// Records an event of the system.
    fn record_event(&self, event: &notify::Result<Event>);
}

/// Distributes the system's events to all subscribers.
pub(super) struct SharedWatcher {
    system: Mutex<WatcherState>,
    listeners: Mutex<Vec<Weak<dyn WatchListener>>>,
}

struct WatcherState {
    watcher: RecommendedWatcher,
    /// Number of subscribers per folder.
    counts: BTreeMap<PathBuf, usize>,
}

impl SharedWatcher {
    /// Subscribes a listener to the shared watcher.
    pub(super) fn subscribe(listener: Weak<dyn WatchListener>) -> Result<Arc<Self>, String> {
        let mut slot = SHARED_WATCHER.lock();
        let watcher = match slot.upgrade() {
            Some(watcher) => watcher,
            None => Self::open()?,
        };
        *slot = Arc::downgrade(&watcher);
        drop(slot);
        let mut listeners = watcher.listeners.lock();
        listeners.retain(|other| other.strong_count() > 0);
        listeners.push(listener);
        drop(listeners);
        Ok(watcher)
    }

    fn open() -> Result<Arc<Self>, String> {
        let slot: Arc<Mutex<Weak<Self>>> = Arc::default();
        let inner = Arc::clone(&slot);
        let told = move |event: notify::Result<Event>| {
            let hub = inner.lock().upgrade();
            if let Some(hub) = hub {
                hub.dispatch(&event);
            }
        };
        let watcher = notify::recommended_watcher(told).map_err(|error| error.to_string())?;
        let system = Mutex::new(WatcherState { watcher, counts: BTreeMap::new() });
        let hub = Arc::new(Self { system, listeners: Mutex::default() });
        *slot.lock() = Arc::downgrade(&hub);
        Ok(hub)
    }

    fn dispatch(&self, event: &notify::Result<Event>) {
        let listeners: Vec<_> = self.listeners.lock().iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|listener| listener.record_event(event));
    }

    /// Watches the direct contents of a folder. Repeated for a folder that replaced another.
    pub(super) fn watch(&self, folder: &Path) -> Result<(), String> {
        let mut system = self.system.lock();
        let watched = system.watcher.watch(folder, RecursiveMode::NonRecursive);
        watched.map_err(|error| error.to_string())?;
        *system.counts.entry(folder.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Stops watching a folder, unless another subscriber watches it.
    pub(super) fn unwatch(&self, folder: &Path) {
        let mut system = self.system.lock();
        let Some(count) = system.counts.get_mut(folder) else { return };
        *count -= 1;
        if *count == 0 {
            system.counts.remove(folder);
            // A folder that does not exist any more is not watched in any case.
            _ = system.watcher.unwatch(folder);
        }
    }
}
