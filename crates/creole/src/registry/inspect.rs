//! The items of a registry as operators see them: also those that no client sees.

use std::sync::Arc;

use creole_proto::fault::Fault;
use creole_proto::model::{Definition, ListKind};

use super::{Registry, RegistryState};
use crate::task::InspectedTask;

/// An item of a list.
#[derive(Clone, Debug)]
pub struct InspectedItem {
    /// Which list.
    pub kind: ListKind,
    /// The upstream that it comes from. `None` if it is the server's own.
    pub source: Option<String>,
    /// Its definition before the layers of the server.
    pub own: Arc<Definition>,
    /// Its definition as clients see it. `None` if a layer hides it.
    pub visible: Option<Arc<Definition>>,
}

/// A tool of an upstream that is not listed, because its callers get a fault instead.
#[derive(Clone, Debug)]
pub struct WithheldTool {
    /// The upstream.
    pub source: String,
    /// The tool.
    pub name: String,
    /// Why it is withheld.
    pub reason: String,
}

impl Registry {
    /// All items of a list, in its order.
    pub fn inspect(&self, kind: ListKind) -> Vec<InspectedItem> {
        let state = self.read();
        let item = |(rank, own, visible): (u32, &Arc<Definition>, Option<&Arc<Definition>>)| {
            InspectedItem {
                kind,
                source: state.names.get(&rank).filter(|_| rank > 0).cloned(),
                own: Arc::clone(own),
                visible: visible.map(Arc::clone),
            }
        };
        match kind {
            ListKind::Tools => state.tools.inspect().map(item).collect(),
            ListKind::Resources => state.resources.inspect().map(item).collect(),
            ListKind::Templates => state.templates.inspect().map(item).collect(),
            ListKind::Prompts => state.prompts.inspect().map(item).collect(),
            ListKind::Skills => Vec::new(),
        }
    }

    /// The tasks that this process keeps, oldest first.
    pub async fn inspect_tasks(&self) -> Vec<InspectedTask> {
        self.tasks().inspect().await
    }

    /// Cancels the task with this digest of its id. Returns whether it was running, or `None` if there is none.
    ///
    /// # Errors
    /// When the state cannot be used.
    pub async fn cancel_task(&self, digest: &str) -> Result<Option<bool>, Fault> {
        self.tasks().cancel_inspected(digest).await
    }

    /// The tools of upstreams that are withheld.
    pub fn withheld_tools(&self) -> Vec<WithheldTool> {
        let state: &RegistryState = &self.read();
        let of_source = |(rank, tools): (&u32, &std::collections::BTreeMap<String, _>)| {
            let source = state.names.get(rank).cloned().unwrap_or_default();
            let tools: &std::collections::BTreeMap<String, Fault> = tools;
            let tool = move |(name, fault): (&String, &Fault)| WithheldTool {
                source: source.clone(),
                name: name.clone(),
                reason: fault.detail.clone(),
            };
            tools.iter().map(tool).collect::<Vec<_>>()
        };
        state.withheld.iter().flat_map(of_source).collect()
    }
}
