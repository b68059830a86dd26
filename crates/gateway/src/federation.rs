//! A federation of upstreams. Each upstream starts on its own, and a slow one delays the others only for a short time.

mod start_order;

#[cfg(test)]
pub(crate) use start_order::max_concurrent_starts;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use creole::internal::registry::ItemSource;
use creole::proto::fault::Fault;
use creole::proto::model::{CacheHints, ListKind};
use creole::proto::operation::{Operation, Outcome, Page, Payload};
use creole::{BoxFuture, Call, Context, Middleware, Next, Registry, WeakRegistry};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::upstream::{Upstream, UpstreamSettings, UpstreamStatus};

/// How often the outermost layers are checked for changed definitions.
const CHAIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The default time that lists wait for upstreams that are slow to start.
pub const LIST_WAIT: Duration = Duration::from_secs(2);

/// How long lists wait while there is no item at all. The least patient hosts give a server ten seconds.
pub(crate) const EMPTY_WAIT: Duration = Duration::from_secs(8);

/// The upstreams of one gateway.
#[derive(Clone)]
pub struct Federation {
    members: Arc<OnceLock<FederationMembers>>,
    list_wait: ListWait,
    /// Whether a client may open a session although the only upstream has failed for this reason.
    opens_despite: Arc<OpensDespite>,
}

type OpensDespite = dyn Fn(&Fault, &Context) -> bool + Send + Sync;

/// How long lists wait for upstreams that are slow to start, counted from their start.
#[derive(Clone, Copy)]
struct ListWait {
    /// For clients that receive a notification when the other lists arrive.
    notified_clients: Duration,
    /// For clients that receive no notifications.
    other_clients: Duration,
}

impl Default for Federation {
    fn default() -> Self {
        Self {
            members: Arc::default(),
            list_wait: ListWait::of(LIST_WAIT),
            opens_despite: Arc::new(|_, _| false),
        }
    }
}

impl ListWait {
    /// At most this long. A client that receives notifications waits too, since some clients fetch a list only once.
    fn of(others: Duration) -> Self {
        Self { notified_clients: others / 4, other_clients: others }
    }

    fn for_client(self, context: &Context) -> Duration {
        let is_listening =
            context.caller().rules.unsolicited_changes && context.session_name().is_some();
        if is_listening { self.notified_clients } else { self.other_clients }
    }
}

struct FederationMembers {
    registry: WeakRegistry,
    upstreams: Vec<Arc<Upstream>>,
    /// Whether the gateway has its own items.
    has_own_items: bool,
}

impl Federation {
    /// The layer that delays calls until their upstreams are ready. It belongs outside of all other layers.
    pub fn layer(&self) -> impl Middleware + use<> {
        StartupLayer { federation: self.clone() }
    }

    /// Sets how long lists wait at most for upstreams that are slow to start. A client that receives a notification
    /// when the other lists arrive waits a quarter of it.
    #[must_use]
    pub fn with_list_wait(mut self, wait: Duration) -> Self {
        self.list_wait = ListWait::of(wait);
        self
    }

    /// Lets a client open a session although the only upstream has failed, if this function allows it for the reason
    /// and the client. Lists of each kind are then offered, and their requests fail until the upstream is ready.
    #[must_use]
    pub fn opening_despite(
        mut self,
        is_allowed: impl Fn(&Fault, &Context) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.opens_despite = Arc::new(is_allowed);
        self
    }

    /// Starts the upstreams, in the order in which their items are listed. Called once, within a tokio runtime.
    pub fn start_upstreams(
        &self,
        servers: Vec<UpstreamSettings>,
        registry: &Registry,
        has_own: bool,
    ) {
        let is_alone = servers.len() == 1 && !has_own;
        self.members.get_or_init(|| {
            tokio::spawn(watch_chain_changes(registry.downgrade(), Arc::downgrade(&self.members)));
            let start = |settings| Upstream::new(registry.add_source(), settings, is_alone);
            let upstreams: Vec<_> = servers.into_iter().map(start).collect();
            upstreams.iter().for_each(Upstream::start_metrics);
            start_order::start_in_order(upstreams.iter().map(Arc::downgrade).collect());
            FederationMembers { registry: registry.downgrade(), upstreams, has_own_items: has_own }
        });
    }

    /// Prepares the upstreams of a replacement of this server. Unchanged upstreams keep all their connections and move
    /// over at the swap.
    pub fn prepare_replacement(
        &self,
        servers: Vec<UpstreamSettings>,
        registry: &Registry,
        has_own: bool,
    ) -> FederationReplacement {
        let is_alone = servers.len() == 1 && !has_own;
        let (mut upstreams, mut staying) = (Vec::new(), Vec::new());
        for settings in servers {
            // Sources are added in the order in which items are listed.
            let source = registry.add_source();
            let known =
                self.upstreams().iter().find(|known| known.is_equivalent(&settings, is_alone));
            upstreams.push(match known {
                Some(known) => {
                    staying.push((Arc::clone(known), source));
                    Arc::clone(known)
                }
                None => Upstream::new(source, settings, is_alone),
            });
        }
        start_order::start_in_order(upstreams.iter().map(Arc::downgrade).collect());
        let is_left =
            |known: &&Arc<Upstream>| !upstreams.iter().any(|upstream| Arc::ptr_eq(upstream, known));
        let leaving = self.upstreams().iter().filter(is_left).map(Arc::clone).collect();
        let members =
            FederationMembers { registry: registry.downgrade(), upstreams, has_own_items: has_own };
        FederationReplacement { members, retained: staying, removed: leaving }
    }

    /// Closes all connections to the upstreams gracefully and stops their programs.
    pub async fn close(&self) {
        close(self.upstreams()).await;
    }

    /// Waits until each upstream is ready or has failed, at most for its startup timeout.
    pub async fn wait_until_settled(&self) {
        for upstream in self.upstreams() {
            upstream.startup().wait_until_settled().await;
        }
    }

    /// The state of each upstream, in the order of the configuration.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        self.upstreams().iter().map(|upstream| upstream.status()).collect()
    }

    /// The upstreams.
    pub fn upstreams(&self) -> &[Arc<Upstream>] {
        self.members.get().map_or(&[], |members| &members.upstreams)
    }

    /// Waits for the upstream that the call needs, if it is not ready yet. When a client opens a session and the only
    /// upstream has failed, returns its fault.
    async fn wait_for_call(&self, call: &Call) -> Result<(), Fault> {
        let operation = &call.operation;
        let is_known = || self.registry().is_some_and(|registry| registry.has_target(operation));
        match operation {
            Operation::Discover => {
                self.wait_for_all(&call.context).await;
                return self.check_only_upstream(&call.context).await;
            }
            // Another replica may have served the first page.
            Operation::List(..) | Operation::Listen(_) => self.wait_for_all(&call.context).await,
            // Not all resources are listed. One that is not listed may belong to any upstream that is ready.
            Operation::ReadResource { .. } | Operation::Subscribe { .. } if !is_known() => {
                self.wait_for_all(&call.context).await;
            }
            Operation::CallTool { .. } | Operation::GetPrompt { .. } | Operation::Complete(_) => {
                let mut waiting = self.spawn_startup_waits(&call.context);
                while !is_known() && waiting.join_next().await.is_some() {}
            }
            // Tasks and skills need no wait: they exist here already, or not at all.
            _ => {}
        }
        Ok(())
    }

    /// Waits until every upstream is ready or has failed, but only for a short time: the lists of slow upstreams are
    /// announced later. While there is no item at all, the wait is longer.
    async fn wait_for_all(&self, context: &Context) {
        let since = |upstream: &Arc<Upstream>| upstream.startup().since();
        let mut waiting = self.spawn_startup_waits(context);
        let starting = self.upstreams().iter().filter(|upstream| upstream.startup().is_starting());
        let last = starting.filter_map(since).max().unwrap_or_else(Instant::now);
        let wait = self.list_wait.for_client(context);
        let (grace, longest) = (sleep_until(last + wait), sleep_until(last + wait.max(EMPTY_WAIT)));
        tokio::pin!(grace, longest);
        loop {
            tokio::select! {
                tried = waiting.join_next() => if tried.is_none() { break },
                () = &mut grace, if self.has_items() => break,
                // The only upstream is waited for until its startup timeout.
                () = &mut longest, if !self.is_single_upstream() => break,
            }
        }
        self.starting_upstreams().for_each(|upstream| upstream.startup().mark_missed());
    }

    /// Refuses to open a session if the only upstream has failed.
    async fn check_only_upstream(&self, context: &Context) -> Result<(), Fault> {
        match self.upstreams() {
            [only] if only.lists().is_single() => match only.wait_until_ready(context).await {
                Err(fault) if (self.opens_despite)(&fault, context) => {
                    only.lists().offer_lists();
                    Ok(())
                }
                checked => checked,
            },
            _ => {
                self.starting_upstreams().for_each(|upstream| upstream.lists().offer_lists());
                Ok(())
            }
        }
    }

    /// One wait per upstream that is still starting. Each ends when the upstream is ready, has failed or has timed out.
    fn spawn_startup_waits(&self, context: &Context) -> JoinSet<()> {
        let mut waiting = JoinSet::new();
        for upstream in self.upstreams().iter().filter(|upstream| upstream.startup().is_starting())
        {
            let (upstream, context) = (Arc::clone(upstream), context.clone());
            // Its status records the result.
            waiting.spawn(async move { _ = upstream.wait_until_ready(&context).await });
        }
        waiting
    }

    fn starting_upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.upstreams().iter().filter(|upstream| !upstream.is_ready())
    }

    /// Whether there is any item to list.
    fn has_items(&self) -> bool {
        let has_own = self.members.get().is_some_and(|members| members.has_own_items);
        has_own || self.upstreams().iter().any(|upstream| upstream.is_ready())
    }

    fn registry(&self) -> Option<Registry> {
        self.members.get()?.registry.upgrade()
    }

    /// Fetches lists that are stale and whose changes the upstream does not announce.
    async fn refresh_stale_lists(&self, kind: ListKind, context: &Context) {
        let mut fetching = JoinSet::new();
        // A caller with a session list does not see the shared one.
        let is_seen = |it: &&Arc<Upstream>| {
            it.lists().is_list_stale(kind) && it.lists().shares_lists(context)
        };
        for upstream in self.upstreams().iter().filter(is_seen) {
            let lists = Arc::clone(upstream.lists());
            fetching.spawn(async move { lists.refresh_list(kind).await });
        }
        fetching.join_all().await;
    }

    /// Sets the cache hints of a list: the shortest time to live of its parts. The scope is private, since the lists
    /// may depend on the caller.
    fn set_cache_hints(&self, page: &mut Page) {
        let remaining = self
            .upstreams()
            .iter()
            .filter_map(|upstream| upstream.lists().list_ttl(page.kind))
            .min();
        let remaining = match self.starting_upstreams().next() {
            None => remaining,
            Some(_) => Some(Duration::ZERO),
        };
        let Some(remaining) =
            remaining.and_then(|remaining| u64::try_from(remaining.as_millis()).ok())
        else {
            return;
        };
        let has_own = self.members.get().is_some_and(|members| members.has_own_items);
        let ttl_ms = if has_own { remaining.min(page.cache.ttl_ms) } else { remaining };
        page.cache = CacheHints { ttl_ms, public: false };
    }

    /// Whether there is one upstream and nothing else.
    fn is_single_upstream(&self) -> bool {
        matches!(self.upstreams(), [only] if only.lists().is_single())
    }

    /// Why the first fetch of this list from the only upstream failed. With several upstreams the lists of the others
    /// are returned.
    fn only_upstream_list_failure(&self, kind: ListKind) -> Option<Fault> {
        match self.upstreams() {
            [only] if only.lists().is_single() => only.lists().list_failure(kind),
            _ => None,
        }
    }

    /// Fetches the session lists of this caller that were not fetched yet.
    async fn fetch_session_lists(&self, kind: ListKind, context: &Context) {
        let mut looking = JoinSet::new();
        let lists = self.upstreams().iter().map(|upstream| upstream.lists());
        for lists in lists.filter(|upstream_lists| upstream_lists.needs_list_fetch(kind, context)) {
            let (lists, context) = (Arc::clone(lists), context.clone());
            looking.spawn(async move { lists.fetch_list_for(kind, &context).await });
        }
        looking.join_all().await;
    }
}

/// Polls the outermost layers for changed definitions while the federation exists.
async fn watch_chain_changes(registry: WeakRegistry, needed: Weak<OnceLock<FederationMembers>>) {
    while needed.strong_count() > 0 {
        sleep(CHAIN_CHECK_INTERVAL).await;
        let Some(registry) = registry.upgrade() else { return };
        // A layer that panicked is called again.
        _ = tokio::task::spawn_blocking(move || registry.reapply_layers_if_changed()).await;
    }
}

/// The upstreams of a replacement, before the swap.
pub struct FederationReplacement {
    members: FederationMembers,
    retained: Vec<(Arc<Upstream>, ItemSource)>,
    removed: Vec<Arc<Upstream>>,
}

impl FederationReplacement {
    /// Waits until every upstream is ready or has failed.
    pub async fn wait_until_ready(&self) {
        let mut waiting = JoinSet::new();
        for upstream in &self.members.upstreams {
            let upstream = Arc::clone(upstream);
            waiting.spawn(async move { upstream.startup().wait_until_tried().await });
        }
        waiting.join_all().await;
    }

    /// Moves the retained upstreams and puts the new members into the federation, just before the swap of the server.
    /// The removed upstreams must be [closed](RemovedUpstreams::close) when the last call has ended.
    pub fn swap(self, federation: &Federation) -> RemovedUpstreams {
        for (upstream, source) in self.retained {
            upstream.move_to(source);
        }
        // One of several upstreams with the same name reports its state.
        self.removed.iter().for_each(|upstream| upstream.stop_metrics());
        self.members.upstreams.iter().for_each(Upstream::start_metrics);
        let registry = self.members.registry.clone();
        tokio::spawn(watch_chain_changes(registry, Arc::downgrade(&federation.members)));
        federation.members.get_or_init(|| self.members);
        // Clients do not fetch lists again by themselves.
        federation.starting_upstreams().for_each(|upstream| upstream.startup().mark_missed());
        RemovedUpstreams(self.removed)
    }
}

/// Upstreams that are no longer in the federation.
pub struct RemovedUpstreams(Vec<Arc<Upstream>>);

impl RemovedUpstreams {
    /// Closes their connections gracefully.
    pub async fn close(self) {
        close(&self.0).await;
    }
}

async fn close(upstreams: &[Arc<Upstream>]) {
    let mut closing = JoinSet::new();
    for upstream in upstreams {
        let upstream = Arc::clone(upstream);
        closing.spawn(async move { upstream.close().await });
    }
    closing.join_all().await;
}

struct StartupLayer {
    federation: Federation,
}

impl Middleware for StartupLayer {
    fn is_internal(&self) -> bool {
        true
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if self.federation.upstreams().iter().all(|upstream| upstream.is_ready()) {
            return self.forward_when_ready(call, next);
        }
        // An upstream that waits for its only caller starts at its first call, whatever the operation.
        self.federation
            .starting_upstreams()
            .for_each(|upstream| upstream.start_for_caller(&call.context));
        Box::pin(async move {
            match self.federation.wait_for_call(&call).await {
                Ok(()) => self.forward_when_ready(call, next).await,
                Err(fault) => fault.into(),
            }
        })
    }
}

impl StartupLayer {
    /// Forwards a call when its upstream is ready. Most calls wait for nothing here.
    fn forward_when_ready<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let federation = &self.federation;
        match call.operation {
            Operation::List(kind, ref cursor) => {
                // Further pages belong to the same list as the first one.
                let is_first = cursor.is_none();
                Box::pin(async move {
                    if is_first {
                        federation.refresh_stale_lists(kind, &call.context).await;
                        federation.fetch_session_lists(kind, &call.context).await;
                    }
                    let mut outcome = next.start(call).await;
                    if let Outcome::Complete(Payload::Page(page)) = &mut outcome {
                        if let Some(fault) = federation.only_upstream_list_failure(kind) {
                            return fault.for_caller().into();
                        }
                        federation.set_cache_hints(page);
                    }
                    outcome
                })
            }
            _ => next.start(call),
        }
    }
}
