//! The pack `tasks`: a list of tasks in a database that persists and may be shared between servers.

#[cfg(any(test, feature = "store-conformance"))]
pub mod conformance;
mod cursor;
mod database;
mod error;
mod resource;
mod server;
mod store;
mod task;
mod tools;
mod wait;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod store_tests;

use creole::proto::fault::{Fault, FaultKind};
use creole::{Server, ToolError, WeakRegistry};

use crate::PackOptions;
use store::Store;
use task::Task;

/// Adds the pack. The tools notify subscribers of their changes, so they are added after the registry exists.
pub(crate) fn add(server: Server, options: &PackOptions) -> Server {
    let store = Store::new(options.clone());
    server.setup(move |registry| {
        let tasks = TaskTools { store, registry: registry.downgrade() };
        for tool in tools::all(&tasks) {
            registry.add_tool(tool);
        }
        registry.add_template(resource::template(tasks.store));
    })
}

/// The shared state of this pack's tools.
#[derive(Clone)]
struct TaskTools {
    store: Store,
    registry: WeakRegistry,
}

impl TaskTools {
    /// Notifies subscribers that a task changed.
    fn notify_changed(&self, task: &Task) {
        if let Some(registry) = self.registry.upgrade() {
            registry.resource_updated(&resource::uri(&task.id));
        }
    }
}

fn not_found(id: &str) -> ToolError {
    // A very long id is not repeated in full.
    let shown: String = id.chars().take(100).collect();
    ToolError::Failed(format!("error: task not found: {shown}"))
}

/// Maximum length of a description, in characters. The published schema has no such limit, so it is checked here.
const MAX_DESCRIPTION_CHARS: usize = 10_000;

fn check_description(description: &str) -> Result<(), ToolError> {
    let length = description.chars().take(MAX_DESCRIPTION_CHARS + 1).count();
    if (1..=MAX_DESCRIPTION_CHARS).contains(&length) {
        return Ok(());
    }
    let detail = format!("`/description` must have 1 to {MAX_DESCRIPTION_CHARS} characters");
    Err(ToolError::Fault(Box::new(Fault::new(FaultKind::InvalidArguments, detail))))
}
