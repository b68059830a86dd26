//! Withholds tools whose definitions changed until they are approved.
//!
//! A tool that is seen for the first time is trusted and remembered in a file, which is written before a list shows the
//! tool. When a later definition differs, the tool is no longer listed and its calls are refused, until somebody has
//! looked at the difference and approved it. Definitions are compared whenever a list is fetched, for whatever reason:
//! a server that changes a tool without telling is noticed then, and not before.

mod file;
mod memory;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};

pub use file::{Changed, approve, changes};
use memory::Memory;

/// How long changes are gathered before the file is written.
const GATHER: Duration = Duration::from_millis(100);

/// A layer that withholds tools whose definitions changed.
#[derive(Debug)]
pub struct Pin(Arc<Memory>);

impl Pin {
    /// A layer around the server of this name, with what the file remembers of it.
    ///
    /// # Errors
    /// When there is a file that cannot be read: nothing that changed may pass for new.
    pub fn new(server: &str, path: &Path) -> io::Result<Self> {
        Memory::read(server, path).map(|memory| Self(Arc::new(memory)))
    }
}

/// What a caller of a tool that changed is told.
fn awaits_approval(server: &str, name: &str) -> Fault {
    let detail = format!(
        "the tool {name} changed and awaits approval; `creole approve FILE {server}` shows the change, \
         `creole approve FILE {server} {name}` lets it be used again"
    );
    Fault::new(FaultKind::ToolFailed, detail).with_subject(name)
}

/// Writes the file soon, so that a list of a thousand tools is written once.
fn save_soon(pin: &Arc<Memory>) {
    if !pin.is_new() || pin.is_saving.swap(true, Ordering::AcqRel) {
        return;
    }
    let pin = Arc::clone(pin);
    std::thread::spawn(move || {
        std::thread::sleep(GATHER);
        pin.is_saving.store(false, Ordering::Release);
        // What was written meanwhile, others may have changed since: an old word must not take the place of theirs.
        if pin.is_new() {
            pin.save();
        }
    });
}

impl Drop for Pin {
    /// Writes what is not written yet.
    fn drop(&mut self) {
        self.0.settle();
    }
}

impl Middleware for Pin {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        match &call.operation {
            Operation::CallTool { name, .. } if self.0.withholds(name) => {
                let fault = awaits_approval(&self.0.server, name);
                Box::pin(async move { fault.into() })
            }
            Operation::List(ListKind::Tools, _) if self.0.is_new() => {
                let memory = Arc::clone(&self.0);
                Box::pin(async move {
                    // If that fails, it is in the log; the list is answered nevertheless.
                    _ = tokio::task::spawn_blocking(move || memory.settle()).await;
                    next.call(call).await
                })
            }
            _ => next.call(call),
        }
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        let is_shown = kind != ListKind::Tools || self.0.admits(&item);
        save_soon(&self.0);
        is_shown.then_some(item)
    }

    fn withheld_fault(&self, kind: ListKind, item: &Definition) -> Option<Fault> {
        let is_withheld = kind == ListKind::Tools && self.0.is_changed(item.name());
        is_withheld.then(|| awaits_approval(&self.0.server, item.name()))
    }

    fn save_definitions(&self) {
        self.0.settle();
    }

    fn admits_unlisted(&self, kind: ListKind, name: &str) -> bool {
        kind != ListKind::Tools || self.0.knows(name)
    }

    fn definitions_changed(&self) -> bool {
        self.0.has_approved()
    }
}

#[cfg(test)]
mod tests;
