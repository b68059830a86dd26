//! The pin layer: withholds tools whose definitions changed until they are approved.
//!
//! A tool that is seen for the first time is trusted and recorded in a file, which is written before a list shows the
//! tool. If a later definition differs, the tool is no longer listed and its calls are refused, until an operator
//! approves the difference. Definitions are compared at every fetch of a list. A change without a notification is
//! detected at the next fetch. Replicas may share the record in their state instead.

mod file;
mod file_pins;
mod location;
mod pinned;
mod shared_pins;
mod stored_pins;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome};

use file_pins::FilePins;
pub use location::PinLocation;
pub use pinned::{ChangedTool, Difference, PinDecision, PinDecisionOutcome, PinView};
pub use shared_pins::SharedPinSet;
use shared_pins::SharedPins;

/// How long changes are collected before the file is written.
const SAVE_DELAY: Duration = Duration::from_millis(100);

/// A layer that withholds tools whose definitions changed.
#[derive(Debug)]
pub struct Pin(PinStore);

/// Where the definitions are recorded.
#[derive(Debug)]
enum PinStore {
    File(Arc<FilePins>),
    /// The second is the number of decisions that lists show.
    Shared(Arc<SharedPins>, AtomicU64),
}

impl Pin {
    /// A layer around the upstream of this name, with the pins of the file.
    ///
    /// # Errors
    /// When the file exists and cannot be read: a changed tool must not pass as new.
    pub fn new(server: &str, path: &Path) -> io::Result<Self> {
        FilePins::read(server, path).map(|pins| Self(PinStore::File(Arc::new(pins))))
    }

    /// A layer around the upstream of this name, with the pins that replicas share. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn shared(server: &str, pins: &SharedPinSet) -> Self {
        let pins = pins.of(server);
        let shown = AtomicU64::new(pins.decisions());
        Self(PinStore::Shared(pins, shown))
    }

    /// The fault of a call of a withheld tool.
    fn withheld_tool_fault(&self, name: &str) -> Fault {
        match &self.0 {
            PinStore::Shared(pins, _) if !pins.contains(name) => {
                let detail = format!(
                    "the tool `{name}` is new and not recorded in the shared state yet; try again"
                );
                Fault::new(FaultKind::ToolFailed, detail).with_subject(name)
            }
            PinStore::Shared(pins, _) => approval_fault(&pins.server, name),
            PinStore::File(pins) => approval_fault(&pins.server, name),
        }
    }

    fn is_withheld(&self, tool: &str) -> bool {
        match &self.0 {
            PinStore::File(pins) => pins.is_withheld(tool),
            PinStore::Shared(pins, _) => pins.is_withheld(tool),
        }
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
fn save_soon(pin: &Arc<FilePins>) {
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
        self.save_definitions();
    }
}

impl Middleware for Pin {
    fn kind(&self) -> &'static str {
        "pin"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        match (&call.operation, &self.0) {
            (Operation::CallTool { name, .. }, _) if self.is_withheld(name) => {
                let fault = self.withheld_tool_fault(name);
                Box::pin(async move { fault.into() })
            }
            (Operation::List(ListKind::Tools, _), PinStore::File(pins)) if pins.is_unsaved() => {
                let pins = Arc::clone(pins);
                Box::pin(async move {
                    // A failure is logged. The list is returned nevertheless.
                    _ = tokio::task::spawn_blocking(move || pins.flush()).await;
                    next.call(call).await
                })
            }
            _ => next.call(call),
        }
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        let is_shown = kind != ListKind::Tools
            || match &self.0 {
                PinStore::File(pins) => {
                    let is_shown = pins.admit(&item);
                    save_soon(pins);
                    is_shown
                }
                PinStore::Shared(pins, _) => pins.admit(&item),
            };
        is_shown.then_some(item)
    }

    fn withheld_fault(&self, kind: ListKind, item: &Definition) -> Option<Fault> {
        let is_withheld = || match &self.0 {
            PinStore::File(pins) => pins.is_changed(item.name()),
            PinStore::Shared(pins, _) => pins.is_withheld(item.name()),
        };
        let is_withheld = kind == ListKind::Tools && is_withheld();
        is_withheld.then(|| self.withheld_tool_fault(item.name()))
    }

    fn save_definitions(&self) {
        if let PinStore::File(pins) = &self.0 {
            pins.flush();
        }
    }

    fn admits_unlisted(&self, kind: ListKind, name: &str) -> bool {
        kind != ListKind::Tools
            || match &self.0 {
                PinStore::File(pins) => pins.contains(name),
                PinStore::Shared(pins, _) => pins.contains(name),
            }
    }

    fn definitions_changed(&self) -> bool {
        match &self.0 {
            PinStore::File(pins) => pins.take_new_approval(),
            PinStore::Shared(pins, shown) => {
                let decisions = pins.decisions();
                shown.swap(decisions, Ordering::AcqRel) != decisions
            }
        }
    }
}

#[cfg(test)]
mod tests;
