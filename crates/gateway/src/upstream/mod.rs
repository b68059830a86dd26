//! Another server as an endpoint: calls are passed on to it, whatever era it and the caller speak.
//!
//! A server of the handshake era asks in the middle of a call. Its questions reach a caller of that era as they
//! are; a caller of the stateless era is given them as the answer to its call, which is [parked](park) meanwhile.
//! A server of the stateless era ends its call with questions; for callers of the handshake era they are asked
//! by [`creole::ask`], which then calls again.

mod affinity;
mod callers;
mod catalogue;
mod dial;
mod fresh;
mod keeper;
mod kept;
mod kinds;
mod names;
mod park;
mod planned;
mod pool;
mod relay;
mod tasks;
mod terms;
mod unmet;
mod watch;

pub use affinity::Affinity;
pub use creole::client::Way;
pub use dial::Speak;
pub use names::{Naming, Unusable};

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use creole::call::{Call, Context};
use creole::chain::{BoxFuture, Endpoint};
use creole::client::Connection;
use creole::proto::client::{Limits, Profile};
use creole::proto::dialect::{Dialect, builtin};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::http::Mirror;
use creole::proto::model::{ClientCapabilities, Implementation, TaskSupport, Tasking};
use creole::proto::op::{Change, Operation, Outcome, Payload};
use creole::proto::revision::{Asking, Era, Tasks};
use creole::proto::wire::Raw;
use creole::{Registry, Source};
use tokio::sync::{Mutex as AsyncMutex, watch as signal};
use tokio::time::{sleep, timeout};

use crate::chain::Chain;
use crate::plan::upstream::UpstreamPlan;
use catalogue::Callable;
use dial::Dialer;
use fresh::Freshness;
use keeper::Status;
use kept::{Kept, Parked};
use kinds::Kinds;
use park::{Beginning, Parking};
use pool::{Key, Lease, Pool};
use watch::Watching;

/// How long a resource is still watched after the last who did: many come back at once.
const LINGER: Duration = Duration::from_secs(5);

/// How a server is treated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it is.
    pub way: Way,
    /// What it is offered to speak.
    pub speak: Speak,
    /// How it deviates from that.
    pub dialect: Dialect,
    /// How its items are named here.
    pub naming: Naming,
    /// Which callers share a conversation.
    pub affinity: Affinity,
    /// Whether this server speaks in its name.
    pub transparent: bool,
    /// Whether callers can be asked by it.
    pub interactive: bool,
    /// How long others wait for it when everything starts.
    pub startup: Duration,
    /// How long it may be silent about a call, and how long a call may take at all.
    pub limits: Limits,
    /// How long a caller may take to come back with answers.
    pub patience: Duration,
    /// The most calls that wait for answers at once.
    pub waiting: usize,
    /// The most conversations at once.
    pub sessions: usize,
    /// The layers around its calls.
    pub chain: Chain,
    /// What the configuration says of it, if it does.
    pub plan: Option<UpstreamPlan>,
}

impl Settings {
    /// A server there, treated as most are.
    pub fn new(way: Way) -> Self {
        Self {
            way,
            speak: Speak::default(),
            dialect: builtin("spec").expect("the dialect `spec` ships inside"),
            naming: Naming::PLAIN,
            affinity: Affinity::default(),
            transparent: false,
            interactive: true,
            startup: Duration::from_secs(30),
            limits: Limits::default(),
            patience: Duration::from_secs(600),
            waiting: 1024,
            sessions: 64,
            chain: Chain::default(),
            plan: None,
        }
    }

    /// Whether it is treated the same. What no configuration names is named on the command line, which stays.
    fn is_same(&self, other: &Self) -> bool {
        let treated = |it: &Self| (it.affinity, it.patience, it.transparent);
        self.plan == other.plan
            && treated(self) == treated(other)
            && self.way.name() == other.way.name()
    }
}

/// Another server.
pub struct Upstream {
    this: Weak<Self>,
    settings: Settings,
    dialer: Arc<Dialer>,
    pool: Arc<Pool>,
    parking: Arc<Parking>,
    watching: Watching,
    source: RwLock<Source>,
    status: signal::Sender<Status>,
    /// What the gateway's own conversation may ask for: nothing, or what the only caller can do.
    asks: OnceLock<Arc<ClientCapabilities>>,
    awake: signal::Sender<bool>,
    callable: RwLock<Arc<Callable>>,
    fresh: Freshness,
    kinds: Kinds,
    /// Whether the server decides by itself which calls become tasks.
    decides: AtomicBool,
    /// Whether the server tells when its lists change.
    is_told: AtomicBool,
    /// Held while lists are fetched because of their age.
    refreshing: AsyncMutex<()>,
    /// Whether other servers have items here too, so that instructions have to say whose they are.
    is_alone: bool,
}

impl Upstream {
    /// Another server, whose items are listed in the registry as soon as it is reached.
    pub fn start(settings: Settings, registry: &Registry, is_alone: bool) -> Arc<Self> {
        Self::start_at(registry.source(), settings, is_alone)
    }

    /// Another server, whose items are listed at this place of a registry as soon as it is reached.
    pub(crate) fn start_at(source: Source, settings: Settings, is_alone: bool) -> Arc<Self> {
        let identity = Implementation {
            name: "creole".to_owned(),
            title: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let profile = Arc::new(Profile {
            dialect: settings.dialect.clone(),
            identity: Raw::of(&identity),
            limits: settings.limits,
        });
        let dialer = Arc::new(Dialer::new(settings.way.clone(), settings.speak, profile));
        let upstream = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            pool: Pool::new(Arc::clone(&dialer), settings.sessions),
            dialer,
            parking: Parking::new(settings.patience, settings.waiting),
            watching: Watching::default(),
            source: RwLock::new(source),
            status: signal::channel(Status::Starting).0,
            asks: OnceLock::new(),
            awake: signal::channel(settings.affinity != Affinity::Single).0,
            callable: RwLock::default(),
            fresh: Freshness::default(),
            kinds: Kinds::default(),
            decides: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
            refreshing: AsyncMutex::default(),
            is_alone,
            settings,
        });
        tokio::spawn(keeper::keep(Arc::downgrade(&upstream)));
        upstream
    }

    /// What the server is called in messages.
    pub fn name(&self) -> &str {
        self.settings.way.name()
    }

    /// Whether the server was reached.
    pub fn is_ready(&self) -> bool {
        *self.status.borrow() == Status::Ready
    }

    /// Waits until the server was reached or could not be, but not longer than others should have to.
    pub async fn ready(&self, context: &Context) -> Result<(), Fault> {
        if self.is_ready() {
            return Ok(());
        }
        self.awaken(context);
        let mut status = self.status.subscribe();
        let reached = status.wait_for(|status| *status != Status::Starting);
        match timeout(self.settings.startup, reached).await {
            Ok(Ok(status)) => match &*status {
                Status::Failed(fault) => Err(fault.clone()),
                _ => Ok(()),
            },
            _ => {
                let (name, seconds) = (self.name(), self.settings.startup.as_secs());
                let detail = format!("{name} did not answer within {seconds} s");
                Err(Fault::new(FaultKind::BackendUnavailable, detail).about(name))
            }
        }
    }

    /// Waits until the server was reached or could not be, unless it waits for its only caller itself.
    pub(crate) async fn tried(&self) {
        if self.settings.affinity != Affinity::Single {
            let mut status = self.status.subscribe();
            let reached = status.wait_for(|status| *status != Status::Starting);
            // Whether it was or not, the successor takes the place.
            _ = timeout(self.settings.startup, reached).await;
        }
    }

    /// Ends all conversations with the server in peace.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Lists its items at another place from now on.
    pub(crate) fn move_to(&self, place: Source) {
        self.source.write().unwrap_or_else(PoisonError::into_inner).move_to(place);
    }

    /// Whether nothing would be different if it were started anew on these terms.
    pub(crate) fn is_as(&self, settings: &Settings, is_alone: bool) -> bool {
        self.is_alone == is_alone && self.settings.is_same(settings)
    }

    fn source(&self) -> RwLockReadGuard<'_, Source> {
        self.source.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, change: Change) {
        self.source().announce(change);
    }

    fn instructions(&self, given: &Option<String>) -> Option<String> {
        let text = given.as_deref().filter(|text| !text.trim().is_empty())?;
        Some(match self.is_alone {
            true => text.to_owned(),
            false => format!("{}: {text}", self.name()),
        })
    }

    fn set_callable(&self, callable: Callable) {
        *self.callable.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(callable);
    }

    fn callable(&self) -> Arc<Callable> {
        Arc::clone(&self.callable.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers a call. What is rare waits on the heap, so that this future is small.
    async fn answer(&self, call: Call) -> Outcome {
        let kept = call.context.state().and_then(Kept::read);
        match &kept {
            Some(Kept::Park(parked)) => return Box::pin(self.resume(parked, &call)).await,
            Some(Kept::Again) => {
                if let Some(fault) = declined(&call.context) {
                    return fault.into();
                }
            }
            _ => {}
        }
        if let Operation::Subscribe { uri } = &call.operation {
            return match self.main().await {
                Ok(connection) => Box::pin(self.watching.subscribe(uri, &connection)).await,
                Err(fault) => fault.into(),
            };
        }
        for attempt in 0..2 {
            let known = self.callable();
            match self.pass_on(&call, kept.as_ref()).await {
                Ok(Passed::Answered(outcome)) => return outcome,
                // The server had forgotten the session before it looked at the call.
                Ok(Passed::Forgotten) => {}
                // It was refused before it was carried out (2026-07-28 basic/transports/streamable-http, client behavior).
                Ok(Passed::Mismatched(fault)) => {
                    if attempt > 0 || !Box::pin(self.learn_again(&known)).await {
                        return fault.for_caller().into();
                    }
                }
                Err(fault) => return fault.into(),
            }
        }
        broken("the server forgets its sessions").into()
    }

    async fn pass_on(&self, call: &Call, kept: Option<&Kept>) -> Result<Passed, Fault> {
        let is_stateless = match self.dialer.is_stateless() {
            Some(known) => known,
            None => self.main().await?.greeting().rules.era == Era::Stateless,
        };
        let capabilities = terms::capabilities(&call.context);
        let (key, asks) = self.key(call, &capabilities, is_stateless);
        let conversation = call.context.conversation().cloned();
        if let Some(Kept::Task { id, lane }) = kept {
            let key = Key { lane: *lane, ..key };
            let lease = self.pool.lease_again(key, &asks, conversation).await?;
            let followed = self.task(call, lease, &capabilities).follow(id);
            return Ok(Passed::Answered(Box::pin(followed).await));
        }
        let pool = &self.pool;
        let lease = pool.lease(key.clone(), &asks, conversation.clone(), &self.parking).await?;
        let (connection, lane) = (lease.connection.clone(), lease.lane);
        if self.settings.affinity == Affinity::Request {
            lease.spoil();
        }
        let outcome = self.follow(call, lease, &capabilities).await;
        let is_lost = matches!(&outcome, Outcome::Fail(_))
            && connection.is_closed().is_some_and(|closed| closed.session_lost);
        if is_lost {
            return Ok(Passed::Forgotten);
        }
        let is_call = matches!(call.operation, Operation::CallTool { .. });
        let outcome = match outcome {
            Outcome::Fail(fault) if is_call && fault.kind == FaultKind::HeaderMismatch => {
                return Ok(Passed::Mismatched(fault));
            }
            outcome => outcome,
        };
        if let Outcome::Complete(Payload::TaskCreated(task)) = &outcome {
            let lease = pool.lease_again(Key { lane, ..key }, &asks, conversation).await?;
            let adopted = self.task(call, lease, &capabilities).adopt(task);
            return Ok(Passed::Answered(Box::pin(adopted).await));
        }
        Ok(Passed::Answered(finish(outcome, call, &connection)))
    }

    /// Goes on with a call that its caller had to leave.
    async fn resume(&self, parked: &Parked, call: &Call) -> Outcome {
        let outcome = self.parking.resume(parked, call).await;
        let Outcome::Complete(Payload::TaskCreated(task)) = &outcome else { return outcome };
        let capabilities = terms::capabilities(&call.context);
        // Only sessions ask in the middle of a call.
        let (key, asks) = self.key(call, &capabilities, false);
        let conversation = call.context.conversation().cloned();
        let key = Key { lane: parked.lane, ..key };
        match self.pool.lease_again(key, &asks, conversation).await {
            Ok(lease) => self.task(call, lease, &capabilities).adopt(task).await,
            Err(fault) => fault.into(),
        }
    }

    /// The one who follows a task that the server made of a call.
    fn task<'a>(
        &'a self,
        call: &'a Call,
        lease: Lease,
        capabilities: &'a Arc<ClientCapabilities>,
    ) -> tasks::Follower<'a> {
        tasks::Follower { parking: &self.parking, lease, context: &call.context, capabilities }
    }

    async fn follow(
        &self,
        call: &Call,
        mut lease: Lease,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Outcome {
        let (operation, context) = (call.operation.clone(), &call.context);
        affinity::set_level(&lease, context).await;
        let mirrors = self.mirrors(&operation);
        let tasking = self.tasking(&operation, context, &lease.connection);
        let rules = lease.connection.greeting().rules;
        let request = terms::request(operation, context, capabilities, tasking, rules);
        if call.operation.may_ask() && park::is_needed(context, &lease, capabilities) {
            let beginning = Beginning { request, mirrors };
            return Box::pin(self.parking.follow(beginning, lease, context)).await;
        }
        let calling = lease.connection.begin_with(request, mirrors);
        relay::follow(calling, &mut lease, context).await
    }

    /// The arguments that are repeated in headers, where a server wants that.
    fn mirrors(&self, operation: &Operation) -> Arc<[Mirror]> {
        let Operation::CallTool { name, .. } = operation else { return Arc::default() };
        self.callable().mirrors(name).cloned().unwrap_or_default()
    }

    /// Whether the server may make a task of the call, which is then followed here.
    fn tasking(
        &self,
        operation: &Operation,
        context: &Context,
        connection: &Connection,
    ) -> Tasking {
        let Operation::CallTool { name, .. } = operation else { return Tasking::Never };
        let greeting = connection.greeting();
        if !greeting.card.capabilities.tasks {
            return Tasking::Never;
        }
        match (greeting.rules.tasks, self.callable().support(name)) {
            // Whoever could have allowed it and did not is told that it has to.
            (Tasks::Extension, _) if context.caller().rules.tasks == Tasks::Extension => {
                context.caller().tasking
            }
            (Tasks::Extension, _) => Tasking::Allowed,
            (Tasks::Wanted, TaskSupport::Required) => Tasking::Wanted { ttl_ms: None },
            (Tasks::Wanted, TaskSupport::Optional) if context.is_task() => {
                Tasking::Wanted { ttl_ms: None }
            }
            _ => Tasking::Never,
        }
    }
}

impl Endpoint for Upstream {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { self.answer(call).await })
    }

    fn release(&self, uri: &str) {
        if !self.watching.remove(uri) {
            return;
        }
        let (this, uri) = (Weak::clone(&self.this), uri.to_owned());
        tokio::spawn(async move {
            sleep(LINGER).await;
            let Some(upstream) = this.upgrade() else { return };
            if !upstream.watching.has(&uri)
                && let Ok(connection) = upstream.main().await
            {
                upstream.watching.unsubscribe(&uri, &connection).await;
            }
        });
    }
}

/// What came of passing a call on.
enum Passed {
    Answered(Outcome),
    /// The session was gone before the call was looked at.
    Forgotten,
    /// The headers of the call were not those that the tool's schema wants.
    Mismatched(Fault),
}

/// What the caller is told, given what the server did.
fn finish(outcome: Outcome, call: &Call, connection: &Connection) -> Outcome {
    match outcome {
        // Questions of calls that were parked carry their own state already.
        Outcome::NeedInput { asks, state } => {
            if let Some(fault) = creole::ask::lacking(&asks, call.context.caller()) {
                return fault.into();
            }
            let parked = state.as_deref().and_then(Kept::read).is_some();
            let state = match connection.greeting().rules.asking {
                Asking::Inline if parked => state,
                Asking::Inline => Some(Kept::Again.text()),
                Asking::Reentrant => Some(Kept::Relay(state).text()),
            };
            Outcome::NeedInput { asks, state }
        }
        Outcome::Fail(fault) => fault.for_caller().into(),
        other => other,
    }
}

/// The fault of a caller that did not visit the page without which the server refuses.
fn declined(context: &Context) -> Option<Fault> {
    let accepted = |answer: &Raw| {
        answer.object().and_then(|answer| answer.get("action")) == Some("\"accept\"")
    };
    let is_declined = context.answers().any(|(_, answer)| !accepted(answer));
    is_declined.then(|| Fault::new(FaultKind::InputRefused, "the page was not visited"))
}

fn broken(what: &str) -> Fault {
    Fault::new(FaultKind::Internal, what)
}
