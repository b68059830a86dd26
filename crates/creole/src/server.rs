//! A server: what users build, and the service that it becomes.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use creole_proto::dialect::{Dialect, builtin};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{CacheHints, Implementation, TaskPreference};
use creole_proto::operation::{Operation, Outcome};
use creole_proto::server::{Call as Started, Profile, ServerLimits};

use crate::call::{Call, Canceller, ClientChannel, Context, Origin, Round};
use crate::catch_panic::CatchPanic;
use crate::chain::{BoxFuture, Middleware, Next};
use crate::prompt::Prompt;
use crate::registry::{Registry, RegistrySettings, RunMode};
use crate::replacement::Replacement;
use crate::resource::{Resource, Template};
use crate::seal::Sealer;
use crate::serve::lines;
use crate::serve::lines::EndReason;
use crate::skill::Skill;
use crate::state::State;
use crate::stream::{ByteSink, ByteSource, Stdin, stdio};
use crate::task::TaskLimits;
use crate::tool::Tool;
use crate::{input, telemetry};

/// The version of a server that does not set its own. The specification requires one.
const UNSET_VERSION: &str = "0.0.0";

/// A server in the making: tools, resources, prompts and the chain around them.
pub struct Server {
    identity: Implementation,
    instructions: Option<String>,
    dialect: Dialect,
    limits: ServerLimits,
    page_size: usize,
    debug: bool,
    payloads: bool,
    cache: CacheHints,
    sealer: Option<Sealer>,
    tasks: TaskLimits,
    state: State,
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
    /// A server of that name that speaks the specification. Its [version](Self::version) is `0.0.0` until it is set.
    pub fn new(name: &str) -> Self {
        Self {
            identity: Implementation {
                name: name.to_owned(),
                version: UNSET_VERSION.to_owned(),
                ..Implementation::default()
            },
            instructions: None,
            dialect: builtin("spec").expect("the dialect `spec` ships inside"),
            limits: ServerLimits::default(),
            page_size: 100,
            debug: false,
            payloads: false,
            cache: CacheHints::NONE,
            sealer: None,
            tasks: TaskLimits::default(),
            state: State::default(),
            chain: Vec::new(),
            items: Vec::new(),
        }
    }

    /// The server's own version, such as `env!("CARGO_PKG_VERSION")` of the crate that calls this.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.identity.version);
        self
    }

    /// The name for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.identity.title = Some(title.to_owned());
        self
    }

    /// How a model should use the server.
    #[must_use]
    pub fn instructions(mut self, text: &str) -> Self {
        self.instructions = Some(text.to_owned());
        self
    }

    /// How the server speaks.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// How much one connection may ask for.
    #[must_use]
    pub fn limits(mut self, limits: ServerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// How many items one page of a list holds.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        self.page_size = items.max(1);
        self
    }

    /// Whether errors carry stack traces, in dialects that have a place for them.
    #[must_use]
    pub fn debug(mut self, debug: bool) -> Self {
        self.debug = debug;
        self
    }

    /// Whether whole messages are logged, arguments and results included.
    #[must_use]
    pub fn log_payloads(mut self, payloads: bool) -> Self {
        self.payloads = payloads;
        self
    }

    /// How long lists and the server's card may be kept by clients.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.cache = hints;
        self
    }

    /// The keys that state and cursors are sealed with; several replicas share them.
    #[must_use]
    pub fn sealer(mut self, sealer: Sealer) -> Self {
        self.sealer = Some(sealer);
        self
    }

    /// Where tasks are kept. By default in memory; several replicas share what they keep in one file.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// How much tasks may take.
    #[must_use]
    pub fn task_limits(mut self, limits: TaskLimits) -> Self {
        self.tasks = limits;
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

    /// Adds a family of resources.
    #[must_use]
    pub fn template(self, template: Template) -> Self {
        self.item(ServerItem::Template(template))
    }

    /// Adds a prompt.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.item(ServerItem::Prompt(prompt))
    }

    /// Adds a skill; one that has a different file than another skill at the same uri is left out, and the log says so.
    #[must_use]
    pub fn skill(self, skill: Skill) -> Self {
        self.item(ServerItem::Skill(skill))
    }

    /// Runs a function once the registry is there: for tools that change what the server has.
    #[must_use]
    pub fn setup(self, setup: impl FnOnce(&Registry) + Send + 'static) -> Self {
        self.item(ServerItem::Setup(Box::new(setup)))
    }

    /// Adds a layer to the chain, inside of those added before.
    #[must_use]
    pub fn with(mut self, layer: impl Middleware + 'static) -> Self {
        self.chain.push(Arc::new(layer));
        self
    }

    /// Adds layers to the chain, outermost first, inside of those added before.
    #[must_use]
    pub fn with_all(mut self, layers: impl IntoIterator<Item = Arc<dyn Middleware>>) -> Self {
        self.chain.extend(layers);
        self
    }

    /// Makes the server ready to be connected to.
    pub fn start(self) -> Service {
        let shared = self.build(None);
        let profile = Arc::clone(&shared.profile);
        let current = ArcSwap::from_pointee(shared);
        Service { inner: Arc::new(ServiceInner { profile, current }) }
    }

    /// Makes the server ready to take the place of one that runs, whose tasks, seals and state it takes over.
    /// Connections keep the name, version and limits that they began with. The dialect has to be the same.
    pub fn prepare_replacement(mut self, running: &Service) -> Replacement {
        let before = running.current().load_full();
        self.sealer = Some(before.sealer.clone());
        let next = Arc::new(self.build(Some(&before.registry)));
        Replacement { service: running.clone(), core: next }
    }

    fn build(self, before: Option<&Registry>) -> ServiceCore {
        let sealer = self.sealer.unwrap_or_else(Sealer::random);
        let mut profile = Profile::new(self.dialect.clone(), self.limits).identity(&self.identity);
        profile.is_observed = telemetry::is_enabled();
        let chain: Arc<[Arc<dyn Middleware>]> = self.chain.into();
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
            debug: self.debug,
            log_payloads: self.payloads,
        }
    }

    /// Speaks on the process's own stdin and stdout until the client is gone.
    pub async fn serve_stdio(self) -> io::Result<()> {
        self.start().serve_stdio().await.map(|_| ())
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
                    tracing::error!(skill = uri, %error, "this skill is left out");
                }
            }
            Self::Setup(setup) => setup(registry),
        }
    }
}

/// A server that can be connected to; clones share it.
#[derive(Clone)]
pub struct Service {
    inner: Arc<ServiceInner>,
}

struct ServiceInner {
    /// How it speaks; what else is in it, a successor may change.
    profile: Arc<Profile>,
    /// What answers calls that come from now on; a [successor](Server::prepare_replacement) may take its place.
    current: ArcSwap<ServiceCore>,
}

pub(crate) struct ServiceCore {
    pub(crate) registry: Registry,
    chain: Arc<[Arc<dyn Middleware>]>,
    profile: Arc<Profile>,
    sealer: Sealer,
    debug: bool,
    log_payloads: bool,
}

impl Service {
    /// What the server has, to be changed while it runs.
    pub fn registry(&self) -> Registry {
        self.current().load().registry.clone()
    }

    /// How the server speaks, which a successor does not change.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.inner.profile
    }

    /// What answers calls that come from now on.
    pub(crate) fn current(&self) -> &ArcSwap<ServiceCore> {
        &self.inner.current
    }

    /// How the server speaks, who it says it is and how much it takes: for connections that begin now.
    pub(crate) fn current_profile(&self) -> Arc<Profile> {
        Arc::clone(&self.current().load().profile)
    }

    /// Speaks on the process's own stdin and stdout until the client is gone.
    pub async fn serve_stdio(&self) -> io::Result<EndReason> {
        let (input, output) = (Stdin::open()?, stdio::Output::stdout()?);
        lines::serve_from_thread(self.clone(), input, output).await
    }

    /// Speaks on a pair of byte streams, one message per line, until one of them ends.
    pub async fn serve(
        &self,
        input: impl ByteSource,
        output: impl ByteSink,
    ) -> io::Result<EndReason> {
        lines::serve(self.clone(), input, output).await
    }

    pub(crate) fn logs_payloads(&self) -> bool {
        self.current().load().log_payloads
    }

    /// Starts a call that a protocol machine asked for; the future answers it, the handle stops it. Drivers
    /// of transports use it.
    pub fn start_call(
        &self,
        started: Started,
        outlet: Arc<dyn ClientChannel>,
        origin: Origin,
    ) -> (BoxFuture<'static, Outcome>, Canceller) {
        let Started { key, operation, caller, .. } = started;
        let shared = self.current().load_full();
        let context = Context::new(key, caller, origin, outlet, shared.debug);
        let cancelled = context.canceller();
        let call = Call { operation, context };
        (Box::pin(shared.run_call(call)), cancelled)
    }
}

impl ServiceCore {
    /// Answers one call: in place, or with a task in which it goes on.
    async fn run_call(self: Arc<Self>, call: Call) -> Outcome {
        let caller = call.context.caller();
        let mode = match &call.operation {
            Operation::CallTool { name, .. } => self.registry.run_mode(name, caller),
            _ => Ok(RunMode::InPlace),
        };
        match mode {
            Err(fault) => return fault.into(),
            // What is rare waits on the heap, so that the future of every call is small.
            Ok(RunMode::Task) => return Box::pin(self.make_task(call)).await,
            Ok(RunMode::InPlace) => {}
        }
        let kept =
            (caller.task_preference != TaskPreference::Never).then(|| Box::new(call.clone()));
        match (self.run_in_place(call).await, kept) {
            (Outcome::Detach(state), Some(mut call)) => {
                if state.is_some() {
                    call.context = call.context.with_round(Round { state, ..Round::default() });
                }
                Box::pin(self.make_task(*call)).await
            }
            (done, _) => done,
        }
    }

    /// Answers a call with a task, in which it is run through the whole chain.
    async fn make_task(self: Arc<Self>, call: Call) -> Outcome {
        let shared = Arc::clone(&self);
        let run = move |call: Call| -> BoxFuture<'static, Outcome> {
            let shared = Arc::clone(&shared);
            Box::pin(async move {
                let tool = telemetry::observed_tool(&call.operation);
                let next = Next::new(&shared.chain, &shared.registry);
                run_guarded(tool, next.call(call)).await
            })
        };
        self.registry.tasks().create(call, Arc::new(run)).await
    }

    /// Answers one call: its questions driven, its panics caught, its tool told to the telemetry.
    fn run_in_place(&self, call: Call) -> impl Future<Output = Outcome> {
        let tool = telemetry::observed_tool(&call.operation);
        let next = Next::new(&self.chain, &self.registry);
        run_guarded(
            tool,
            input::run_rounds(call, next, &self.sealer, self.profile.limits.input_timeout),
        )
    }
}

/// Runs a call with its panics caught and its tool told to the telemetry.
async fn run_guarded(
    tool: Option<String>,
    running: impl Future<Output = Outcome> + Unpin,
) -> Outcome {
    let observed = tool.map(|tool| (tool, Instant::now()));
    let outcome = match CatchPanic(running).await {
        Ok(outcome) => outcome,
        // A panic's text may name files and values; outside of tools nobody asked for it.
        Err(_) => Fault::new(FaultKind::Internal, "the server broke down").into(),
    };
    if let Some((tool, started)) = observed {
        telemetry::tool_ran(&tool, started.elapsed(), &outcome);
    }
    outcome
}
