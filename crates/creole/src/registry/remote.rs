//! Items of upstreams: listed here, executed there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{
    Definition, Implementation, ListKind, Reference, ServerCapabilities, TaskSupport,
};
use creole_proto::operation::{Change, Operation};
use creole_proto::revision::Rules;
use creole_proto::wire::{Object, unquote};

use super::catalogue::{DefinedItem, ExcludedEntry};
use super::collisions::NameCollision;
use super::session_lists::SessionLists;
use super::{Announcement, PreparedTool, Recipients, Registry, RegistryState, WeakRegistry};
use crate::call::{Call, ConnectionId};
use crate::chain::Endpoint;
use crate::item::prompt::Prompt;
use crate::item::resource::{Resource, Template};
use crate::item::tool::Tool;
use crate::item::uri_template::UriTemplate;
use crate::schema::Schema;

/// An item of an upstream.
#[derive(Clone)]
pub struct RemoteItem {
    /// Its definition, under the name that it has here.
    pub definition: Definition,
    /// Its name, URI or URI template at the upstream.
    pub name: String,
    /// The endpoint that executes its calls.
    pub endpoint: Arc<dyn Endpoint>,
    /// Whether it runs as a task, if it is a tool.
    pub task_support: TaskSupport,
    /// Whether the upstream decides for each call whether it becomes a task, so that it is called in place first.
    pub decides_task: bool,
}

/// What an upstream offers besides its lists.
#[derive(Clone)]
pub struct RemoteServer {
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Its identity, if this server represents it.
    pub identity: Option<Arc<Implementation>>,
    /// Its instructions for a model.
    pub instructions: Option<String>,
    /// Its endpoint, also for resources that it does not list.
    pub endpoint: Arc<dyn Endpoint>,
    /// Its lists for callers that have their own session there.
    pub sessions: Option<Arc<dyn SessionLists>>,
}

/// An item that is executed here or at an upstream.
pub(super) enum LocalOrRemote<T> {
    Local(T),
    Remote(Box<RemoteTarget>),
}

impl<T> LocalOrRemote<T> {
    pub(super) fn local(&self) -> Option<&T> {
        match self {
            Self::Local(item) => Some(item),
            Self::Remote(_) => None,
        }
    }

    pub(super) fn remote(&self) -> Option<&RemoteTarget> {
        match self {
            Self::Local(_) => None,
            Self::Remote(remote) => Some(remote),
        }
    }
}

/// The upstream side of an item.
pub(super) struct RemoteTarget {
    pub(super) name: String,
    pub(super) endpoint: Arc<dyn Endpoint>,
    pub(super) task_support: TaskSupport,
    pub(super) decides_task: bool,
    /// The schema of the arguments, if the dialect has its own errors for invalid ones: then they are validated here,
    /// because the upstream has other errors.
    pub(super) schema: Option<Schema>,
    pattern: Option<UriTemplate>,
}

impl RemoteTarget {
    /// The endpoint of the item; `name` becomes its name there.
    fn resolve(&self, name: &mut String) -> Option<Arc<dyn Endpoint>> {
        self.name.clone_into(name);
        Some(Arc::clone(&self.endpoint))
    }

    fn from_item(remote: &RemoteItem, is_checked: bool) -> Self {
        let text = remote.definition.text(Rules::CANONICAL);
        let item = Object::new(text).unwrap_or(Object::EMPTY);
        let [template, schema] = item.get_many(["uriTemplate", "inputSchema"]);
        Self {
            name: remote.name.clone(),
            endpoint: Arc::clone(&remote.endpoint),
            task_support: remote.task_support,
            decides_task: remote.decides_task,
            schema: schema.filter(|_| is_checked).map(Schema::new),
            pattern: template.and_then(unquote).map(|template| UriTemplate::new(&template)),
        }
    }
}

/// The place of an upstream, or of a folder, in a registry: its items are listed after those of earlier sources, are
/// replaced as a whole, and are removed when this is dropped.
#[derive(Debug)]
pub struct ItemSource {
    pub(super) registry: WeakRegistry,
    pub(super) rank: u32,
}

impl Registry {
    /// Adds a source for an upstream or a folder, after the earlier ones.
    #[doc(hidden)]
    #[doc(hidden)]
    pub fn add_source(&self) -> ItemSource {
        let mut state = self.write();
        state.last_source += 1;
        ItemSource { registry: self.downgrade(), rank: state.last_source }
    }

    /// Whether the dialect has its own errors for invalid arguments.
    pub(super) fn checks_remote_arguments(&self) -> bool {
        let mut errors = self.shared.settings.dialect.errors.iter();
        errors.any(|row| row.kind == FaultKind::InvalidArguments)
    }

    /// The endpoint of the upstream that a call goes to. The operation is rewritten for that upstream.
    pub(super) fn endpoint_of(&self, call: &mut Call) -> Option<Arc<dyn Endpoint>> {
        let (operation, context) = (&mut call.operation, &call.context);
        match operation {
            Operation::CallTool { name, .. } => {
                self.read().tools.get_measured(name, context)?.remote()?.resolve(name)
            }
            Operation::GetPrompt { name, .. } => {
                self.read().prompts.get_measured(name, context)?.remote()?.resolve(name)
            }
            other => self.remote_endpoint(other),
        }
    }

    /// The endpoint of an upstream's resource, or of what is completed. The operation is rewritten for that upstream.
    pub(super) fn remote_endpoint(&self, operation: &mut Operation) -> Option<Arc<dyn Endpoint>> {
        let state = self.read();
        match operation {
            Operation::ReadResource { uri } | Operation::Subscribe { uri } => {
                state.remote_resource(uri)
            }
            Operation::Complete(request) => match &mut request.reference {
                Reference::Prompt(name) => state.prompts.get(name)?.remote()?.resolve(name),
                Reference::Resource(uri) => state.remote_template(uri),
            },
            _ => None,
        }
    }

    /// Notifies the upstreams that a subscription of this connection ended.
    #[doc(hidden)]
    pub fn subscription_ended(&self, uri: &str, connection: ConnectionId) {
        let endpoints: Vec<_> = {
            let state = self.read();
            match state.remote_resource(uri) {
                Some(endpoint) => vec![endpoint],
                None => {
                    state.remote_servers.values().map(|offer| Arc::clone(&offer.endpoint)).collect()
                }
            }
        };
        endpoints.iter().for_each(|endpoint| endpoint.subscription_ended(uri, connection));
    }
}

impl RegistryState {
    fn remote_resource(&self, uri: &str) -> Option<Arc<dyn Endpoint>> {
        if let Some(resource) = self.resources.get(uri) {
            return resource.remote().map(|remote| Arc::clone(&remote.endpoint));
        }
        self.remote_template_matching(uri)
    }

    fn remote_template_matching(&self, uri: &str) -> Option<Arc<dyn Endpoint>> {
        self.templates.iter().find_map(|template| {
            let remote = template.remote()?;
            remote.pattern.as_ref()?.matches(uri)?;
            Some(Arc::clone(&remote.endpoint))
        })
    }

    /// The endpoint of a template, or of a resource whose URI is given instead.
    fn remote_template(&self, uri: &str) -> Option<Arc<dyn Endpoint>> {
        let mut remotes = self.templates.iter().filter_map(|template| template.remote());
        let found = remotes.find(|remote| remote.name == uri);
        found.map(|remote| Arc::clone(&remote.endpoint)).or_else(|| self.remote_resource(uri))
    }

    fn replace(
        &mut self,
        kind: ListKind,
        rank: u32,
        remotes: Vec<RemoteItem>,
        are_checked: bool,
    ) -> Vec<ExcludedEntry> {
        let behind: Vec<_> = remotes
            .into_iter()
            .map(|remote| {
                let target = RemoteTarget::from_item(&remote, are_checked);
                (remote.definition, target)
            })
            .collect();
        match kind {
            ListKind::Tools => self.tools.replace_remote(rank, into_remote(behind)),
            ListKind::Resources => self.resources.replace_remote(rank, into_remote(behind)),
            ListKind::Templates => self.templates.replace_remote(rank, into_remote(behind)),
            ListKind::Prompts => self.prompts.replace_remote(rank, into_remote(behind)),
            // Skills of upstreams are among their resources.
            ListKind::Skills => Vec::new(),
        }
    }

    /// The name collisions of excluded items.
    fn name_collisions(&self, refused: Vec<ExcludedEntry>) -> Vec<NameCollision> {
        let server = |rank| match self.names.get(&rank) {
            None if rank != 0 => Some("another server".to_owned()),
            named => named.cloned(),
        };
        let told = |excluded_entry: ExcludedEntry| NameCollision {
            server: server(excluded_entry.rank),
            name: excluded_entry.name,
            holder: excluded_entry.holder,
        };
        refused.into_iter().map(told).collect()
    }
}

fn excluded_names(refused: Vec<ExcludedEntry>) -> Vec<String> {
    refused.into_iter().map(|excluded_entry| excluded_entry.name).collect()
}

fn into_remote<T>(items: Vec<DefinedItem<RemoteTarget>>) -> Vec<DefinedItem<LocalOrRemote<T>>> {
    let held = |(definition, target)| (definition, LocalOrRemote::Remote(Box::new(target)));
    items.into_iter().map(held).collect()
}

fn into_local<T>(
    items: Vec<T>,
    definition: impl Fn(&T) -> Definition,
) -> Vec<DefinedItem<LocalOrRemote<T>>> {
    items.into_iter().map(|item| (definition(&item), LocalOrRemote::Local(item))).collect()
}

impl ItemSource {
    /// Sets the name of the upstream, for messages.
    pub fn set_name(&self, name: &str) {
        if let Some(registry) = self.registry.upgrade() {
            registry.write().names.insert(self.rank, name.to_owned());
        }
    }

    /// Replaces the upstream's items, without an announcement. Items whose name is taken are excluded, and so are tools
    /// and prompts whose name is confusable with another one.
    pub fn set_items(&self, kind: ListKind, remotes: Vec<RemoteItem>) -> Vec<NameCollision> {
        let Some(registry) = self.registry.upgrade() else { return Vec::new() };
        let mut state = registry.write();
        state.has_task_tools |=
            remotes.iter().any(|remote| remote.task_support != TaskSupport::Forbidden);
        let refused = state.replace(kind, self.rank, remotes, registry.checks_remote_arguments());
        state.name_collisions(refused)
    }

    /// Replaces the upstream's tools that are not listed and whose callers get a fault, by the names that they would
    /// have.
    pub fn set_withheld(&self, tools: BTreeMap<String, Fault>) {
        if let Some(registry) = self.registry.upgrade() {
            registry.write().withheld.insert(self.rank, tools);
        }
    }

    /// Replaces the tools that run here, without an announcement. Returns the names that are excluded because they are
    /// taken.
    pub fn set_tools(&self, tools: Vec<Tool>) -> Vec<String> {
        let Some(registry) = self.registry.upgrade() else { return Vec::new() };
        let dialect = &registry.shared.settings.dialect;
        let tools = tools.into_iter().map(|tool| PreparedTool::new(tool, dialect)).collect();
        let mut state = registry.write();
        state.tools.mark_offered();
        excluded_names(state.tools.replace(
            self.rank,
            into_local(tools, |prepared_tool| (&prepared_tool.tool.definition).into()),
        ))
    }

    /// Replaces the resources that are read here, without an announcement. Returns the URIs that are excluded because
    /// they are taken.
    pub fn set_resources(&self, resources: Vec<Resource>) -> Vec<String> {
        let Some(registry) = self.registry.upgrade() else { return Vec::new() };
        let mut state = registry.write();
        state.can_subscribe = true;
        state.resources.mark_offered();
        excluded_names(
            state.resources.replace(
                self.rank,
                into_local(resources, |resource| (&resource.definition).into()),
            ),
        )
    }

    /// Replaces the templates that are read here, without an announcement. Returns those that are excluded because they
    /// are taken.
    pub fn set_templates(&self, templates: Vec<Template>) -> Vec<String> {
        let Some(registry) = self.registry.upgrade() else { return Vec::new() };
        let mut state = registry.write();
        state.can_subscribe = true;
        state.templates.mark_offered();
        excluded_names(
            state.templates.replace(
                self.rank,
                into_local(templates, |template| (&template.definition).into()),
            ),
        )
    }

    /// Replaces the prompts that are executed here, without an announcement. Returns the names that are excluded
    /// because they are taken.
    pub fn set_prompts(&self, prompts: Vec<Prompt>) -> Vec<String> {
        let Some(registry) = self.registry.upgrade() else { return Vec::new() };
        let mut state = registry.write();
        state.prompts.mark_offered();
        excluded_names(
            state
                .prompts
                .replace(self.rank, into_local(prompts, |prompt| (&prompt.definition).into())),
        )
    }

    /// Offers lists of each kind although it is not known yet which of them the upstream has.
    pub fn offer_lists(&self) {
        let Some(registry) = self.registry.upgrade() else { return };
        let mut state = registry.write();
        state.tools.mark_offered();
        state.resources.mark_offered();
        state.can_subscribe = true;
        state.prompts.mark_offered();
    }

    /// Sets what the upstream offers besides its lists.
    pub fn set_server(&self, offer: RemoteServer) {
        if let Some(registry) = self.registry.upgrade() {
            let mut state = registry.write();
            state.has_task_tools |= offer.capabilities.tasks;
            if let Some(identity) = &offer.identity {
                registry.shared.settings.result_identity.replace(identity);
            }
            state.remote_servers.insert(self.rank, offer);
        }
    }

    /// Announces a change to all clients.
    pub fn announce(&self, change: Change) {
        self.announce_to(Recipients::All, change);
    }

    /// Announces a change to the clients that it concerns.
    pub fn announce_to(&self, to: Recipients, change: Change) {
        if let Some(registry) = self.registry.upgrade() {
            registry.announce(Announcement { change, to });
        }
    }
}

impl Drop for ItemSource {
    fn drop(&mut self) {
        let Some(registry) = self.registry.upgrade() else { return };
        let kinds = [ListKind::Tools, ListKind::Resources, ListKind::Templates, ListKind::Prompts];
        let mut state = registry.write();
        state.remote_servers.remove(&self.rank);
        state.names.remove(&self.rank);
        state.withheld.remove(&self.rank);
        for kind in kinds {
            state.replace(kind, self.rank, Vec::new(), false);
        }
        drop(state);
        kinds.into_iter().for_each(|kind| registry.announce_list_changed(kind));
    }
}

impl fmt::Debug for RemoteItem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Remote").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for RemoteServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Offer")
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
