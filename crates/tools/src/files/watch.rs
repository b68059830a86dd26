//! Folder watches: report changes once they have settled.
//!
//! The system reports each change to a folder. The changes are collected until a tenth of a second passes without one,
//! but for a second at most. The report says that something changed and which files were written. The receiver scans
//! the folder itself, so a missed change only delays it.

use creole::internal::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

use super::shared_watcher::{SharedWatcher, WatchListener};

/// The time without changes before a report.
const QUIET_PERIOD: Duration = Duration::from_millis(100);
/// Maximum time for collecting changes.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// Maximum number of written files that are remembered until the report.
const MAX_PATHS: usize = 1000;
/// Maximum number of watched folders. Changes in others are noticed with the next change elsewhere.
const MAX_FOLDERS: usize = 1000;

/// A receiver of reports about changed folders.
pub(crate) trait WatchTarget: Send + 'static {
    /// Its name in the log.
    fn name(&self) -> String;

    /// Its folder or file. Changes elsewhere are ignored.
    fn root(&self) -> PathBuf;

    /// The folders whose direct contents are relevant now.
    fn folders(&self) -> Vec<PathBuf>;

    /// Handles a change. These files were written.
    fn on_change(&mut self, changed: &BTreeSet<PathBuf>);
}

/// Watches until it is dropped.
pub(crate) struct FolderWatch {
    shared: Arc<WatchState>,
}

/// The collected changes of one watch.
struct WatchState {
    root: PathBuf,
    pending: Mutex<PendingChanges>,
    wakeup: Condvar,
}

#[derive(Default)]
struct PendingChanges {
    changed: bool,
    written: BTreeSet<PathBuf>,
    ended: bool,
}

impl FolderWatch {
    /// Starts watching in a new thread.
    ///
    /// # Errors
    /// When the system cannot watch files, or not so many.
    pub(crate) fn start(mut watched: impl WatchTarget) -> Result<Self, String> {
        let shared = Arc::new(WatchState {
            root: watched.root(),
            pending: Mutex::default(),
            wakeup: Condvar::new(),
        });
        let listener: Weak<WatchState> = Arc::downgrade(&shared);
        let watcher = SharedWatcher::subscribe(listener)?;
        let inner = Arc::clone(&shared);
        let run = move || inner.run(&mut watched, &watcher);
        let thread = thread::Builder::new().name("creole-watch".to_owned()).spawn(run);
        thread.map_err(|error| error.to_string())?;
        Ok(Self { shared })
    }
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        // The thread is not joined, because it may be the one that drops this.
        self.shared.pending.lock().ended = true;
        self.shared.wakeup.notify_all();
    }
}

impl WatchListener for WatchState {
    fn record_event(&self, event: &notify::Result<Event>) {
        let top = std::slice::from_ref(&self.root);
        let (paths, is_written) = match event {
            // Events were lost.
            Ok(event) if event.need_rescan() => (top, false),
            Err(_) => (top, false),
            Ok(Event { kind: EventKind::Access(kind), paths, .. }) => match kind {
                // Reading also opens and closes files, in this process too.
                AccessKind::Close(AccessMode::Write) => (paths.as_slice(), true),
                _ => return,
            },
            Ok(Event { kind: EventKind::Modify(ModifyKind::Metadata(_)), paths, .. }) => {
                (paths.as_slice(), false)
            }
            Ok(Event { paths, .. }) => (paths.as_slice(), true),
        };
        let mut paths = paths.iter().filter(|path| path.starts_with(&self.root)).peekable();
        if paths.peek().is_none() {
            return;
        }
        let mut pending = self.pending.lock();
        pending.changed = true;
        for path in paths.filter(|_| is_written) {
            if pending.written.len() < MAX_PATHS {
                pending.written.insert(path.clone());
            }
        }
        drop(pending);
        self.wakeup.notify_all();
    }
}

impl WatchState {
    /// Reports changes until the watch ends.
    fn run(&self, watched: &mut impl WatchTarget, watcher: &SharedWatcher) {
        let mut known = BTreeMap::new();
        loop {
            // Changes in a folder before it was watched were missed.
            if update_watches(watched, watcher, &mut known) {
                self.pending.lock().changed = true;
            }
            let Some(changed) = self.wait_until_settled() else { break };
            watched.on_change(&changed);
        }
        known.keys().for_each(|folder| watcher.unwatch(folder));
    }

    /// Waits until changes have settled; `None` at the end.
    fn wait_until_settled(&self) -> Option<BTreeSet<PathBuf>> {
        let waiting = self.wakeup.wait_while(self.pending.lock(), |pending_changes| {
            !pending_changes.changed && !pending_changes.ended
        });
        let mut pending = waiting.unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        while !pending.ended && since.elapsed() < MAX_DELAY {
            let waited = self.wakeup.wait_timeout(pending, QUIET_PERIOD);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            pending = woken;
            if timeout.timed_out() {
                break;
            }
        }
        if pending.ended {
            return None;
        }
        pending.changed = false;
        Some(std::mem::take(&mut pending.written))
    }
}

/// Updates the set of watched folders. Returns whether a folder was added.
fn update_watches(
    watched: &impl WatchTarget,
    watcher: &SharedWatcher,
    known: &mut BTreeMap<PathBuf, u64>,
) -> bool {
    let folders = watched.folders();
    if folders.len() > MAX_FOLDERS {
        let (name, all) = (watched.name(), folders.len());
        tracing::warn!("{name}: only {MAX_FOLDERS} of {all} folders are watched for changes");
    }
    let number = |folder: &PathBuf| std::fs::metadata(folder).ok().map(|it| it.ino());
    let wanted: BTreeMap<PathBuf, u64> = folders
        .into_iter()
        .take(MAX_FOLDERS)
        .filter_map(|folder| number(&folder).map(|number| (folder, number)))
        .collect();
    known.retain(|folder, number| {
        let stays = wanted.get(folder) == Some(number);
        if !stays {
            watcher.unwatch(folder);
        }
        stays
    });
    let mut came = false;
    for (folder, number) in wanted {
        if known.contains_key(&folder) {
            continue;
        }
        match watcher.watch(&folder) {
            Ok(()) => {
                known.insert(folder, number);
                came = true;
            }
            Err(error) => {
                let name = watched.name();
                tracing::warn!("{name}: cannot watch a folder for changes: {error}");
            }
        }
    }
    came
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Reports the written files, and its own end.
    struct Teller {
        top: PathBuf,
        tells: Sender<Vec<PathBuf>>,
    }

    impl WatchTarget for Teller {
        fn name(&self) -> String {
            "teller".to_owned()
        }

        fn root(&self) -> PathBuf {
            self.top.clone()
        }

        fn folders(&self) -> Vec<PathBuf> {
            vec![self.top.clone()]
        }

        fn on_change(&mut self, changed: &BTreeSet<PathBuf>) {
            // A dropped receiver needs no report.
            _ = self.tells.send(changed.iter().cloned().collect());
        }
    }

    fn watched(top: &std::path::Path) -> (FolderWatch, Receiver<Vec<PathBuf>>) {
        let (sender, changes) = channel();
        let watch = FolderWatch::start(Teller { top: top.to_owned(), tells: sender }).unwrap();
        // The first report, after the folder is watched.
        assert!(changes.recv().unwrap().is_empty());
        (watch, changes)
    }

    #[test]
    fn two_watchers_share_a_folder_and_one_may_stop() {
        let folder = tempfile::tempdir().unwrap();
        let ((first, first_changes), (second, second_changes)) =
            (watched(folder.path()), watched(folder.path()));
        let file = folder.path().join("a");
        fs::write(&file, "1").unwrap();
        for changes in [&first_changes, &second_changes] {
            while !changes.recv().unwrap().contains(&file) {}
        }
        drop(first);
        // The thread ends and closes its end of the channel.
        while first_changes.recv().is_ok() {}
        fs::write(folder.path().join("b"), "2").unwrap();
        while !second_changes.recv().unwrap().contains(&folder.path().join("b")) {}
        drop(second);
        while second_changes.recv().is_ok() {}
    }

    #[test]
    fn changes_outside_of_the_folder_are_ignored() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ((_watch, changes), (_other, other_changes)) =
            (watched(folder.path()), watched(other.path()));
        fs::write(other.path().join("x"), "").unwrap();
        while !other_changes.recv().unwrap().contains(&other.path().join("x")) {}
        fs::write(folder.path().join("a"), "").unwrap();
        let all: Vec<PathBuf> = changes.recv().unwrap();
        assert!(all.iter().all(|path| path.starts_with(folder.path())), "{all:?}");
    }
}
