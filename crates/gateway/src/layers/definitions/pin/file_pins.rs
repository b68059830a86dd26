//! The pins of one server's tools in a file: what they are in memory, and the comparison with current definitions.

use creole::internal::sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use creole_proto::model::Definition;

use crate::layers::definitions::pin::file::{self, update};
use crate::layers::definitions::pin::pinned::{MAX_TOOLS, ObservedTool, Pins};

/// The pins of one upstream's tools.
#[derive(Debug)]
pub(crate) struct FilePins {
    pub(crate) server: String,
    path: PathBuf,
    tools: Mutex<Pins>,
    /// Whether there are changes that the file does not contain yet.
    is_unsaved: AtomicBool,
    /// Whether a write of the file is scheduled.
    pub(crate) is_saving: AtomicBool,
    /// Whether there is an approval that no list shows yet.
    has_new_approval: AtomicBool,
    /// The modification time and the size of the file at the last check.
    file_stamp: Mutex<Option<(SystemTime, u64)>>,
}

impl FilePins {
    /// Reads the pins of the upstream of this name from the file.
    pub(crate) fn read(server: &str, path: &Path) -> io::Result<Self> {
        let tools = file::read(path)?.servers.remove(server).unwrap_or_default();
        Ok(Self {
            server: server.to_owned(),
            path: path.to_owned(),
            tools: Mutex::new(tools),
            is_unsaved: AtomicBool::new(false),
            is_saving: AtomicBool::new(false),
            has_new_approval: AtomicBool::new(false),
            file_stamp: Mutex::default(),
        })
    }

    /// Whether there are changes that the file does not contain yet.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.is_unsaved.load(Ordering::Acquire)
    }

    /// Waits for a concurrent write of the file, and writes unsaved changes.
    pub(crate) fn flush(&self) {
        drop(self.tools());
        if self.is_unsaved() {
            self.save();
        }
    }

    /// Whether the tool differs from its approved definition.
    pub(crate) fn is_changed(&self, tool: &str) -> bool {
        self.tools().get(tool).is_some_and(|pinned| pinned.changed.is_some())
    }

    fn tools(&self) -> MutexGuard<'_, Pins> {
        self.tools.lock()
    }

    /// Whether the tool may be listed with its current definition.
    pub(crate) fn admit(&self, item: &Definition) -> bool {
        let seen = ObservedTool::from(item);
        let mut tools = self.tools();
        let count = tools.len();
        match tools.get_mut(item.name()) {
            Some(pinned) if pinned.sha256 == seen.sha256 => {
                self.mark_unsaved(pinned.changed.take().is_some());
                true
            }
            Some(pinned) => {
                let (server, tool) = (&*self.server, item.name());
                tracing::warn!(
                    server,
                    tool,
                    "the definition of this tool changed; the tool is \
                    withheld until it is approved"
                );
                self.mark_unsaved(pinned.changed.replace(seen.clone()) != Some(seen));
                false
            }
            None if count >= MAX_TOOLS => false,
            None => {
                tools.insert(item.name().to_owned(), seen.into());
                self.mark_unsaved(true);
                true
            }
        }
    }

    /// Whether the tool is pinned.
    pub(crate) fn contains(&self, tool: &str) -> bool {
        self.tools().contains_key(tool)
    }

    fn mark_unsaved(&self, is_new: bool) {
        if is_new {
            self.is_unsaved.store(true, Ordering::Release);
        }
    }

    /// Whether the tool is withheld. Reads new approvals first. A tool above the limit is withheld.
    pub(crate) fn is_withheld(&self, tool: &str) -> bool {
        let is_changed = |tools: &Pins| match tools.get(tool) {
            Some(pinned) => pinned.changed.is_some(),
            None => tools.len() >= MAX_TOOLS,
        };
        if !is_changed(&self.tools()) {
            return false;
        }
        self.save();
        is_changed(&self.tools())
    }

    /// Whether there was an approval since the last query. The file is checked only while a tool is withheld, and read
    /// only after it was written.
    pub(crate) fn take_new_approval(&self) -> bool {
        let is_withholding = self.tools().values().any(|pinned| pinned.changed.is_some());
        if is_withholding && self.take_file_changed() {
            self.save();
        }
        self.has_new_approval.swap(false, Ordering::AcqRel)
    }

    fn take_file_changed(&self) -> bool {
        let found = std::fs::metadata(&self.path).ok();
        let stamp = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        let mut last = self.file_stamp.lock();
        std::mem::replace(&mut *last, stamp) != stamp
    }

    /// Writes the file, and takes over its approvals.
    pub(crate) fn save(&self) {
        let mut tools = self.tools();
        self.is_unsaved.store(false, Ordering::Release);
        let saved = update(&self.path, |all| {
            let pins = all.servers.entry(self.server.clone()).or_default();
            for (name, pinned) in tools.iter_mut() {
                let approved = pins.get(name).filter(|there| pinned.is_approved_as(there));
                if let Some(there) = approved {
                    *pinned = there.clone();
                    self.has_new_approval.store(true, Ordering::Release);
                }
                if let Some(there) = pins.get(name) {
                    pinned.rejected.clone_from(&there.rejected);
                }
                pins.insert(name.clone(), pinned.clone());
            }
        });
        if let Err(error) = saved {
            let file = self.path.display();
            tracing::error!(%file, %error, "cannot write the pin file");
        }
    }
}
