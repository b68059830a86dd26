//! The pack `tasks`: a list of tasks in a database that outlives the server and may be shared.

mod cursor;
mod database;
mod error;
mod resource;
mod store;
mod task;
mod tools;
mod wait;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod store_tests;

use creole::{Registry, Server, ToolError};

use crate::Options;
use store::Store;
use task::Task;

/// Adds the pack. The tools tell subscribers what they change, so they are added once the registry is
/// there.
pub(crate) fn add(server: Server, options: &Options) -> Server {
    let store = Store::new(options.clone());
    server.setup(move |registry| {
        let tasks = Tasks { store, registry: registry.clone() };
        for tool in tools::all(&tasks) {
            registry.add_tool(tool);
        }
        registry.add_template(resource::template(tasks.store));
    })
}

/// What the tools of this pack work with.
#[derive(Clone)]
struct Tasks {
    store: Store,
    registry: Registry,
}

impl Tasks {
    /// Tells whoever watches that a task changed.
    fn changed(&self, task: &Task) {
        self.registry.resource_updated(&resource::uri(&task.id));
    }
}

fn not_found(id: &str) -> ToolError {
    ToolError::Failed(format!("error: task not found: {id}"))
}
