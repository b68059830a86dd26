//! Withholds tools whose definitions changed until they are approved.
//!
//! A tool that is seen for the first time is trusted and remembered in a file. When a later definition differs, the
//! tool is no longer listed and its calls are refused, until somebody has looked at the difference and approved it.

mod file;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use creole::seal::digest;
use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::op::{Operation, Outcome};
use creole_proto::wire::{Raw, canonical, hex};

use super::edit::newest;
pub use file::{Changed, approve, changes};
use file::{Pinned, Pins, Seen, update};

/// Tools of one server that are remembered; further ones are withheld.
const MOST_TOOLS: usize = 10_000;

/// How long changes are gathered before the file is written.
const GATHER: Duration = Duration::from_millis(100);

/// A layer that withholds tools whose definitions changed.
#[derive(Debug)]
pub struct Pin(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    server: String,
    path: PathBuf,
    tools: Mutex<Pins>,
    /// Whether there is something that the file does not say yet.
    is_new: AtomicBool,
    /// Whether somebody is about to write the file.
    is_saving: AtomicBool,
    /// Whether something was approved that no list shows yet.
    is_approved: AtomicBool,
    /// When the file was last written, and its size, when it was last looked at.
    stamp: Mutex<Option<(SystemTime, u64)>>,
}

impl Pin {
    /// A layer around the server of this name, with what the file remembers of it.
    ///
    /// # Errors
    /// When there is a file that cannot be read: nothing that changed may pass for new.
    pub fn new(server: &str, path: &Path) -> io::Result<Self> {
        let tools = file::read(path)?.servers.remove(server).unwrap_or_default();
        Ok(Self(Arc::new(Inner {
            server: server.to_owned(),
            path: path.to_owned(),
            tools: Mutex::new(tools),
            is_new: AtomicBool::new(false),
            is_saving: AtomicBool::new(false),
            is_approved: AtomicBool::new(false),
            stamp: Mutex::default(),
        })))
    }
}

impl Inner {
    fn tools(&self) -> MutexGuard<'_, Pins> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the tool may be seen as it is defined now.
    fn admits(&self, item: &Definition) -> bool {
        let text = canonical(newest(item));
        let seen = Seen { sha256: hex(&digest(text.as_bytes())), definition: raw(&text) };
        let mut tools = self.tools();
        let count = tools.len();
        match tools.get_mut(item.name()) {
            Some(pinned) if pinned.sha256 == seen.sha256 => {
                self.note(pinned.changed.take().is_some());
                true
            }
            Some(pinned) => {
                let (server, tool) = (&*self.server, item.name());
                tracing::warn!(server, tool, "this tool changed: withheld until it is approved");
                self.note(pinned.changed.replace(seen.clone()) != Some(seen));
                false
            }
            None if count >= MOST_TOOLS => false,
            None => {
                let Seen { sha256, definition } = seen;
                tools.insert(item.name().to_owned(), Pinned { sha256, definition, changed: None });
                self.note(true);
                true
            }
        }
    }

    fn note(&self, is_new: bool) {
        if is_new {
            self.is_new.store(true, Ordering::Release);
        }
    }

    /// Whether the tool is withheld; one that was approved meanwhile is not.
    fn withholds(&self, tool: &str) -> bool {
        let is_changed = |tools: &Pins| tools.get(tool).is_some_and(|it| it.changed.is_some());
        if !is_changed(&self.tools()) {
            return false;
        }
        self.save();
        is_changed(&self.tools())
    }

    /// Whether something was approved since this was last asked. Only while a tool is withheld is the file looked
    /// at, and only when it was written is it read.
    fn has_approved(&self) -> bool {
        let is_withholding = self.tools().values().any(|pinned| pinned.changed.is_some());
        if is_withholding && self.is_written() {
            self.save();
        }
        self.is_approved.swap(false, Ordering::AcqRel)
    }

    fn is_written(&self) -> bool {
        let found = std::fs::metadata(&self.path).ok();
        let stamp = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        let mut last = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *last, stamp) != stamp
    }

    /// Writes the file, and takes over what was approved there.
    fn save(&self) {
        let mut tools = self.tools();
        self.is_new.store(false, Ordering::Release);
        let saved = update(&self.path, |all| {
            let pins = all.servers.entry(self.server.clone()).or_default();
            for (name, pinned) in tools.iter_mut() {
                let approved = pins.get(name).filter(|there| pinned.is_changed_to(there));
                if let Some(there) = approved {
                    *pinned = there.clone();
                    self.is_approved.store(true, Ordering::Release);
                }
                pins.insert(name.clone(), pinned.clone());
            }
        });
        if let Err(error) = saved {
            let file = self.path.display();
            tracing::error!(%file, %error, "the definitions of tools cannot be remembered");
        }
    }
}

/// Writes the file soon, so that a list of a thousand tools is written once.
fn save_soon(pin: &Arc<Inner>) {
    if !pin.is_new.load(Ordering::Acquire) || pin.is_saving.swap(true, Ordering::AcqRel) {
        return;
    }
    let pin = Arc::clone(pin);
    std::thread::spawn(move || {
        std::thread::sleep(GATHER);
        pin.is_saving.store(false, Ordering::Release);
        // What was written meanwhile, others may have changed since: an old word must not take the place of theirs.
        if pin.is_new.load(Ordering::Acquire) {
            pin.save();
        }
    });
}

impl Drop for Pin {
    /// Writes what is not written yet.
    fn drop(&mut self) {
        // One who writes now is waited for.
        drop(self.0.tools());
        if self.0.is_new.load(Ordering::Acquire) {
            self.0.save();
        }
    }
}

fn raw(text: &str) -> Raw {
    Raw::parse(text).unwrap_or_else(|_| Raw::of(&()))
}

impl Middleware for Pin {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        match &call.operation {
            Operation::CallTool { name, .. } if self.0.withholds(name) => {
                let server = &self.0.server;
                let detail = format!(
                    "the tool {name} is not what it was when it was approved; \
                     `creole approve FILE {server} {name}` lets it be used again"
                );
                let fault = Fault::new(FaultKind::ToolFailed, detail).about(name);
                Box::pin(async move { fault.into() })
            }
            _ => next.call(call),
        }
    }

    fn shape(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        let is_shown = kind != ListKind::Tools || self.0.admits(&item);
        save_soon(&self.0);
        is_shown.then_some(item)
    }

    fn has_changed(&self) -> bool {
        self.0.has_approved()
    }
}

#[cfg(test)]
mod tests;
