//! Another server as an endpoint: calls are passed on to it, whatever era it and the caller speak.
//!
//! A server of the handshake era asks in the middle of a call. Its questions reach a caller of that era as they
//! are; a caller of the stateless era is given them as the answer to its call, which is [parked](park) meanwhile.
//! A server of the stateless era ends its call with questions; for callers of the handshake era they are asked
//! by [`creole::input`], which then calls again.

pub(crate) mod connections;
mod forward;
mod lists;
mod park;
mod settings_from_plan;
mod startup;
mod status;
#[cfg(test)]
mod tests;

pub use crate::upstream::connections::affinity::Affinity;
pub use crate::upstream::connections::connector::RevisionChoice;
pub use crate::upstream::connections::detect_dialect::detect_dialect;
pub use crate::upstream::lists::naming::{NameError, Naming};
pub use creole::client::Address;
pub use settings_from_plan::preset_address;
pub use status::{ListStatus, UpstreamError, UpstreamState, UpstreamStatus};

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use creole::call::{Call, ClientSession, ConnectionId};
use creole::chain::{BoxFuture, Endpoint};
use creole::proto::client::{ClientLimits, Profile};
use creole::proto::dialect::{Dialect, builtin};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{ClientCapabilities, Implementation};
use creole::proto::operation::{Change, Outcome};
use creole::proto::revision::Era;
use creole::proto::wire::Raw;
use creole::replicas::Replicas;
use creole::{ItemSource, Recipients, Registry};
use tokio::sync::{Mutex as AsyncMutex, watch as signal};
use tokio::time::Instant;

use crate::layers::Chain;
use crate::plan::upstream::UpstreamPlan;
use crate::upstream::connections::connector::UpstreamConnector;
use crate::upstream::connections::pool::UpstreamPool;
use crate::upstream::lists::excluded_items::ExcludedItems;
use crate::upstream::lists::list_age::ListAges;
use crate::upstream::lists::list_failures::ListFailures;
use crate::upstream::lists::list_fetch::ToolIndex;
use crate::upstream::lists::list_sync::StartupStatus;
use crate::upstream::lists::session_subscriptions::SessionSubscriptions;
use crate::upstream::lists::subscriptions::ResourceSubscriptions;
use crate::upstream::lists::unsubscribe_queue::UnsubscribeQueue;
use lists::UpstreamLists;
use park::ParkedCalls;
use status::StatusRecord;

/// How long a resource is still watched after the last who did: many come back at once.
const UNSUBSCRIBE_DELAY: Duration = Duration::from_secs(5);

/// How a server is treated.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// Where it is.
    pub address: Address,
    /// What it is offered to speak.
    pub revisions: RevisionChoice,
    /// How it deviates from that.
    pub dialect: Dialect,
    /// Whether it is spoken to in another dialect, where it turns out to speak that.
    pub detects_dialect: bool,
    /// How its items are named here.
    pub naming: Naming,
    /// Which callers share a conversation.
    pub affinity: Affinity,
    /// Whether this server speaks in its name.
    pub transparent: bool,
    /// Whether callers can be asked by it.
    pub interactive: bool,
    /// How long others wait for it when everything starts.
    pub startup_timeout: Duration,
    /// How long it may be silent about a call, and how long a call may take at all.
    pub limits: ClientLimits,
    /// How long a caller may take to come back with answers.
    pub input_timeout: Duration,
    /// The most calls that wait for answers at once.
    pub max_parked_calls: usize,
    /// The most conversations of callers at once; one of several callers has at most half of them.
    pub max_sessions: usize,
    /// The layers around its calls.
    pub chain: Chain,
    /// What the configuration says of it, if it does.
    pub plan: Option<UpstreamPlan>,
    /// The processes that share the state, where there may be several: callers may come back to any of them.
    pub replicas: Option<Replicas>,
}

impl UpstreamSettings {
    /// A server there, treated as most are.
    pub fn new(way: Address) -> Self {
        Self {
            address: way,
            revisions: RevisionChoice::default(),
            dialect: builtin("spec").expect("the dialect `spec` ships inside"),
            detects_dialect: false,
            naming: Naming::UNPREFIXED,
            affinity: Affinity::default(),
            transparent: false,
            interactive: true,
            startup_timeout: Duration::from_secs(30),
            limits: ClientLimits::default(),
            input_timeout: Duration::from_secs(600),
            max_parked_calls: 1024,
            max_sessions: 64,
            chain: Chain::default(),
            plan: None,
            replicas: None,
        }
    }

    /// The most conversations of one caller at once: no caller takes those of all others.
    fn max_sessions_per_caller(&self) -> usize {
        match self.affinity {
            Affinity::Single => self.max_sessions,
            _ => self.max_sessions.div_ceil(2),
        }
    }

    /// Whether it is treated the same. What no configuration names is named on the command line, which stays.
    fn is_equivalent(&self, other: &Self) -> bool {
        let treated = |it: &Self| (it.affinity, it.input_timeout, it.transparent);
        self.plan == other.plan
            && treated(self) == treated(other)
            && self.address.name() == other.address.name()
    }
}

/// Another server.
pub struct Upstream {
    this: Weak<Self>,
    settings: UpstreamSettings,
    connector: Arc<UpstreamConnector>,
    pool: Arc<UpstreamPool>,
    parked_calls: Arc<ParkedCalls>,
    subscriptions: ResourceSubscriptions,
    /// What is watched in sessions of callers, and by whom.
    session_subscriptions: SessionSubscriptions,
    unsubscribe_queue: UnsubscribeQueue,
    source: RwLock<ItemSource>,
    status: signal::Sender<StartupStatus>,
    /// What the gateway's own conversation may ask for: nothing, or what the only caller can do.
    gateway_capabilities: OnceLock<Arc<ClientCapabilities>>,
    /// The era of the only caller, once it came.
    only_era: OnceLock<Era>,
    /// The session of the only caller, once it came.
    only_session: OnceLock<ClientSession>,
    /// What somebody can do who cannot be asked anything.
    no_capabilities: Arc<ClientCapabilities>,
    /// Since when it is being reached; nothing while it waits for its only caller, or for others to start.
    start_time: signal::Sender<Option<Instant>>,
    /// Whether somebody looked at lists before it was there.
    lists_missed: AtomicBool,
    tool_index: RwLock<Arc<ToolIndex>>,
    list_ages: ListAges,
    /// The shared lists, and those of callers that have a session of their own.
    lists: UpstreamLists,
    excluded_items: ExcludedItems,
    /// The lists whose last fetch failed.
    list_failures: ListFailures,
    status_record: StatusRecord,
    /// Whether the server decides by itself which calls become tasks.
    decides_tasks: AtomicBool,
    /// Whether the server tells when its lists change.
    announces_changes: AtomicBool,
    /// Told when the server turned out to be of another era, and its conversations were left.
    era_changed: signal::Sender<()>,
    /// Held while lists are fetched because of their age.
    refresh_lock: AsyncMutex<()>,
    /// Whether other servers have items here too, so that instructions have to say whose they are.
    is_single: bool,
}

impl Upstream {
    /// Another server, whose items are listed in the registry as soon as it is reached.
    pub fn start(settings: UpstreamSettings, registry: &Registry, is_alone: bool) -> Arc<Self> {
        let upstream = Self::new(registry.add_source(), settings, is_alone);
        if upstream.is_queued() {
            upstream.start_now();
        }
        upstream
    }

    /// Another server, whose items are listed at this place of a registry as soon as it is started and reached.
    pub(crate) fn new(source: ItemSource, settings: UpstreamSettings, is_alone: bool) -> Arc<Self> {
        source.set_name(settings.address.name());
        let identity = Implementation {
            name: "creole".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Implementation::default()
        };
        let profile = Arc::new(Profile {
            dialect: settings.dialect.clone(),
            identity: Raw::from_value(&identity),
            limits: settings.limits,
        });
        let mut dialer =
            UpstreamConnector::new(settings.address.clone(), settings.revisions, profile);
        dialer.detects_dialect = settings.detects_dialect;
        let dialer = Arc::new(dialer);
        let upstream = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            pool: UpstreamPool::new(
                Arc::clone(&dialer),
                settings.max_sessions,
                settings.max_sessions_per_caller(),
            ),
            connector: dialer,
            parked_calls: ParkedCalls::new(
                settings.input_timeout,
                settings.max_parked_calls,
                settings.replicas.clone(),
            ),
            subscriptions: ResourceSubscriptions::default(),
            session_subscriptions: SessionSubscriptions::default(),
            unsubscribe_queue: UnsubscribeQueue::default(),
            source: RwLock::new(source),
            status: signal::channel(StartupStatus::Starting).0,
            gateway_capabilities: OnceLock::new(),
            only_era: OnceLock::new(),
            only_session: OnceLock::new(),
            no_capabilities: Arc::default(),
            start_time: signal::channel(None).0,
            lists_missed: AtomicBool::new(false),
            tool_index: RwLock::default(),
            list_ages: ListAges::default(),
            lists: UpstreamLists::default(),
            excluded_items: ExcludedItems::default(),
            list_failures: ListFailures::default(),
            status_record: StatusRecord::default(),
            decides_tasks: AtomicBool::new(false),
            announces_changes: AtomicBool::new(false),
            era_changed: signal::channel(()).0,
            refresh_lock: AsyncMutex::default(),
            is_single: is_alone,
            settings,
        });
        tokio::spawn(lists::list_sync::run_list_sync(Arc::downgrade(&upstream)));
        upstream
    }

    /// What the server is called in messages.
    pub fn name(&self) -> &str {
        self.settings.address.name()
    }

    /// The patterns of the layers around it that matched none of its items so far, in words.
    pub fn unmatched_patterns(&self) -> Vec<String> {
        self.settings.chain.unmatched_patterns()
    }

    /// Ends all conversations with the server in peace.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// Lists its items at another place from now on.
    pub(crate) fn move_to(&self, place: ItemSource) {
        place.set_name(self.name());
        self.source.write().unwrap_or_else(PoisonError::into_inner).move_to(place);
    }

    /// Whether nothing would be different if it were started anew on these terms.
    pub(crate) fn is_equivalent(&self, settings: &UpstreamSettings, is_alone: bool) -> bool {
        self.is_single == is_alone && self.settings.is_equivalent(settings)
    }

    fn source(&self) -> RwLockReadGuard<'_, ItemSource> {
        self.source.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, change: Change) {
        if let Change::Resource(uri) = &change {
            self.settings.chain.resource_updated(uri);
        }
        self.source().announce(change);
    }

    /// Announces a change to the callers that it concerns.
    fn announce_to(&self, to: Recipients, change: Change) {
        if let Change::Resource(uri) = &change {
            self.settings.chain.resource_updated(uri);
        }
        self.source().announce_to(to, change);
    }

    fn instructions(&self, given: &Option<String>) -> Option<String> {
        let text = given.as_deref().filter(|text| !text.trim().is_empty())?;
        Some(match self.is_single {
            true => text.to_owned(),
            false => format!("{}: {text}", self.name()),
        })
    }

    fn set_tool_index(&self, callable: ToolIndex) {
        *self.tool_index.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(callable);
    }

    fn tool_index(&self) -> Arc<ToolIndex> {
        Arc::clone(&self.tool_index.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Endpoint for Upstream {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { without_trace(self.answer_call(&call).await) })
    }

    fn call_owned(self: Arc<Self>, call: Call) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { without_trace(self.answer_call(&call).await) })
    }

    fn subscription_ended(&self, uri: &str, connection: ConnectionId) {
        self.release_subscription(uri, connection);
    }
}

/// An outcome as callers are told it. What a program wrote at its end is for whoever runs it, and may tell secrets.
fn without_trace(mut outcome: Outcome) -> Outcome {
    if let Outcome::Fail(fault) = &mut outcome {
        fault.trace = None;
    }
    outcome
}

fn internal_fault(what: &str) -> Fault {
    Fault::new(FaultKind::Internal, what)
}
