//! Keeps a server's lists current: fetched when it is reached, again when it says so, and again after a loss.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::RemoteServer;
use creole::chain::Endpoint;
use creole::client::{Address, Connection};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{Definition, ExcludedItem, ListKind};
use creole::proto::operation::{Change, Operation};
use creole::proto::revision::{Era, TaskModel};
use tokio::time::{Instant, sleep, timeout};

use super::Upstream;
use super::catalogue::{self, Callable, LISTS};
use super::follow::{Ears, follow};
use super::left_out::Reason;
use super::own_session::Asker;

/// How long to wait before a server that could not be reached is tried again, at the least.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// How many attempts lie between two log messages about an upstream that cannot be reached for a long time.
const LOG_EACH: u32 = 300;

/// How long whoever asks for a list waits for it to be fetched again.
pub(super) const REFRESH: Duration = Duration::from_secs(2);

/// Whether a server was reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Status {
    /// Not yet.
    #[default]
    Starting,
    /// It was, and its lists are here.
    Ready,
    /// It could not be, for this reason; its lists are those of the last time.
    Failed(Fault),
}

/// Runs until the server is no longer one of ours.
pub(super) async fn keep(upstream: Weak<Upstream>) {
    let mut attempts: u32 = 0;
    loop {
        let Some(strong) = upstream.upgrade() else { return };
        strong.awakened().await;
        match strong.load().await {
            Ok((connection, ears)) => {
                attempts = 0;
                drop(strong);
                follow(&upstream, connection, ears).await;
            }
            Err(fault) => {
                attempts = attempts.saturating_add(1);
                strong.fail(fault, attempts);
            }
        }
        sleep(PAUSE).await;
    }
}

impl Upstream {
    /// Reaches the server and fetches all that it lists. What it tells meanwhile is not missed.
    async fn load(self: &Arc<Self>) -> Result<(Connection, Ears), Fault> {
        let connection = self.main().await?;
        let greeting = Arc::clone(connection.greeting());
        let mut capabilities = greeting.server_info.capabilities;
        let (ears, is_heard) = Ears::of(&connection);
        // Whether the lists can change is our own business: they are looked at again.
        capabilities.list_changed = true;
        self.source().set_server(RemoteServer {
            capabilities,
            identity: self.settings.transparent.then(|| Arc::clone(&greeting.server_info.identity)),
            instructions: self.instructions(&greeting.server_info.instructions),
            endpoint: self.endpoint(),
            sessions: Some(Arc::clone(self) as _),
        });
        self.facts.set_greeting(&greeting);
        self.fill_all(&connection).await?;
        let is_heard = self.watching.restore(&connection).await && is_heard;
        self.set_told(&connection, is_heard);
        let before = self.status.send_replace(Status::Ready);
        if self.was_missed() || before != Status::Starting {
            // Lists may have changed while nobody looked, or somebody looked too early.
            self.announce_everything();
        }
        Ok((connection, ears))
    }

    /// Fetches every list that the server declares. Each fails by itself: only the end of the session ends this.
    async fn fill_all(self: &Arc<Self>, connection: &Connection) -> Result<(), Fault> {
        self.failures.clear_all();
        let declared = connection.greeting().server_info.capabilities;
        let wait = self.settings.startup / 3;
        for (kind, is_declared) in LISTS {
            if !is_declared(&declared) {
                continue;
            }
            let filled = timeout(wait, self.fill(connection, kind)).await.unwrap_or_else(|_| {
                let method = Operation::List(kind, None).method();
                let detail = format!("`{method}` was not answered within {} s", wait.as_secs());
                Err(Fault::new(FaultKind::BackendUnavailable, detail).with_subject(self.name()))
            });
            if let Err(fault) = filled {
                if let Some(closed) = connection.close_reason() {
                    return Err(closed.fault);
                }
                self.fail_list(kind, &fault);
            }
        }
        Ok(())
    }

    /// Notes that the server could not be reached. One that stays away is logged less and less often.
    fn fail(&self, fault: Fault, attempts: u32) {
        if attempts.is_power_of_two() || attempts.is_multiple_of(LOG_EACH) {
            let (upstream, reason) = (self.name(), self.located(&fault.detail));
            tracing::warn!(target: "creole", upstream, reason, attempts, "not reached");
        }
        self.facts.set_error(&fault);
        self.status.send_replace(Status::Failed(fault));
    }

    /// Notes that a list could not be fetched. It is fetched again with backoff.
    pub(super) fn fail_list(&self, kind: ListKind, fault: &Fault) {
        self.fresh.note_failed(kind);
        self.facts.set_error(fault);
        if let Some(attempts) = self.failures.record(kind, fault) {
            let (upstream, list, reason) = (self.name(), kind.member(), &*fault.detail);
            tracing::warn!(target: "creole", upstream, list, reason, attempts, "list not fetched");
        }
    }

    /// Why a list was never fetched, if that failed.
    pub(crate) fn failed_list(&self, kind: ListKind) -> Option<Fault> {
        let fault = self.failures.fault(kind).filter(|_| !self.views.was_fetched(kind))?;
        Some(Fault { trace: None, ..fault })
    }

    /// Fetches the failed lists whose wait is over.
    pub(super) async fn retry_failed(self: &Arc<Self>, connection: &Connection) {
        for kind in self.failures.due() {
            self.reload_one(connection, kind, false).await;
        }
    }

    /// Fetches a list again; if that fails, the old one stands. Everybody is told of what changed, or was said to.
    pub(super) async fn reload(
        self: &Arc<Self>,
        connection: &Connection,
        kind: ListKind,
        is_told: bool,
    ) {
        let kinds: &[ListKind] = match kind {
            ListKind::Resources | ListKind::Templates => {
                &[ListKind::Resources, ListKind::Templates]
            }
            other => &[other],
        };
        for kind in kinds {
            self.reload_one(connection, *kind, is_told).await;
        }
    }

    async fn reload_one(self: &Arc<Self>, connection: &Connection, kind: ListKind, is_told: bool) {
        let changed = self.fill(connection, kind).await.unwrap_or_else(|fault| {
            self.fail_list(kind, &fault);
            false
        });
        if changed || is_told {
            self.announce(Change::List(kind));
        }
    }

    pub(super) fn stale(&self, fault: &Fault) -> bool {
        let reason = &*fault.detail;
        tracing::warn!(target: "creole", upstream = self.name(), reason, "a list was not fetched again");
        false
    }

    /// Whether a list has become too old, and nobody would tell us if it changed.
    pub(crate) fn is_stale(&self, kind: ListKind) -> bool {
        !self.is_told.load(Ordering::Acquire) && self.fresh.is_stale(kind)
    }

    /// How long a list may be kept from now on, if the server has it and was reached.
    pub(crate) fn left(&self, kind: ListKind) -> Option<Duration> {
        if self.failures.fault(kind).is_some() {
            return Some(Duration::ZERO);
        }
        self.fresh.left(kind, self.is_told.load(Ordering::Acquire))
    }

    /// Fetches a list again that has become too old; whoever asks for it waits for that, but not long.
    pub(crate) async fn refresh(self: &Arc<Self>, kind: ListKind) {
        let again = async {
            let _alone = self.refreshing.lock().await;
            if self.is_stale(kind) {
                let connection = self.main().await?;
                self.reload(&connection, kind, false).await;
            }
            Ok::<_, Fault>(())
        };
        // The old list is better than none, and nobody waits for another one right away.
        if !matches!(timeout(REFRESH, again).await, Ok(Ok(()))) {
            self.fresh.note_failed(kind);
        }
    }

    /// Fetches the tools again, because the headers of a call were wrong by what was known of them; tells whether
    /// they are known anew, thanks to this call or another one.
    pub(super) async fn learn_again(&self, known: &Arc<Callable>) -> bool {
        let Some(this) = self.this.upgrade() else { return false };
        let again = async {
            let _alone = self.refreshing.lock().await;
            if !Arc::ptr_eq(known, &self.callable()) {
                return true;
            }
            let Ok(connection) = self.main().await else { return false };
            let changed = this.fill(&connection, ListKind::Tools).await;
            if matches!(changed, Ok(true)) {
                self.announce(Change::List(ListKind::Tools));
            }
            changed.map_or_else(|fault| self.stale(&fault), |_| true)
        };
        timeout(self.settings.startup, again).await.unwrap_or(false)
    }

    /// Fetches a list; tells whether it is another than before.
    async fn fill(
        self: &Arc<Self>,
        connection: &Connection,
        kind: ListKind,
    ) -> Result<bool, Fault> {
        let began = Instant::now();
        let listed = match catalogue::fetch(&mut Asker::gateway(connection), kind).await {
            // Many servers have resources and know nothing of templates.
            Err(fault) if kind == ListKind::Templates && is_unknown(&fault) => {
                self.failures.clear(kind);
                return Ok(false);
            }
            listed => listed?,
        };
        self.facts.set_latency(began.elapsed());
        self.failures.clear(kind);
        self.left_out.say(self.name(), kind, Reason::Definition, listed.excluded);
        let changed = self.fresh.note(kind, &listed.items, listed.cache);
        let decides = connection.greeting().rules.tasks == TaskModel::Extension
            && connection.greeting().server_info.capabilities.tasks;
        self.decides.store(decides, Ordering::Release);
        self.views.set_shared(kind, self.usable(kind, listed.items, connection));
        self.publish(kind);
        Ok(changed)
    }

    /// Notes what has to be known to call the tools of the shared list and of session lists.
    pub(super) fn learn_callable(&self, kind: ListKind) {
        if kind == ListKind::Tools {
            self.set_callable(Callable::of(&self.views.all(kind)));
        }
    }

    /// Lists what the server has for all who share its lists.
    pub(super) fn publish(self: &Arc<Self>, kind: ListKind) {
        self.learn_callable(kind);
        let (naming, endpoint) = (&self.settings.naming, self.endpoint());
        let chain = &self.settings.chain;
        chain.anew(kind);
        let items = self.views.shared(kind);
        let (mut shaped, mut withheld) = (Vec::with_capacity(items.len()), BTreeMap::new());
        for item in items {
            match chain.shape(kind, Arc::clone(&item)) {
                Some(item) => shaped.push(item),
                None => withheld.extend(self.withheld(kind, item)),
            }
        }
        // Before anybody sees them.
        chain.settle();
        if kind == ListKind::Tools {
            self.source().set_withheld(withheld);
        }
        let decides = self.decides.load(Ordering::Acquire);
        let (remotes, mut left_out) = catalogue::remotes(kind, &shaped, naming, &endpoint, decides);
        let taken = self.source().set_items(kind, remotes).into_iter();
        left_out.extend(taken.map(|it| ExcludedItem { reason: it.to_string(), name: it.name }));
        self.left_out.say(self.name(), kind, Reason::Name, left_out);
    }

    /// An item that a layer withholds, by the name that it would have here, and what its callers are told.
    fn withheld(&self, kind: ListKind, item: Arc<Definition>) -> Option<(String, Fault)> {
        let here = self.settings.naming.here(item.name()).ok()?;
        Some((here, self.settings.chain.withholds(kind, item)?))
    }

    /// Leaves out the tools that a client over HTTP has to refuse, because their schema names headers wrongly
    /// (2026-07-28 basic/transports/streamable-http, schema extension).
    pub(super) fn usable(
        &self,
        kind: ListKind,
        mut items: Vec<Arc<Definition>>,
        connection: &Connection,
    ) -> Vec<Arc<Definition>> {
        let refuses = matches!(self.settings.way, Address::Http(_))
            && connection.greeting().rules.era == Era::Stateless;
        if kind == ListKind::Tools && refuses {
            let mut left_out = Vec::new();
            items.retain(|tool| {
                let mirrors = tool.mirrored_headers();
                let why = mirrors.as_ref().err().map(ToString::to_string);
                let name = tool.name().to_owned();
                left_out.extend(why.map(|reason| ExcludedItem { name, reason }));
                mirrors.is_ok()
            });
            self.left_out.say(self.name(), kind, Reason::Headers, left_out);
        }
        items
    }

    /// Notes that the conversation is over.
    pub(super) fn lose(&self, fault: &Fault, session_only: bool) {
        if !session_only && !self.pool.is_closed() {
            let reason = self.located(&fault.detail);
            tracing::warn!(target: "creole", upstream = self.name(), reason, "lost");
            self.facts.set_error(fault);
        }
    }

    pub(super) fn endpoint(self: &Arc<Self>) -> Arc<dyn Endpoint> {
        self.settings.chain.around(Arc::clone(self) as _)
    }

    /// Tells of everything that may have changed while nobody was told.
    pub(super) fn announce_everything(&self) {
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            self.announce(Change::List(kind));
        }
        self.watching.all().into_iter().for_each(|uri| self.announce(Change::Resource(uri)));
    }
}

/// Whether a server says that it has no such list.
fn is_unknown(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::MethodNotFound)
}
