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
mod startup;
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
use creole::proto::operation::{Change, Outcome};
use creole::{BoxFuture, Call, Registry};
use tokio::sync::{Mutex as AsyncMutex, watch as signal};
use tokio::time::Instant;

use crate::upstream::connections::UpstreamSessions;
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
    status: signal::Sender<StartupStatus>,
    /// When the start of the upstream began. `None` while it waits for its only caller or for other upstreams.
    start_time: signal::Sender<Option<Instant>>,
    /// Whether a client fetched lists before the upstream was ready.
    lists_missed: AtomicBool,
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
        if upstream.is_queued() {
            upstream.start_now();
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
            status: signal::channel(StartupStatus::Starting).0,
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
