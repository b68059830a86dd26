//! The pin layer: withholds tools whose definitions changed until they are approved.
//!
//! A tool that is seen for the first time is trusted and recorded in a file, which is written before a list shows the
//! tool. If a later definition differs, the tool is no longer listed and its calls are refused, until an operator
//! approves the difference. Definitions are compared at every fetch of a list. A change without a notification is
//! detected at the next fetch.

mod file;
mod store;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};

pub use file::{
    ChangedTool, Difference, PinDecision, PinDecisionOutcome, PinView, approve, changed_tools,
    decide, pins,
};
use store::PinStore;

/// How long changes are collected before the file is written.
const SAVE_DELAY: Duration = Duration::from_millis(100);

/// A layer that withholds tools whose definitions changed.
#[derive(Debug)]
pub struct Pin(Arc<PinStore>);

impl Pin {
    /// A layer around the upstream of this name, with the pins of the file.
    ///
    /// # Errors
    /// When the file exists and cannot be read: a changed tool must not pass as new.
    pub fn new(server: &str, path: &Path) -> io::Result<Self> {
        PinStore::read(server, path).map(|memory| Self(Arc::new(memory)))
    }
}

/// The fault of a call of a changed tool.
fn approval_fault(server: &str, name: &str) -> Fault {
    let detail = format!(
        "the definition of the tool `{name}` changed and is not approved; `creole approve FILE \
            {server}` shows the change, `creole approve FILE {server} {name}` approves it"
    );
    Fault::new(FaultKind::ToolFailed, detail).with_subject(name)
}

/// Writes the file after a short delay, so that a list of a thousand tools causes one write.
fn save_soon(pin: &Arc<PinStore>) {
    if !pin.is_unsaved() || pin.is_saving.swap(true, Ordering::AcqRel) {
        return;
    }
    let pin = Arc::clone(pin);
    std::thread::spawn(move || {
        std::thread::sleep(SAVE_DELAY);
        pin.is_saving.store(false, Ordering::Release);
        // Another process may have changed the file since a write meanwhile. Old data must not replace its data.
        if pin.is_unsaved() {
            pin.save();
        }
    });
}

impl Drop for Pin {
    /// Writes unsaved changes.
    fn drop(&mut self) {
        self.0.flush();
    }
}

impl Middleware for Pin {
    fn kind(&self) -> &'static str {
        "pin"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        match &call.operation {
            Operation::CallTool { name, .. } if self.0.is_withheld(name) => {
                let fault = approval_fault(&self.0.server, name);
                Box::pin(async move { fault.into() })
            }
            Operation::List(ListKind::Tools, _) if self.0.is_unsaved() => {
                let memory = Arc::clone(&self.0);
                Box::pin(async move {
                    // A failure is logged. The list is returned nevertheless.
                    _ = tokio::task::spawn_blocking(move || memory.flush()).await;
                    next.call(call).await
                })
            }
            _ => next.call(call),
        }
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        let is_shown = kind != ListKind::Tools || self.0.admit(&item);
        save_soon(&self.0);
        is_shown.then_some(item)
    }

    fn withheld_fault(&self, kind: ListKind, item: &Definition) -> Option<Fault> {
        let is_withheld = kind == ListKind::Tools && self.0.is_changed(item.name());
        is_withheld.then(|| approval_fault(&self.0.server, item.name()))
    }

    fn save_definitions(&self) {
        self.0.flush();
    }

    fn admits_unlisted(&self, kind: ListKind, name: &str) -> bool {
        kind != ListKind::Tools || self.0.contains(name)
    }

    fn definitions_changed(&self) -> bool {
        self.0.take_new_approval()
    }
}

#[cfg(test)]
mod tests;
