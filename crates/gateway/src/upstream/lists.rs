//! The lists of an upstream: fetches them, keeps them current, publishes them in a registry, and holds the subscriptions
//! by which the upstream announces changes.

pub(crate) mod caller_session;
pub(crate) mod excluded_items;
pub(crate) mod list_age;
pub(crate) mod list_failures;
pub(crate) mod list_fetch;
pub(crate) mod list_store;
pub(crate) mod list_sync;
pub(crate) mod notifications;
pub(crate) mod session_subscriptions;
pub(crate) mod subscriptions;
pub(crate) mod unsubscribe_queue;

use creole::internal::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLockReadGuard, Weak};

use creole::internal::chain::Endpoint;
use creole::internal::registry::{ItemSource, Recipients};
use creole::proto::model::{ExcludedItem, ListKind};
use creole::proto::operation::Change;
use tokio::sync::Mutex as AsyncMutex;

use crate::upstream::connections::UpstreamSessions;
use crate::upstream::lists::excluded_items::ExcludedItems;
use crate::upstream::lists::list_age::ListAges;
use crate::upstream::lists::list_failures::ListFailures;
use crate::upstream::lists::list_fetch::ToolIndex;
use crate::upstream::lists::list_store::ListStore;
use crate::upstream::lists::session_subscriptions::SessionSubscriptions;
use crate::upstream::lists::subscriptions::ResourceSubscriptions;
use crate::upstream::lists::unsubscribe_queue::UnsubscribeQueue;
use crate::upstream::settings::UpstreamSettings;
use crate::upstream::startup::Startup;
use crate::upstream::status::{ListStatus, StatusData, StatusRecord, fault_message};

/// The lists of one upstream and the subscriptions of its callers.
pub(crate) struct UpstreamLists {
    this: Weak<Self>,
    settings: Arc<UpstreamSettings>,
    sessions: Arc<UpstreamSessions>,
    startup: Arc<Startup>,
    /// What answers calls of the listed items. It owns these lists.
    endpoint: Weak<dyn Endpoint>,
    source: RwLock<ItemSource>,
    /// Whether no other server provides items here. If others do, the instructions have to name the upstream.
    is_single: bool,
    /// The shared lists, and the lists of callers that have their own session.
    store: ListStore,
    tool_index: RwLock<Arc<ToolIndex>>,
    ages: ListAges,
    /// The lists whose last fetch failed.
    failures: ListFailures,
    excluded_items: ExcludedItems,
    status_record: StatusRecord,
    /// The number of tools that a layer withholds until they are approved.
    withheld: AtomicUsize,
    /// Whether the upstream decides which calls become tasks.
    decides_tasks: AtomicBool,
    /// Whether the upstream announces changes of its lists.
    announces_changes: AtomicBool,
    /// Held while stale lists are fetched.
    refresh_lock: AsyncMutex<()>,
    /// The subscriptions in the gateway's own session.
    subscriptions: ResourceSubscriptions,
    /// The subscriptions in sessions of callers.
    session_subscriptions: SessionSubscriptions,
    unsubscribe_queue: UnsubscribeQueue,
}

impl UpstreamLists {
    /// Empty lists. They are listed in this source, and `endpoint` answers calls of their items.
    pub(super) fn new(
        (source, is_single): (ItemSource, bool),
        sessions: Arc<UpstreamSessions>,
        startup: Arc<Startup>,
        endpoint: Weak<dyn Endpoint>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            settings: Arc::clone(&sessions.settings),
            sessions,
            startup,
            endpoint,
            source: RwLock::new(source),
            is_single,
            store: ListStore::default(),
            tool_index: RwLock::default(),
            ages: ListAges::default(),
            failures: ListFailures::default(),
            excluded_items: ExcludedItems::default(),
            status_record: StatusRecord::default(),
            withheld: AtomicUsize::new(0),
            decides_tasks: AtomicBool::new(false),
            announces_changes: AtomicBool::new(false),
            refresh_lock: AsyncMutex::default(),
            subscriptions: ResourceSubscriptions::default(),
            session_subscriptions: SessionSubscriptions::default(),
            unsubscribe_queue: UnsubscribeQueue::default(),
        })
    }

    fn name(&self) -> &str {
        self.settings.name()
    }

    /// Whether no other server provides items.
    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    /// Lists the items in another source of a registry from now on.
    pub(super) fn move_to(&self, source: ItemSource) {
        source.set_name(self.name());
        self.source.write().move_to(source);
    }

    /// Offers lists of each kind before the upstream declares which it has: a client that opens a session receives the
    /// capabilities only once.
    pub(crate) fn offer_lists(&self) {
        self.source().offer_lists();
    }

    /// The status data of the upstream besides its lists.
    pub(super) fn status_data(&self) -> StatusData {
        self.status_record.snapshot()
    }

    /// The state of one list.
    pub(super) fn list_status(&self, kind: ListKind) -> ListStatus {
        ListStatus {
            kind,
            items: self.store.count(kind),
            failure: self.failures.fault(kind).as_ref().map(fault_message),
        }
    }

    /// The number of tools that a layer withholds until they are approved.
    pub(super) fn withheld_count(&self) -> usize {
        self.withheld.load(Ordering::Relaxed)
    }

    /// The items that are excluded from the lists.
    pub(super) fn excluded(&self) -> Vec<(ListKind, ExcludedItem)> {
        self.excluded_items.all()
    }

    /// The tools that may be called, as far as they are known.
    pub(super) fn tool_index(&self) -> Arc<ToolIndex> {
        Arc::clone(&self.tool_index.read())
    }

    fn set_tool_index(&self, callable: ToolIndex) {
        *self.tool_index.write() = Arc::new(callable);
    }

    fn source(&self) -> RwLockReadGuard<'_, ItemSource> {
        self.source.read()
    }

    /// What answers calls of the listed items, behind the layers of the upstream. `None` if the upstream is gone.
    fn endpoint(&self) -> Option<Arc<dyn Endpoint>> {
        Some(self.settings.chain.wrap(self.endpoint.upgrade()?, self.name()))
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
}
