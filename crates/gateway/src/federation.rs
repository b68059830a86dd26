//! Several servers behind one: each is reached by itself, and none makes the others wait for long.

mod starting;

#[cfg(test)]
pub(crate) use starting::at_once;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use creole::call::{Call, Context};
use creole::chain::{BoxFuture, Middleware, Next};
use creole::proto::fault::Fault;
use creole::proto::model::{CacheHints, ListKind};
use creole::proto::operation::{Operation, Outcome, Page, Payload};
use creole::{ItemSource, Registry, WeakRegistry};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::upstream::{Settings, Upstream, UpstreamStatus};

/// How often the layers around everything are asked whether they let something else be listed.
const LOOK: Duration = Duration::from_secs(2);

/// How long lists wait for upstreams that are slow to start, unless the configuration says otherwise.
pub const LIST_WAIT: Duration = Duration::from_secs(2);

/// How long lists wait while there is nothing at all to show. The hosts that wait the least give a server ten seconds.
pub(crate) const EMPTY_WAIT: Duration = Duration::from_secs(8);

/// The servers behind one.
#[derive(Clone)]
pub struct Federation {
    behind: Arc<OnceLock<Behind>>,
    list_wait: ListWait,
}

/// How long lists wait for upstreams that are slow to start, counted from when these were started.
#[derive(Clone, Copy)]
struct ListWait {
    /// For clients that are told when the rest arrives.
    hearing: Duration,
    /// For clients that cannot be told.
    others: Duration,
}

impl Default for Federation {
    fn default() -> Self {
        Self { behind: Arc::default(), list_wait: ListWait::of(LIST_WAIT) }
    }
}

impl ListWait {
    /// At most so long. A client that hears of the rest waits a moment, because some look at a list only once.
    fn of(others: Duration) -> Self {
        Self { hearing: others / 4, others }
    }

    fn for_client(self, context: &Context) -> Duration {
        let hears = context.caller().rules.unsolicited_changes && context.session_name().is_some();
        if hears { self.hearing } else { self.others }
    }
}

struct Behind {
    registry: WeakRegistry,
    upstreams: Vec<Arc<Upstream>>,
    /// Whether the server in front has something itself.
    has_own: bool,
}

impl Federation {
    /// The layer that has calls wait until the servers behind are there; it belongs outside of all others.
    pub fn layer(&self) -> impl Middleware + use<> {
        Awaken { federation: self.clone() }
    }

    /// The same federation, whose lists wait at most so long for upstreams that are slow to start. A client that is
    /// told when the rest arrives waits a quarter of it.
    #[must_use]
    pub fn with_list_wait(mut self, wait: Duration) -> Self {
        self.list_wait = ListWait::of(wait);
        self
    }

    /// Reaches the servers, in the order in which their items are to be listed. Within a tokio runtime, once.
    pub fn begin(&self, servers: Vec<Settings>, registry: &Registry, has_own: bool) {
        let is_alone = servers.len() == 1 && !has_own;
        self.behind.get_or_init(|| {
            tokio::spawn(look(registry.downgrade(), Arc::downgrade(&self.behind)));
            let start = |settings| Upstream::at(registry.add_source(), settings, is_alone);
            let upstreams: Vec<_> = servers.into_iter().map(start).collect();
            starting::start_in_order(upstreams.iter().map(Arc::downgrade).collect());
            Behind { registry: registry.downgrade(), upstreams, has_own }
        });
    }

    /// Reaches the servers for a successor of this server. Those that are as they were stay, with all their
    /// conversations, and move over when the successor takes the place.
    pub fn succeed(
        &self,
        servers: Vec<Settings>,
        registry: &Registry,
        has_own: bool,
    ) -> Succession {
        let is_alone = servers.len() == 1 && !has_own;
        let (mut upstreams, mut staying) = (Vec::new(), Vec::new());
        for settings in servers {
            // Places are given in the order in which items are to be listed.
            let place = registry.add_source();
            let known = self.upstreams().iter().find(|known| known.is_as(&settings, is_alone));
            upstreams.push(match known {
                Some(known) => {
                    staying.push((Arc::clone(known), place));
                    Arc::clone(known)
                }
                None => Upstream::at(place, settings, is_alone),
            });
        }
        starting::start_in_order(upstreams.iter().map(Arc::downgrade).collect());
        let is_left = |known: &&Arc<Upstream>| !upstreams.iter().any(|it| Arc::ptr_eq(it, known));
        let leaving = self.upstreams().iter().filter(is_left).map(Arc::clone).collect();
        let behind = Behind { registry: registry.downgrade(), upstreams, has_own };
        Succession { behind, staying, leaving }
    }

    /// Ends the conversations with the servers in peace; programs are stopped.
    pub async fn close(&self) {
        close(self.upstreams()).await;
    }

    /// Waits until each upstream was reached or failed, and for none longer than its time to start.
    pub async fn settled(&self) {
        for upstream in self.upstreams() {
            upstream.settled().await;
        }
    }

    /// The state of each upstream, in the order of the configuration.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        self.upstreams().iter().map(|upstream| upstream.status()).collect()
    }

    /// The servers.
    pub fn upstreams(&self) -> &[Arc<Upstream>] {
        self.behind.get().map_or(&[], |behind| &behind.upstreams)
    }

    /// Waits for what the call is about, as far as that is not here yet. Tells why the only server is not there to
    /// whoever opens a conversation.
    async fn prepare(&self, call: &Call) -> Result<(), Fault> {
        let operation = &call.operation;
        let is_known = || self.registry().is_some_and(|registry| registry.has_target(operation));
        match operation {
            Operation::Discover => {
                self.gather(&call.context).await;
                return self.introduce(&call.context).await;
            }
            // A further page may have been begun in another process.
            Operation::List(..) | Operation::Listen(_) => self.gather(&call.context).await,
            // Not all resources are listed, so one that is not may well be that of a server that is there.
            Operation::ReadResource { .. } | Operation::Subscribe { .. } if !is_known() => {
                self.gather(&call.context).await;
            }
            Operation::CallTool { .. } | Operation::GetPrompt { .. } | Operation::Complete(_) => {
                let mut waiting = self.waiting(&call.context);
                while !is_known() && waiting.join_next().await.is_some() {}
            }
            // Tasks and skills are here, or nowhere.
            _ => {}
        }
        Ok(())
    }

    /// Waits until every server was reached or could not be, but not long: what those that are slow to start list is
    /// announced when it comes. Where nothing is there at all, something is worth a longer wait.
    async fn gather(&self, context: &Context) {
        let since = |upstream: &Arc<Upstream>| upstream.awake_since();
        let mut waiting = self.waiting(context);
        let starting = self.upstreams().iter().filter(|upstream| upstream.is_starting());
        let last = starting.filter_map(since).max().unwrap_or_else(Instant::now);
        let wait = self.list_wait.for_client(context);
        let (grace, longest) = (sleep_until(last + wait), sleep_until(last + wait.max(EMPTY_WAIT)));
        tokio::pin!(grace, longest);
        loop {
            tokio::select! {
                tried = waiting.join_next() => if tried.is_none() { break },
                () = &mut grace, if self.has_something() => break,
                // The only upstream is waited for as long as it may take to start.
                () = &mut longest, if !self.is_alone() => break,
            }
        }
        self.absent().for_each(|upstream| upstream.miss());
    }

    /// Lets a conversation be opened, unless there is nothing behind it.
    async fn introduce(&self, context: &Context) -> Result<(), Fault> {
        match self.upstreams() {
            [only] if only.is_alone() => only.ready(context).await,
            _ => {
                self.absent().for_each(|upstream| upstream.offer_lists());
                Ok(())
            }
        }
    }

    /// Those that may still be reached for the first time; each ends when it was tried or has no time left.
    fn waiting(&self, context: &Context) -> JoinSet<()> {
        let mut waiting = JoinSet::new();
        for upstream in self.upstreams().iter().filter(|upstream| upstream.is_starting()) {
            let (upstream, context) = (Arc::clone(upstream), context.clone());
            // Whether it was reached is seen by its status.
            waiting.spawn(async move { _ = upstream.ready(&context).await });
        }
        waiting
    }

    fn absent(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.upstreams().iter().filter(|upstream| !upstream.is_ready())
    }

    /// Whether there is something to show.
    fn has_something(&self) -> bool {
        let has_own = self.behind.get().is_some_and(|behind| behind.has_own);
        has_own || self.upstreams().iter().any(|upstream| upstream.is_ready())
    }

    fn registry(&self) -> Option<Registry> {
        self.behind.get()?.registry.upgrade()
    }

    /// Has lists fetched again that became too old, and which nobody would tell us of.
    async fn refresh(&self, kind: ListKind, context: &Context) {
        let mut fetching = JoinSet::new();
        // Who has a list of its own does not see the shared one.
        let is_seen = |it: &&Arc<Upstream>| it.is_stale(kind) && it.shares_lists(context);
        for upstream in self.upstreams().iter().filter(is_seen) {
            let upstream = Arc::clone(upstream);
            fetching.spawn(async move { upstream.refresh(kind).await });
        }
        fetching.join_all().await;
    }

    /// Says how long a list may be kept: as long as each that it is made of. What is behind may be another caller's, so
    /// it is for this caller alone.
    fn date(&self, page: &mut Page) {
        let left = self.upstreams().iter().filter_map(|upstream| upstream.left(page.kind)).min();
        let left = match self.absent().next() {
            None => left,
            Some(_) => Some(Duration::ZERO),
        };
        let Some(left) = left.and_then(|left| u64::try_from(left.as_millis()).ok()) else { return };
        let has_own = self.behind.get().is_some_and(|behind| behind.has_own);
        let ttl_ms = if has_own { left.min(page.cache.ttl_ms) } else { left };
        page.cache = CacheHints { ttl_ms, public: false };
    }

    /// Whether there is one upstream and nothing else.
    fn is_alone(&self) -> bool {
        matches!(self.upstreams(), [only] if only.is_alone())
    }

    /// Why the only server has never shown this list, if it was asked. Where there are others, theirs are shown.
    fn failed_list(&self, kind: ListKind) -> Option<Fault> {
        match self.upstreams() {
            [only] if only.is_alone() => only.failed_list(kind),
            _ => None,
        }
    }

    /// Looks what the servers list for this caller, where nobody has yet.
    async fn look_for(&self, kind: ListKind, context: &Context) {
        let mut looking = JoinSet::new();
        for upstream in self.upstreams().iter().filter(|it| it.is_unseen(kind, context)) {
            let (upstream, context) = (Arc::clone(upstream), context.clone());
            looking.spawn(async move { upstream.look_for(kind, &context).await });
        }
        looking.join_all().await;
    }
}

/// Asks the layers around everything whether they let something else be listed, while somebody needs the servers.
async fn look(registry: WeakRegistry, needed: Weak<OnceLock<Behind>>) {
    while needed.strong_count() > 0 {
        sleep(LOOK).await;
        let Some(registry) = registry.upgrade() else { return };
        // One that broke down is asked again.
        _ = tokio::task::spawn_blocking(move || registry.reapply_layers_if_changed()).await;
    }
}

/// The servers behind a successor, before it has taken the place.
pub struct Succession {
    behind: Behind,
    staying: Vec<(Arc<Upstream>, ItemSource)>,
    leaving: Vec<Arc<Upstream>>,
}

impl Succession {
    /// Waits until every server was reached or could not be.
    pub async fn ready(&self) {
        let mut waiting = JoinSet::new();
        for upstream in &self.behind.upstreams {
            let upstream = Arc::clone(upstream);
            waiting.spawn(async move { upstream.tried().await });
        }
        waiting.join_all().await;
    }

    /// Moves those that stay, just before the successor takes the place, and makes the federation that of the
    /// successor. Those that are no longer needed are to be [closed](Leaving::close) when the last call has ended.
    pub fn settle(self, federation: &Federation) -> Leaving {
        for (upstream, place) in self.staying {
            upstream.move_to(place);
        }
        let registry = self.behind.registry.clone();
        tokio::spawn(look(registry, Arc::downgrade(&federation.behind)));
        federation.behind.get_or_init(|| self.behind);
        // Clients do not look again by themselves.
        federation.absent().for_each(|upstream| upstream.miss());
        Leaving(self.leaving)
    }
}

/// Servers that are no longer behind.
pub struct Leaving(Vec<Arc<Upstream>>);

impl Leaving {
    /// Ends the conversations with them in peace.
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

struct Awaken {
    federation: Federation,
}

impl Middleware for Awaken {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if self.federation.upstreams().iter().all(|upstream| upstream.is_ready()) {
            return self.pass(call, next);
        }
        // Those that wait for their only caller have it now, whatever it wants.
        self.federation.absent().for_each(|upstream| upstream.awaken(&call.context));
        Box::pin(async move {
            match self.federation.prepare(&call).await {
                Ok(()) => self.pass(call, next).await,
                Err(fault) => fault.into(),
            }
        })
    }
}

impl Awaken {
    /// Passes a call on when the servers behind are there. Most calls wait for nothing here.
    fn pass<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let federation = &self.federation;
        match call.operation {
            Operation::List(kind, ref cursor) => {
                // Further pages belong to the list that the first one came from.
                let is_first = cursor.is_none();
                Box::pin(async move {
                    if is_first {
                        federation.refresh(kind, &call.context).await;
                        federation.look_for(kind, &call.context).await;
                    }
                    let mut outcome = next.call(call).await;
                    if let Outcome::Complete(Payload::Page(page)) = &mut outcome {
                        if let Some(fault) = federation.failed_list(kind) {
                            return fault.for_caller().into();
                        }
                        federation.date(page);
                    }
                    outcome
                })
            }
            _ => next.call(call),
        }
    }
}
