//! Another server as an endpoint: calls are passed on to it, whatever era it and the caller speak.
//!
//! A server of the handshake era asks in the middle of a call. Its questions reach a caller of that era as they
//! are; a caller of the stateless era is given them as the answer to its call, which is [parked](park) meanwhile.
//! A server of the stateless era ends its call with questions; for callers of the handshake era they are asked
//! by [`creole::input`], which then calls again.

mod affinity;
#[cfg(test)]
mod answer_tests;
mod arrival;
mod callers;
#[cfg(test)]
mod cancel_tests;
mod catalogue;
#[cfg(test)]
mod crowd_tests;
mod dial;
mod failures;
mod follow;
mod fresh;
mod guess;
mod keeper;
mod kept;
mod left_out;
#[cfg(test)]
mod list_tests;
mod names;
#[cfg(test)]
mod neighbour_tests;
mod outside;
mod own_session;
mod park;
mod passing;
mod planned;
mod pool;
mod relay;
mod repeat;
#[cfg(test)]
mod rollback_tests;
#[cfg(test)]
mod roots_tests;
#[cfg(test)]
mod session_tests;
mod status;
mod takeover;
mod tasks;
mod terms;
mod unmet;
mod unsubscribing;
mod views;
mod watch;
mod watched_session;

pub use affinity::Affinity;
pub use creole::client::Address;
pub use dial::Speak;
pub use guess::guess;
pub use names::{Naming, Unusable};
pub use planned::preset;
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

use crate::chain::Chain;
use crate::plan::upstream::UpstreamPlan;
use catalogue::Callable;
use dial::Dialer;
use failures::ListFailures;
use fresh::Freshness;
use keeper::Status;
use left_out::LeftOut;
use park::Parking;
use pool::Pool;
use status::Facts;
use unsubscribing::Unsubscribing;
use views::Views;
use watch::Watching;
use watched_session::WatchedSessions;

/// How long a resource is still watched after the last who did: many come back at once.
const LINGER: Duration = Duration::from_secs(5);

/// How a server is treated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it is.
    pub way: Address,
    /// What it is offered to speak.
    pub speak: Speak,
    /// How it deviates from that.
    pub dialect: Dialect,
    /// Whether it is spoken to in another dialect, where it turns out to speak that.
    pub guesses: bool,
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
    pub limits: ClientLimits,
    /// How long a caller may take to come back with answers.
    pub patience: Duration,
    /// The most calls that wait for answers at once.
    pub waiting: usize,
    /// The most conversations of callers at once; one of several callers has at most half of them.
    pub sessions: usize,
    /// The layers around its calls.
    pub chain: Chain,
    /// What the configuration says of it, if it does.
    pub plan: Option<UpstreamPlan>,
    /// The processes that share the state, where there may be several: callers may come back to any of them.
    pub peers: Option<Replicas>,
}

impl Settings {
    /// A server there, treated as most are.
    pub fn new(way: Address) -> Self {
        Self {
            way,
            speak: Speak::default(),
            dialect: builtin("spec").expect("the dialect `spec` ships inside"),
            guesses: false,
            naming: Naming::PLAIN,
            affinity: Affinity::default(),
            transparent: false,
            interactive: true,
            startup: Duration::from_secs(30),
            limits: ClientLimits::default(),
            patience: Duration::from_secs(600),
            waiting: 1024,
            sessions: 64,
            chain: Chain::default(),
            plan: None,
            peers: None,
        }
    }

    /// The most conversations of one caller at once: no caller takes those of all others.
    fn share(&self) -> usize {
        match self.affinity {
            Affinity::Single => self.sessions,
            _ => self.sessions.div_ceil(2),
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
    /// What is watched in sessions of callers, and by whom.
    watched: WatchedSessions,
    unsubscribing: Unsubscribing,
    source: RwLock<ItemSource>,
    status: signal::Sender<Status>,
    /// What the gateway's own conversation may ask for: nothing, or what the only caller can do.
    asks: OnceLock<Arc<ClientCapabilities>>,
    /// The era of the only caller, once it came.
    only_era: OnceLock<Era>,
    /// The session of the only caller, once it came.
    only_session: OnceLock<ClientSession>,
    /// What somebody can do who cannot be asked anything.
    nothing: Arc<ClientCapabilities>,
    /// Since when it is being reached; nothing while it waits for its only caller, or for others to start.
    awake: signal::Sender<Option<Instant>>,
    /// Whether somebody looked at lists before it was there.
    missed: AtomicBool,
    callable: RwLock<Arc<Callable>>,
    fresh: Freshness,
    /// The shared lists, and those of callers that have a session of their own.
    views: Views,
    left_out: LeftOut,
    /// The lists whose last fetch failed.
    failures: ListFailures,
    facts: Facts,
    /// Whether the server decides by itself which calls become tasks.
    decides: AtomicBool,
    /// Whether the server tells when its lists change.
    is_told: AtomicBool,
    /// Told when the server turned out to be of another era, and its conversations were left.
    changed: signal::Sender<()>,
    /// Held while lists are fetched because of their age.
    refreshing: AsyncMutex<()>,
    /// Whether other servers have items here too, so that instructions have to say whose they are.
    is_alone: bool,
}

impl Upstream {
    /// Another server, whose items are listed in the registry as soon as it is reached.
    pub fn start(settings: Settings, registry: &Registry, is_alone: bool) -> Arc<Self> {
        let upstream = Self::at(registry.add_source(), settings, is_alone);
        if upstream.is_queued() {
            upstream.start_now();
        }
        upstream
    }

    /// Another server, whose items are listed at this place of a registry as soon as it is started and reached.
    pub(crate) fn at(source: ItemSource, settings: Settings, is_alone: bool) -> Arc<Self> {
        source.set_name(settings.way.name());
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
        let mut dialer = Dialer::new(settings.way.clone(), settings.speak, profile);
        dialer.guesses = settings.guesses;
        let dialer = Arc::new(dialer);
        let upstream = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            pool: Pool::new(Arc::clone(&dialer), settings.sessions, settings.share()),
            dialer,
            parking: Parking::new(settings.patience, settings.waiting, settings.peers.clone()),
            watching: Watching::default(),
            watched: WatchedSessions::default(),
            unsubscribing: Unsubscribing::default(),
            source: RwLock::new(source),
            status: signal::channel(Status::Starting).0,
            asks: OnceLock::new(),
            only_era: OnceLock::new(),
            only_session: OnceLock::new(),
            nothing: Arc::default(),
            awake: signal::channel(None).0,
            missed: AtomicBool::new(false),
            callable: RwLock::default(),
            fresh: Freshness::default(),
            views: Views::default(),
            left_out: LeftOut::default(),
            failures: ListFailures::default(),
            facts: Facts::default(),
            decides: AtomicBool::new(false),
            is_told: AtomicBool::new(false),
            changed: signal::channel(()).0,
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

    /// The patterns of the layers around it that matched none of its items so far, in words.
    pub fn unmatched(&self) -> Vec<String> {
        self.settings.chain.unmatched()
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
    pub(crate) fn is_as(&self, settings: &Settings, is_alone: bool) -> bool {
        self.is_alone == is_alone && self.settings.is_same(settings)
    }

    fn source(&self) -> RwLockReadGuard<'_, ItemSource> {
        self.source.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, change: Change) {
        if let Change::Resource(uri) = &change {
            self.settings.chain.updated(uri);
        }
        self.source().announce(change);
    }

    /// Announces a change to the callers that it concerns.
    fn announce_to(&self, to: Recipients, change: Change) {
        if let Change::Resource(uri) = &change {
            self.settings.chain.updated(uri);
        }
        self.source().announce_to(to, change);
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
}

impl Endpoint for Upstream {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { told(self.answer(&call).await) })
    }

    fn call_owned(self: Arc<Self>, call: Call) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { told(self.answer(&call).await) })
    }

    fn subscription_ended(&self, uri: &str, connection: ConnectionId) {
        self.unwatch(uri, connection);
    }
}

/// An outcome as callers are told it. What a program wrote at its end is for whoever runs it, and may tell secrets.
fn told(mut outcome: Outcome) -> Outcome {
    if let Outcome::Fail(fault) = &mut outcome {
        fault.trace = None;
    }
    outcome
}

fn broken(what: &str) -> Fault {
    Fault::new(FaultKind::Internal, what)
}
