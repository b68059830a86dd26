//! The registry of a server's items: tools, resources, templates, prompts and skills, which may change while it runs.

mod catalogue;
mod class_lists;
mod collisions;
mod endpoint;
mod inspect;
mod remote;
mod replacement;
mod schema_style;
mod session_lists;
mod skill_index;
mod skill_requests;
mod task_requests;
mod unlisted_resources;
mod viewer;

use crate::sync::{Mutex, RwLock};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard, Weak};

use creole_proto::dialect::Dialect;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::MirroredHeader;
use creole_proto::model::{
    CacheHints, Definition, Implementation, ListKind, ServerCapabilities, TaskPreference,
    TaskSupport,
};
use creole_proto::operation::{Change, Operation};
use creole_proto::revision::Rules;
use creole_proto::server::ServerIdentity;
use tokio::sync::broadcast;

use crate::call::Context;
use crate::item::prompt::Prompt;
use crate::item::resource::{Resource, Template};
use crate::item::skill::{Skill, SkillError};
use crate::item::tool::Tool;
use crate::principal::Principal;
use crate::schema::Schema;
use crate::seal::Sealer;
use crate::task;
use crate::task::{TaskLimits, Tasks};
use crate::telemetry::metrics::{OperationSeries, ServerMetrics};
use catalogue::Catalogue;
use class_lists::ClassLists;
use remote::LocalOrRemote;
use skill_index::SkillIndex;
use viewer::Layers;

pub use crate::call::announcement::{Announcement, Recipients};
pub use collisions::NameCollision;
pub use inspect::{InspectedItem, WithheldTool};
pub use remote::{ItemSource, RemoteItem, RemoteServer};
pub use session_lists::{SessionList, SessionLists, UnlistedItem};

/// The number of changes that a slow connection may lag behind. Beyond it, every list is announced as changed.
const MAX_PENDING_CHANGES: usize = 64;

/// A handle to a server's items; clones share them.
#[derive(Clone)]
pub struct Registry {
    shared: Arc<RegistryShared>,
}

/// A handle that does not keep the registry alive, for tools that change the registry that holds them.
#[derive(Clone, Debug)]
pub struct WeakRegistry {
    shared: Weak<RegistryShared>,
}

impl WeakRegistry {
    /// The registry, while its server exists.
    pub fn upgrade(&self) -> Option<Registry> {
        self.shared.upgrade().map(|shared| Registry { shared })
    }
}

struct RegistryShared {
    settings: RegistrySettings,
    state: RwLock<RegistryState>,
    /// Whether clients see the registry, so that changes must be announced.
    is_visible: AtomicBool,
    changes: broadcast::Sender<Announcement>,
    tasks: Tasks,
    attached: Mutex<Vec<AttachedValue>>,
    /// The lists that classes of callers have read.
    class_lists: ClassLists,
}

/// A value that is dropped with the registry.
type AttachedValue = Box<dyn Any + Send>;

/// Settings that do not change while a server runs.
pub(crate) struct RegistrySettings {
    pub(crate) identity: Arc<Implementation>,
    /// The identity that results name as the server.
    pub(crate) result_identity: ServerIdentity,
    pub(crate) instructions: Option<String>,
    pub(crate) dialect: Dialect,
    pub(crate) page_size: usize,
    pub(crate) logging: bool,
    pub(crate) cache: CacheHints,
    pub(crate) sealer: Sealer,
    pub(crate) tasks: TaskLimits,
    pub(crate) state: crate::state::State,
    /// The metrics of the server, if they are counted.
    pub(crate) metrics: Option<Arc<ServerMetrics>>,
}

struct RegistryState {
    tools: Catalogue<LocalOrRemote<PreparedTool>>,
    resources: Catalogue<LocalOrRemote<Resource>>,
    templates: Catalogue<LocalOrRemote<Template>>,
    prompts: Catalogue<LocalOrRemote<Prompt>>,
    skill_index: SkillIndex,
    /// Upstream data besides the lists, by the upstreams' ranks.
    remote_servers: BTreeMap<u32, RemoteServer>,
    /// The upstreams' names, by their ranks.
    names: BTreeMap<u32, String>,
    /// Upstream tools that are not listed, with the fault that their callers get, by the upstreams' ranks.
    withheld: BTreeMap<u32, BTreeMap<String, Fault>>,
    last_source: u32,
    /// Whether a local resource can be subscribed to, or an upstream may have such resources.
    can_subscribe: bool,
    /// Whether there is, or ever was, a tool that runs as a task.
    has_task_tools: bool,
}

impl RegistryState {
    /// An empty state whose items will be shown through these layers.
    fn new(layers: &Layers, metrics: Option<&Arc<ServerMetrics>>) -> Self {
        Self {
            tools: Catalogue::new(ListKind::Tools, layers).measured(metrics),
            resources: Catalogue::new(ListKind::Resources, layers),
            templates: Catalogue::new(ListKind::Templates, layers),
            prompts: Catalogue::new(ListKind::Prompts, layers).measured(metrics),
            skill_index: SkillIndex::new(layers),
            remote_servers: BTreeMap::new(),
            names: BTreeMap::new(),
            withheld: BTreeMap::new(),
            last_source: 0,
            can_subscribe: false,
            has_task_tools: false,
        }
    }
}

/// How a call is run.
pub(crate) enum RunMode {
    /// Within the request.
    InPlace,
    /// As a task.
    Task,
}

struct PreparedTool {
    tool: Tool,
    schema: Schema,
}

impl PreparedTool {
    /// The tool with the definition that this dialect announces.
    fn new(mut tool: Tool, dialect: &Dialect) -> Self {
        schema_style::apply(tool.definition_mut(), dialect);
        let schema = Schema::of(&tool.definition.input_schema);
        warn_invalid_mirrored_headers(&tool);
        Self { tool, schema }
    }
}

impl Registry {
    pub(crate) fn new(settings: RegistrySettings, layers: &Layers) -> Self {
        let (changes, _) = broadcast::channel(MAX_PENDING_CHANGES);
        let (state, sealer) = (settings.state.clone(), settings.sealer.clone());
        let size = settings.page_size;
        let metrics = settings.metrics.as_ref().map(|metrics| metrics.metrics());
        let tasks = Tasks::new(state, settings.tasks, sealer, size, changes.clone(), metrics);
        let state = RegistryState::new(layers, settings.metrics.as_ref());
        let (state, is_seen) = (RwLock::new(state), AtomicBool::new(true));
        let kept = Mutex::default();
        Self {
            shared: Arc::new(RegistryShared {
                settings,
                state,
                is_visible: is_seen,
                changes,
                tasks,
                attached: kept,
                class_lists: ClassLists::default(),
            }),
        }
    }

    /// A handle that does not keep the registry alive.
    pub fn downgrade(&self) -> WeakRegistry {
        WeakRegistry { shared: Arc::downgrade(&self.shared) }
    }

    /// Adds a tool, or replaces the tool of the same name.
    pub fn add_tool(&self, tool: Tool) {
        let prepared = PreparedTool::new(tool, &self.shared.settings.dialect);
        let definition = &prepared.tool.definition;
        let mut state = self.write();
        state.has_task_tools |= definition.task_support != TaskSupport::Forbidden;
        state.tools.insert(definition.into(), LocalOrRemote::Local(prepared));
        drop(state);
        self.announce_list_changed(ListKind::Tools);
    }

    /// Removes a tool; returns whether it existed.
    pub fn remove_tool(&self, name: &str) -> bool {
        let removed = self.write().tools.remove(name);
        self.announce_list_changed_if(removed, ListKind::Tools)
    }

    /// Adds a resource, or replaces the resource with the same URI.
    pub fn add_resource(&self, resource: Resource) {
        let mut state = self.write();
        state.can_subscribe = true;
        state.resources.insert((&resource.definition).into(), LocalOrRemote::Local(resource));
        drop(state);
        self.announce_list_changed(ListKind::Resources);
    }

    /// Removes a resource; returns whether it existed.
    pub fn remove_resource(&self, uri: &str) -> bool {
        let removed = self.write().resources.remove(uri);
        self.announce_list_changed_if(removed, ListKind::Resources)
    }

    /// Adds a resource template, or replaces the template of the same name.
    pub fn add_template(&self, template: Template) {
        let mut state = self.write();
        state.can_subscribe = true;
        state.templates.insert((&template.definition).into(), LocalOrRemote::Local(template));
        drop(state);
        self.announce_list_changed(ListKind::Templates);
    }

    /// Adds a prompt, or replaces the prompt of the same name.
    pub fn add_prompt(&self, prompt: Prompt) {
        self.write().prompts.insert((&prompt.definition).into(), LocalOrRemote::Local(prompt));
        self.announce_list_changed(ListKind::Prompts);
    }

    /// Removes a prompt; returns whether it existed.
    pub fn remove_prompt(&self, name: &str) -> bool {
        let removed = self.write().prompts.remove(name);
        self.announce_list_changed_if(removed, ListKind::Prompts)
    }

    /// Adds a skill, or replaces the skill with the same URI. Its `SKILL.md` is listed among the resources; its other
    /// files are read like resources and listed by directory.
    ///
    /// # Errors
    /// When another skill has a different file at the same URI.
    pub fn add_skill(&self, skill: Skill) -> Result<(), SkillError> {
        let mut state = self.write();
        let manifest = skill.files().iter().find(|file| file.uri() == skill.uri()).map(Arc::clone);
        state.skill_index.insert(skill)?;
        if let Some(manifest) = manifest {
            state.can_subscribe = true;
            let definition = Definition::clone(&manifest.definition);
            state.resources.insert(definition, LocalOrRemote::Local(manifest.resource.clone()));
        }
        drop(state);
        self.announce_list_changed(ListKind::Skills);
        Ok(())
    }

    /// Removes a skill; returns whether it existed.
    pub fn remove_skill(&self, uri: &str) -> bool {
        let mut state = self.write();
        let removed = state.skill_index.remove(uri);
        // If it is also a file of another skill, it can still be read there.
        _ = removed && state.resources.remove(uri);
        drop(state);
        self.announce_list_changed_if(removed, ListKind::Skills)
    }

    /// Notifies subscribers that a resource changed.
    pub fn resource_updated(&self, uri: &str) {
        self.announce(Change::Resource(uri.to_owned()).into());
    }

    /// Keeps a value as long as the registry exists, for example a file watcher that must stop with it.
    #[doc(hidden)]
    pub fn attach(&self, kept: impl Any + Send) {
        self.shared.attached.lock().push(Box::new(kept));
    }

    /// Changes from now on, for the transports. A receiver that lags must announce every list as changed.
    #[doc(hidden)]
    pub fn changes(&self) -> broadcast::Receiver<Announcement> {
        self.shared.changes.subscribe()
    }

    /// The arguments of a tool that HTTP requests repeat in headers, if there are any. A tool that the caller does not
    /// see has none, so that the chain reports it as unknown.
    pub(crate) fn mirrored_headers(
        &self,
        tool: &str,
        principal: &Principal,
    ) -> Option<Arc<[MirroredHeader]>> {
        let mirrors = self.read().tools.mirrored_headers(tool)?;
        let class = self.viewer_class(principal);
        self.read().tools.get_seen(tool, class.as_deref()).map(|_| mirrors)
    }

    /// Applies the chain to all definitions again, after a layer changed its rules.
    #[doc(hidden)]
    pub fn reapply_layers(&self) {
        let mut state = self.write();
        state.tools.reapply_layers();
        state.resources.reapply_layers();
        state.templates.reapply_layers();
        state.prompts.reapply_layers();
        state.skill_index.skills.reapply_layers();
        drop(state);
        let kinds = [ListKind::Tools, ListKind::Resources, ListKind::Prompts];
        kinds.into_iter().for_each(|kind| self.announce_list_changed(kind));
    }

    /// The same, if a layer reports a change. Call it every few seconds, where a wait for a file does no harm.
    #[doc(hidden)]
    pub fn reapply_layers_if_changed(&self) {
        let layers = Arc::clone(self.read().tools.layers());
        if crate::chain::definitions_changed(&layers) {
            self.reapply_layers();
        }
    }

    /// The patterns of the server's layers that have matched no listed item so far, as readable text.
    #[doc(hidden)]
    pub fn unmatched_patterns(&self) -> Vec<String> {
        crate::chain::unmatched_patterns(self.read().tools.layers())
    }

    /// The capabilities of the server: for items that it has now or ever had.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        let state = self.read();
        let offered = |has: fn(&ServerCapabilities) -> bool| {
            state.remote_servers.values().any(|offer| has(&offer.capabilities))
        };
        let resources = state.resources.is_offered() || state.templates.is_offered();
        let prompts = state.prompts.iter().filter_map(|prompt| prompt.local());
        let templates = state.templates.iter().filter_map(|template| template.local());
        ServerCapabilities {
            tools: state.tools.is_offered() || offered(|it| it.tools),
            resources: resources || offered(|it| it.resources),
            prompts: state.prompts.is_offered() || offered(|it| it.prompts),
            completions: offered(|it| it.completions)
                || prompts.into_iter().any(|prompt| !prompt.completers.is_empty())
                || templates.into_iter().any(|template| !template.completers.is_empty()),
            logging: self.shared.settings.logging,
            list_changed: true,
            subscribe: state.can_subscribe || offered(|it| it.subscribe),
            skills: state.skill_index.skills.is_offered(),
            tasks: state.has_task_tools,
        }
    }

    /// The server's tasks.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.shared.tasks
    }

    /// Whether calls may become tasks under these rules.
    fn has_tasks(&self, rules: &Rules) -> bool {
        self.shared.settings.dialect.has_tasks(rules) && self.read().has_task_tools
    }

    /// The metrics of the server, if they are counted.
    pub(crate) fn metrics(&self) -> Option<&Arc<ServerMetrics>> {
        self.shared.settings.metrics.as_ref()
    }

    /// What measures an operation on a listed tool or prompt.
    pub(crate) fn item_series(&self, operation: &Operation) -> Option<Arc<OperationSeries>> {
        match operation {
            Operation::CallTool { name, .. } => self.read().tools.series(name),
            Operation::GetPrompt { name, .. } => self.read().prompts.series(name),
            _ => None,
        }
    }

    /// How a call of a tool is run, or why it cannot be. For a client that cannot follow tasks, every tool runs in
    /// place.
    #[inline]
    pub(crate) fn run_mode(&self, tool: &str, context: &Context) -> Result<RunMode, Fault> {
        let caller = context.caller();
        if !self.has_tasks(caller.rules) {
            return Ok(RunMode::InPlace);
        }
        let class = self.viewer_class(context.principal());
        let found = self.read().tools.get_seen(tool, class.as_deref());
        // The chain rejects the call of a tool that the caller does not see.
        let Some(found) = found else { return Ok(RunMode::InPlace) };
        let name = tool;
        let (support, here_first) = match &*found {
            LocalOrRemote::Local(tool) => {
                (tool.tool.definition.task_support, tool.tool.requests_input_first)
            }
            LocalOrRemote::Remote(remote) => (remote.task_support, remote.decides_task),
        };
        match (support, caller.task_preference) {
            (TaskSupport::Forbidden, TaskPreference::Requested { .. }) => {
                let detail = format!("the tool `{name}` cannot run as a task");
                Err(Fault::new(FaultKind::TaskForbidden, detail).with_subject(name))
            }
            (TaskSupport::Required, TaskPreference::Never) => {
                let detail = format!("the tool `{name}` can only run as a task");
                Err(task::missing_extension(FaultKind::TaskRequired, detail).with_subject(name))
            }
            (TaskSupport::Forbidden, _) | (TaskSupport::Optional, TaskPreference::Never) => {
                Ok(RunMode::InPlace)
            }
            (_, TaskPreference::Allowed) if here_first => Ok(RunMode::InPlace),
            _ => Ok(RunMode::Task),
        }
    }

    fn announce_list_changed(&self, kind: ListKind) {
        self.announce(Change::List(kind).into());
    }

    fn announce(&self, announcement: Announcement) {
        if let Change::Resource(uri) = &announcement.change {
            let layers = Arc::clone(self.read().tools.layers());
            crate::chain::resource_updated(&layers, uri);
        }
        if self.shared.is_visible.load(Ordering::Acquire) {
            // A send without receivers is not an error.
            _ = self.shared.changes.send(self.for_concerned(announcement));
        }
    }

    fn announce_list_changed_if(&self, changed: bool, kind: ListKind) -> bool {
        if changed {
            self.announce_list_changed(kind);
        }
        changed
    }

    /// The state is consistent between any two calls, so a panic in another thread does not invalidate it.
    fn read(&self) -> RwLockReadGuard<'_, RegistryState> {
        self.shared.state.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, RegistryState> {
        self.shared.state.write()
    }
}

/// Logs a warning if a tool cannot be called over HTTP.
fn warn_invalid_mirrored_headers(tool: &Tool) {
    if let Err(error) = MirroredHeader::find_all(tool.definition.input_schema.as_str()) {
        let name = &*tool.definition.name;
        tracing::warn!(tool = name, %error, "HTTP clients will exclude this tool because of its `x-mcp-header`");
    }
}

impl fmt::Debug for RegistryShared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Registry").finish_non_exhaustive()
    }
}
