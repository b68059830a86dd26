//! The server builder, and the service that it starts.

mod late_call;
mod measured_call;
mod recorded_call;
pub(crate) mod replacement;
mod run_call;
mod server_telemetry;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use creole_proto::dialect::{Dialect, builtin};
use creole_proto::model::{CacheHints, Implementation};
use creole_proto::operation::Outcome;
use creole_proto::server::{Call as Started, Profile, ServerLimits};

use crate::call::{Canceller, ClientChannel, Origin};
use crate::chain;
use crate::chain::{BoxFuture, Middleware};
use crate::item::prompt::Prompt;
use crate::item::resource::{Resource, Template};
use crate::item::skill::Skill;
use crate::item::tool::Tool;
use crate::registry::{Registry, RegistrySettings};
use crate::seal::Sealer;
use crate::state::State;
use crate::task::TaskLimits;
use crate::telemetry::facts::RequestFacts;
use crate::telemetry::metrics::ServerMetrics;
use crate::telemetry::request_log;
use crate::telemetry::{Modes, SharedModes, Telemetry};
pub(crate) use late_call::LateCall;
pub(crate) use measured_call::MeasuredCalls;
pub(crate) use server_telemetry::ServerTelemetry;

/// The version of a server that does not set its own. The specification requires one.
const UNSET_VERSION: &str = "0.0.0";

/// A server builder: tools, resources, prompts and the chain around them.
pub struct Server {
    identity: Implementation,
    instructions: Option<String>,
    dialect: Dialect,
    limits: ServerLimits,
    page_size: usize,
    debug: bool,
    payloads: bool,
    cache: CacheHints,
    pub(crate) sealer: Option<Sealer>,
    tasks: TaskLimits,
    state: State,
    pub(crate) telemetry: Telemetry,
    chain: Vec<Arc<dyn Middleware>>,
    items: Vec<ServerItem>,
}

enum ServerItem {
    Tool(Tool),
    Resource(Resource),
    Template(Template),
    Prompt(Prompt),
    Skill(Skill),
    Setup(Box<dyn FnOnce(&Registry) + Send>),
}

impl Server {
    /// A server of this name with the dialect of the specification. Its [version](Self::version) is `0.0.0` until it is
    /// set.
    pub fn new(name: &str) -> Self {
        Self {
            identity: Implementation {
                name: name.to_owned(),
                version: UNSET_VERSION.to_owned(),
                ..Implementation::default()
            },
            instructions: None,
            dialect: builtin("spec").expect("the dialect `spec` is built in"),
            limits: ServerLimits::default(),
            page_size: 100,
            debug: false,
            payloads: false,
            cache: CacheHints::NONE,
            sealer: None,
            tasks: TaskLimits::default(),
            state: State::default(),
            telemetry: Telemetry::default(),
            chain: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Sets the server's own version, such as `env!("CARGO_PKG_VERSION")` of the calling crate.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.identity.version);
        self
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.identity.title = Some(title.to_owned());
        self
    }

    /// Sets the instructions for the model.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        self.instructions = Some(text.to_owned());
        self
    }

    /// Sets the dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets the limits of one connection.
    #[must_use]
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of items on one page of a list.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        self.page_size = items.max(1);
        self
    }

    /// Sets whether errors carry stack traces, in dialects that have a member for them.
    #[must_use]
    pub fn debug(mut self, debug: bool) -> Self {
        self.debug = debug;
        self
    }

    /// Sets whether whole messages are logged, with arguments and results.
    #[must_use]
    pub fn log_payloads(mut self, payloads: bool) -> Self {
        self.payloads = payloads;
        self
    }

    /// Sets how long clients may cache lists and the server's self-description.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.cache = hints;
        self
    }

    /// Sets the keys that seal request states and cursors. Replicas share them.
    #[must_use]
    pub fn sealer(mut self, sealer: Sealer) -> Self {
        self.sealer = Some(sealer);
        self
    }

    /// Sets where tasks are kept. Default: in memory. Replicas share a file.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets the limits of tasks.
    #[must_use]
    pub fn task_limits(mut self, limits: TaskLimits) -> Self {
        self.tasks = limits;
        self
    }

    /// Sets the telemetry that hears of the server's calls. Servers of one process share it.
    #[doc(hidden)]
    #[must_use]
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.item(ServerItem::Tool(tool))
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.item(ServerItem::Resource(resource))
    }

    /// Adds a resource template.
    #[must_use]
    pub fn template(self, template: Template) -> Self {
        self.item(ServerItem::Template(template))
    }

    /// Adds a prompt.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.item(ServerItem::Prompt(prompt))
    }

    /// Adds a skill. A skill whose file differs from another skill's at the same uri is excluded and logged.
    #[must_use]
    pub fn skill(self, skill: Skill) -> Self {
        self.item(ServerItem::Skill(skill))
    }

    /// Runs a function once the registry exists. For tools that change the server's items.
    #[must_use]
    pub fn setup(self, setup: impl FnOnce(&Registry) + Send + 'static) -> Self {
        self.item(ServerItem::Setup(Box::new(setup)))
    }

    /// Adds a layer to the chain, inside the layers added before.
    #[must_use]
    pub fn with(mut self, layer: impl Middleware + 'static) -> Self {
        self.chain.push(Arc::new(layer));
        self
    }

    /// Adds layers to the chain, outermost first, inside the layers added before.
    #[must_use]
    pub fn with_all(mut self, layers: impl IntoIterator<Item = Arc<dyn Middleware>>) -> Self {
        self.chain.extend(layers);
        self
    }

    /// Starts the service, which accepts connections.
    pub fn start(self) -> Service {
        let shared = self.build(None);
        let profile = Arc::clone(&shared.profile);
        let logs_payloads = AtomicBool::new(shared.log_payloads);
        let modes = shared.telemetry.telemetry().shared_modes();
        let current = ArcSwap::from_pointee(shared);
        Service { inner: Arc::new(ServiceInner { profile, current, logs_payloads, modes }) }
    }

    /// Builds the core of a service, which may continue a previous one.
    pub(crate) fn build(self, before: Option<&Registry>) -> ServiceCore {
        let sealer = self.sealer.unwrap_or_else(Sealer::random);
        let mut profile = Profile::new(self.dialect.clone(), self.limits).identity(&self.identity);
        profile.is_observed = request_log::is_enabled();
        profile.observers = self.telemetry.shared_modes().number();
        let chain: Arc<[Arc<dyn Middleware>]> = self.chain.into();
        let known = before.and_then(Registry::metrics);
        let metrics =
            ServerMetrics::of_server(self.telemetry.metrics(), &self.identity.name, known);
        let redactor = chain::redactor(&chain);
        let telemetry = ServerTelemetry::new(
            self.telemetry,
            &self.identity.name,
            &self.dialect,
            redactor,
            metrics.clone(),
        );
        let settings = RegistrySettings {
            result_identity: profile.identity.clone(),
            identity: Arc::new(self.identity),
            instructions: self.instructions,
            dialect: self.dialect,
            page_size: self.page_size,
            logging: true,
            cache: self.cache,
            sealer: sealer.clone(),
            tasks: self.tasks,
            state: self.state,
            metrics,
        };
        let registry = match before {
            None => Registry::new(settings, &chain),
            Some(before) => before.new_replacement(settings, &chain),
        };
        for item in self.items {
            item.add_to(&registry);
        }
        let profile = Arc::new(profile);
        ServiceCore {
            registry,
            chain,
            profile,
            sealer,
            telemetry: Arc::new(telemetry),
            debug: self.debug,
            log_payloads: self.payloads,
        }
    }

    fn item(mut self, item: ServerItem) -> Self {
        self.items.push(item);
        self
    }
}

impl ServerItem {
    fn add_to(self, registry: &Registry) {
        match self {
            Self::Tool(tool) => registry.add_tool(tool),
            Self::Resource(resource) => registry.add_resource(resource),
            Self::Template(template) => registry.add_template(template),
            Self::Prompt(prompt) => registry.add_prompt(prompt),
            Self::Skill(skill) => {
                let uri = skill.uri().to_owned();
                if let Err(error) = registry.add_skill(skill) {
                    tracing::error!(skill = uri, %error, "skill excluded");
                }
            }
            Self::Setup(setup) => setup(registry),
        }
    }
}

/// A service that accepts connections. Clones share it.
#[derive(Clone)]
pub struct Service {
    inner: Arc<ServiceInner>,
}

struct ServiceInner {
    /// The profile. A replacement keeps its dialect and may change the rest.
    profile: Arc<Profile>,
    /// Handles new calls. A [replacement](Server::prepare_replacement) may be swapped in.
    current: ArcSwap<ServiceCore>,
    /// Whether messages are logged: a copy of the core's setting, which every message asks for.
    logs_payloads: AtomicBool,
    /// The modes of the telemetry, which a replacement takes over.
    modes: SharedModes,
}

pub(crate) struct ServiceCore {
    pub(crate) registry: Registry,
    chain: Arc<[Arc<dyn Middleware>]>,
    profile: Arc<Profile>,
    pub(crate) sealer: Sealer,
    pub(crate) telemetry: Arc<ServerTelemetry>,
    debug: bool,
    log_payloads: bool,
}

impl Service {
    /// The registry, which can be changed while the service runs.
    pub fn registry(&self) -> Registry {
        self.current().load().registry.clone()
    }

    /// The profile, whose dialect a replacement does not change.
    #[doc(hidden)]
    pub fn profile(&self) -> &Arc<Profile> {
        &self.inner.profile
    }

    /// The metrics of the server, if they are counted.
    pub(crate) fn server_metrics(&self) -> Option<Arc<ServerMetrics>> {
        self.current().load().registry.metrics().cloned()
    }

    /// The telemetry that hears of its calls.
    #[doc(hidden)]
    pub fn telemetry(&self) -> Telemetry {
        self.current().load().telemetry.telemetry().clone()
    }

    /// The core that handles new calls.
    pub(crate) fn current(&self) -> &ArcSwap<ServiceCore> {
        &self.inner.current
    }

    /// Lets another core handle new calls; returns the previous one.
    fn swap(&self, core: Arc<ServiceCore>) -> Arc<ServiceCore> {
        self.inner.logs_payloads.store(core.log_payloads, Ordering::Relaxed);
        self.current().swap(core)
    }

    /// The current profile (dialect, identity, limits), for new connections.
    pub(crate) fn current_profile(&self) -> Arc<Profile> {
        Arc::clone(&self.current().load().profile)
    }

    /// What the telemetry does.
    #[inline]
    pub(crate) fn modes(&self) -> Modes {
        self.inner.modes.load()
    }

    pub(crate) fn logs_payloads(&self) -> bool {
        self.inner.logs_payloads.load(Ordering::Relaxed)
    }

    /// Starts a call that no client sent to a transport. The future resolves to its outcome, and the handle cancels it.
    /// The call may have a record, and the metrics do not count it.
    #[doc(hidden)]
    pub fn start_call(
        &self,
        started: Started,
        channel: Arc<dyn ClientChannel>,
        origin: Origin,
    ) -> (BoxFuture<'static, Outcome>, Canceller) {
        let (core, modes) = (self.current().load_full(), self.modes());
        let telemetry = (!modes.is_empty()).then(|| {
            core.telemetry.follow_call(
                modes,
                &started,
                &origin.principal,
                None,
                RequestFacts::default,
            )
        });
        core.start_call(started, channel, origin, telemetry)
    }
}
