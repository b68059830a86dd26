//! Folders that are watched: whoever wants to know is told once the changes have settled.
//!
//! The system tells of each change to a folder; here these are gathered until it has been quiet for a tenth of a
//! second, or for a second at most. What is told is that something changed, and which files were written: whoever
//! is told looks for himself, so that a change that was missed costs nothing but time.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind};

use super::hub::Hub;

/// How long nothing may happen before a change is told.
const QUIET: Duration = Duration::from_millis(100);
/// How long changes are gathered at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many written files are remembered by name until they are told.
const MOST_PATHS: usize = 1000;
/// How many folders are watched; changes in others show when something else changes.
const MOST_FOLDERS: usize = 1000;

/// Something that looks at folders and wants to know when they change.
pub(crate) trait Watched: Send + 'static {
    /// What the log calls it.
    fn name(&self) -> String;

    /// The folder or file that it is about: what changes elsewhere is nothing to it.
    fn top(&self) -> PathBuf;

    /// The folders whose direct contents matter now.
    fn folders(&self) -> Vec<PathBuf>;

    /// Looks again; these files were written.
    fn look(&mut self, written: &BTreeSet<PathBuf>);
}

/// Keeps watching until it is dropped.
pub(crate) struct Watch {
    shared: Arc<Shared>,
}

/// What one who watches is told, and has not looked at yet.
pub(super) struct Shared {
    top: PathBuf,
    pending: Mutex<Pending>,
    woken: Condvar,
}

#[derive(Default)]
struct Pending {
    changed: bool,
    written: BTreeSet<PathBuf>,
    ended: bool,
}

impl Watch {
    /// Watches from now on, in a thread of its own.
    ///
    /// # Errors
    /// When the system cannot watch files, or not so many.
    pub(crate) fn start(mut watched: impl Watched) -> Result<Self, String> {
        let shared = Arc::new(Shared {
            top: watched.top(),
            pending: Mutex::default(),
            woken: Condvar::new(),
        });
        let hub = Hub::join(&shared)?;
        let inner = Arc::clone(&shared);
        let run = move || inner.run(&mut watched, &hub);
        let thread = thread::Builder::new().name("creole-watch".to_owned()).spawn(run);
        thread.map_err(|error| error.to_string())?;
        Ok(Self { shared })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread is not waited for: it may be the one that drops this.
        locked(&self.shared.pending).ended = true;
        self.shared.woken.notify_all();
    }
}

impl Shared {
    /// Notes what the system tells.
    pub(super) fn note(&self, event: &notify::Result<Event>) {
        let top = std::slice::from_ref(&self.top);
        let (paths, is_written) = match event {
            // Something was missed.
            Ok(event) if event.need_rescan() => (top, false),
            Err(_) => (top, false),
            Ok(Event { kind: EventKind::Access(kind), paths, .. }) => match kind {
                // Readers open and close files too, this process among them.
                AccessKind::Close(AccessMode::Write) => (paths.as_slice(), true),
                _ => return,
            },
            Ok(Event { kind: EventKind::Modify(ModifyKind::Metadata(_)), paths, .. }) => {
                (paths.as_slice(), false)
            }
            Ok(Event { paths, .. }) => (paths.as_slice(), true),
        };
        let mut paths = paths.iter().filter(|path| path.starts_with(&self.top)).peekable();
        if paths.peek().is_none() {
            return;
        }
        let mut pending = locked(&self.pending);
        pending.changed = true;
        for path in paths.filter(|_| is_written) {
            if pending.written.len() < MOST_PATHS {
                pending.written.insert(path.clone());
            }
        }
        drop(pending);
        self.woken.notify_all();
    }

    /// Tells of changes until the end.
    fn run(&self, watched: &mut impl Watched, hub: &Hub) {
        let mut known = BTreeMap::new();
        loop {
            // What came into a folder before it was watched has been missed.
            if watch(watched, hub, &mut known) {
                locked(&self.pending).changed = true;
            }
            let Some(written) = self.settled() else { break };
            watched.look(&written);
        }
        known.keys().for_each(|folder| hub.unwatch(folder));
    }

    /// Waits for changes and until they have settled; `None` at the end.
    fn settled(&self) -> Option<BTreeSet<PathBuf>> {
        let waiting = self.woken.wait_while(locked(&self.pending), |it| !it.changed && !it.ended);
        let mut pending = waiting.unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        while !pending.ended && since.elapsed() < PATIENCE {
            let waited = self.woken.wait_timeout(pending, QUIET);
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

/// Brings what is watched up to date; tells whether a folder came to it.
fn watch(watched: &impl Watched, hub: &Hub, known: &mut BTreeMap<PathBuf, u64>) -> bool {
    let folders = watched.folders();
    if folders.len() > MOST_FOLDERS {
        let (name, all) = (watched.name(), folders.len());
        tracing::warn!("{name}: {MOST_FOLDERS} of {all} folders are watched for changes");
    }
    let number = |folder: &PathBuf| std::fs::metadata(folder).ok().map(|it| it.ino());
    let wanted: BTreeMap<PathBuf, u64> = folders
        .into_iter()
        .take(MOST_FOLDERS)
        .filter_map(|folder| number(&folder).map(|number| (folder, number)))
        .collect();
    known.retain(|folder, number| {
        let stays = wanted.get(folder) == Some(number);
        if !stays {
            hub.unwatch(folder);
        }
        stays
    });
    let mut came = false;
    for (folder, number) in wanted {
        if known.contains_key(&folder) {
            continue;
        }
        match hub.watch(&folder) {
            Ok(()) => {
                known.insert(folder, number);
                came = true;
            }
            Err(error) => {
                let name = watched.name();
                tracing::warn!("{name}: changes in a folder will not be noticed: {error}");
            }
        }
    }
    came
}

/// What is behind the locks is whole between any two steps.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Tells what was written, and that it is gone.
    struct Teller {
        top: PathBuf,
        tells: Sender<Vec<PathBuf>>,
    }

    impl Watched for Teller {
        fn name(&self) -> String {
            "teller".to_owned()
        }

        fn top(&self) -> PathBuf {
            self.top.clone()
        }

        fn folders(&self) -> Vec<PathBuf> {
            vec![self.top.clone()]
        }

        fn look(&mut self, written: &BTreeSet<PathBuf>) {
            // A receiver that is gone wants to know no more.
            _ = self.tells.send(written.iter().cloned().collect());
        }
    }

    fn watched(top: &std::path::Path) -> (Watch, Receiver<Vec<PathBuf>>) {
        let (tells, told) = channel();
        let watch = Watch::start(Teller { top: top.to_owned(), tells }).unwrap();
        // The first look, after the folder came to be watched.
        assert!(told.recv().unwrap().is_empty());
        (watch, told)
    }

    #[test]
    fn two_watch_the_same_folder_and_one_may_go() {
        let folder = tempfile::tempdir().unwrap();
        let ((first, first_told), (second, second_told)) =
            (watched(folder.path()), watched(folder.path()));
        let file = folder.path().join("a");
        fs::write(&file, "1").unwrap();
        for told in [&first_told, &second_told] {
            while !told.recv().unwrap().contains(&file) {}
        }
        drop(first);
        // The thread ends, and its end of the channel with it.
        while first_told.recv().is_ok() {}
        fs::write(folder.path().join("b"), "2").unwrap();
        while !second_told.recv().unwrap().contains(&folder.path().join("b")) {}
        drop(second);
        while second_told.recv().is_ok() {}
    }

    #[test]
    fn what_changes_elsewhere_is_nobodys_business() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ((_watch, told), (_other, other_told)) =
            (watched(folder.path()), watched(other.path()));
        fs::write(other.path().join("x"), "").unwrap();
        while !other_told.recv().unwrap().contains(&other.path().join("x")) {}
        fs::write(folder.path().join("a"), "").unwrap();
        let all: Vec<PathBuf> = told.recv().unwrap();
        assert!(all.iter().all(|path| path.starts_with(folder.path())), "{all:?}");
    }
}
