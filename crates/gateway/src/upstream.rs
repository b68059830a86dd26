//! An upstream as an endpoint: forwards calls to another server and translates between its era and the caller's.
//!
//! An upstream of the handshake era sends input requests during a call. A caller of that era receives them as they are.
//! A caller of the stateless era receives them as the outcome of its call, and the upstream call is parked
//! meanwhile. An upstream of the stateless era ends its call with input requests. For callers of the handshake era,
//! [`creole::input`] sends them and then repeats the call.

pub(crate) mod connections;
mod forward;
mod lists;
mod park;
mod relay;
pub(crate) mod settings;
pub(crate) mod startup;
mod status;
#[cfg(test)]
mod tests;

pub use crate::upstream::connections::connector::detect_dialect;
pub use crate::upstream::settings::{
    Affinity, NameError, Naming, RevisionChoice, SettingsOrigin, UpstreamSettings,
};
pub use creole::client::Address;
pub use status::{ListStatus, UpstreamError, UpstreamState, UpstreamStatus};

use creole::internal::sync::RwLock;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, RwLockReadGuard, Weak};

use creole::internal::call::ConnectionId;
use creole::internal::chain::Endpoint;
use creole::internal::registry::{ItemSource, Recipients};
use creole::proto::fault::Fault;
use creole::proto::model::ListKind;
use creole::proto::operation::{Change, Outcome};
use creole::{BoxFuture, Call, Context, Registry};
use tokio::sync::Mutex as AsyncMutex;

use crate::upstream::connections::UpstreamSessions;
use crate::upstream::lists::excluded_items::ExcludedItems;
use crate::upstream::lists::list_age::ListAges;
use crate::upstream::lists::list_failures::ListFailures;
use crate::upstream::lists::list_fetch::ToolIndex;
use crate::upstream::lists::session_subscriptions::SessionSubscriptions;
use crate::upstream::lists::subscriptions::ResourceSubscriptions;
use crate::upstream::lists::unsubscribe_queue::UnsubscribeQueue;
use lists::UpstreamLists;
use park::ParkedCalls;
use startup::{Startup, StartupStatus};
use status::{StatusData, StatusRecord, excluded_line, fault_message};

/// A server that the gateway forwards to.
pub struct Upstream {
    this: Weak<Self>,
    settings: Arc<UpstreamSettings>,
    sessions: Arc<UpstreamSessions>,
    parked_calls: Arc<ParkedCalls>,
    subscriptions: ResourceSubscriptions,
    /// The subscriptions in sessions of callers.
    session_subscriptions: SessionSubscriptions,
    unsubscribe_queue: UnsubscribeQueue,
    source: RwLock<ItemSource>,
    startup: Arc<Startup>,
    tool_index: RwLock<Arc<ToolIndex>>,
    list_ages: ListAges,
    /// The shared lists, and the lists of callers that have their own session.
    lists: UpstreamLists,
    excluded_items: ExcludedItems,
    /// The lists whose last fetch failed.
    list_failures: ListFailures,
    status_record: StatusRecord,
    /// Whether the upstream decides which calls become tasks.
    decides_tasks: AtomicBool,
    /// Whether the upstream announces changes of its lists.
    announces_changes: AtomicBool,
    /// Held while stale lists are fetched.
    refresh_lock: AsyncMutex<()>,
    /// Whether no other server provides items here. If others do, the instructions have to name the upstream.
    is_single: bool,
}

impl Upstream {
    /// Starts an upstream. The registry lists its items as soon as it is ready.
    pub fn start(settings: UpstreamSettings, registry: &Registry, is_alone: bool) -> Arc<Self> {
        let upstream = Self::new(registry.add_source(), settings, is_alone);
        if upstream.startup.is_queued() {
            upstream.startup.start_now();
        }
        upstream
    }

    /// An upstream that is not started yet. This source of a registry lists its items as soon as it is ready.
    pub(crate) fn new(source: ItemSource, settings: UpstreamSettings, is_alone: bool) -> Arc<Self> {
        source.set_name(settings.address.name());
        let settings = Arc::new(settings);
        let parked_calls = ParkedCalls::new(
            settings.input_timeout,
            settings.max_parked_calls,
            settings.replicas.clone(),
        );
        let upstream = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            sessions: Arc::new(UpstreamSessions::new(
                Arc::clone(&settings),
                Arc::clone(&parked_calls) as _,
            )),
            parked_calls,
            subscriptions: ResourceSubscriptions::default(),
            session_subscriptions: SessionSubscriptions::default(),
            unsubscribe_queue: UnsubscribeQueue::default(),
            source: RwLock::new(source),
            startup: Arc::new(Startup::new(Arc::clone(&settings))),
            tool_index: RwLock::default(),
            list_ages: ListAges::default(),
            lists: UpstreamLists::default(),
            excluded_items: ExcludedItems::default(),
            list_failures: ListFailures::default(),
            status_record: StatusRecord::default(),
            decides_tasks: AtomicBool::new(false),
            announces_changes: AtomicBool::new(false),
            refresh_lock: AsyncMutex::default(),
            is_single: is_alone,
            settings,
        });
        tokio::spawn(lists::list_sync::run_list_sync(Arc::downgrade(&upstream)));
        upstream
    }

    /// The name of the upstream in messages.
    pub fn name(&self) -> &str {
        self.settings.name()
    }

    /// The patterns of its layers that have matched none of its items so far, as messages.
    pub fn unmatched_patterns(&self) -> Vec<String> {
        self.settings.chain.unmatched_patterns()
    }

    /// Whether the upstream is ready.
    pub fn is_ready(&self) -> bool {
        self.startup.is_ready()
    }

    /// Waits until the upstream is ready or has failed, at most for its startup timeout.
    pub async fn wait_until_ready(&self, context: &Context) -> Result<(), Fault> {
        if self.is_ready() {
            return Ok(());
        }
        self.start_for_caller(context);
        self.startup.wait_until_ready().await
    }

    /// Starts an upstream that waits for its only caller.
    pub(crate) fn start_for_caller(&self, context: &Context) {
        if self.startup.waits_for_caller() {
            self.sessions.set_only_caller(context);
            self.startup.start_now();
        }
    }

    /// Its startup.
    pub(crate) fn startup(&self) -> &Startup {
        &self.startup
    }

    /// Whether no other server provides items.
    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    /// Offers lists of each kind before the upstream declares which it has: a client that opens a session receives the
    /// capabilities only once.
    pub(crate) fn offer_lists(&self) {
        self.source().offer_lists();
    }

    /// The state of this upstream now.
    pub fn status(&self) -> UpstreamStatus {
        let StatusData { revision, declared, latency, last_error } = self.status_record.snapshot();
        let list = |kind: &ListKind| ListStatus {
            kind: *kind,
            items: self.lists.count(*kind),
            failure: self.list_failures.fault(*kind).as_ref().map(fault_message),
        };
        UpstreamStatus {
            name: self.name().to_owned(),
            state: match &*self.startup.status() {
                StartupStatus::Starting if self.startup.since().is_none() => UpstreamState::Waiting,
                StartupStatus::Starting => UpstreamState::Starting,
                StartupStatus::Ready => UpstreamState::Ready,
                StartupStatus::Failed(fault) => {
                    UpstreamState::Failed(self.settings.with_address(&fault_message(fault)))
                }
            },
            transport: match self.settings.address {
                Address::Child(_) => "stdio",
                Address::Http(_) => "http",
            },
            revision,
            lists: declared.iter().map(list).collect(),
            excluded: self.excluded_items.all().iter().map(excluded_line).collect(),
            latency,
            last_error: last_error.map(|error| UpstreamError {
                message: self.settings.with_address(&error.message),
                stderr: error.stderr,
            }),
        }
    }

    /// Closes all connections to the upstream gracefully.
    pub async fn close(&self) {
        self.sessions.pool.close().await;
    }

    /// Lists its items in another source of a registry from now on.
    pub(crate) fn move_to(&self, place: ItemSource) {
        place.set_name(self.name());
        self.source.write().move_to(place);
    }

    /// Whether a restart with these settings would change nothing.
    pub(crate) fn is_equivalent(&self, settings: &UpstreamSettings, is_alone: bool) -> bool {
        self.is_single == is_alone && self.settings.is_equivalent(settings)
    }

    fn source(&self) -> RwLockReadGuard<'_, ItemSource> {
        self.source.read()
    }

    fn announce(&self, change: Change) {
        if let Change::Resource(uri) = &change {
            self.settings.chain.resource_updated(uri);
        }
        self.source().announce(change);
    }

    /// Announces a change to the callers that it affects.
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
        *self.tool_index.write() = Arc::new(callable);
    }

    fn tool_index(&self) -> Arc<ToolIndex> {
        Arc::clone(&self.tool_index.read())
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

/// Removes the standard error output of an upstream program from an outcome. It is for the operator and may contain
/// secrets.
fn without_trace(mut outcome: Outcome) -> Outcome {
    if let Outcome::Fail(fault) = &mut outcome {
        fault.trace = None;
    }
    outcome
}
