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

use crate::upstream::Upstream;
use crate::upstream::lists::caller_session::ListFetcher;
use crate::upstream::lists::excluded_items::ExclusionReason;
use crate::upstream::lists::list_fetch;
use crate::upstream::lists::list_fetch::{LISTS, ToolIndex};
use crate::upstream::lists::notifications::{NotificationSources, follow_notifications};

/// How long to wait before a server that could not be reached is tried again, at the least.
pub(crate) const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// How many attempts lie between two log messages about an upstream that cannot be reached for a long time.
const LOG_EVERY_ATTEMPTS: u32 = 300;

/// How long whoever asks for a list waits for it to be fetched again.
pub(crate) const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether a server was reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum StartupStatus {
    /// Not yet.
    #[default]
    Starting,
    /// It was, and its lists are here.
    Ready,
    /// It could not be, for this reason; its lists are those of the last time.
    Failed(Fault),
}

/// Runs until the server is no longer one of ours.
pub(crate) async fn run_list_sync(upstream: Weak<Upstream>) {
    let mut attempts: u32 = 0;
    loop {
        let Some(strong) = upstream.upgrade() else { return };
        strong.wait_for_start().await;
        match strong.connect_and_fetch().await {
            Ok((connection, ears)) => {
                attempts = 0;
                drop(strong);
                follow_notifications(&upstream, connection, ears).await;
            }
            Err(fault) => {
                attempts = attempts.saturating_add(1);
                strong.record_unreachable(fault, attempts);
            }
        }
        sleep(RECONNECT_PAUSE).await;
    }
}

impl Upstream {
    /// Reaches the server and fetches all that it lists. What it tells meanwhile is not missed.
    async fn connect_and_fetch(
        self: &Arc<Self>,
    ) -> Result<(Connection, NotificationSources), Fault> {
        let connection = self.gateway_connection().await?;
        let greeting = Arc::clone(connection.greeting());
        let mut capabilities = greeting.server_info.capabilities;
        let (ears, is_heard) = NotificationSources::of(&connection);
        // Whether the lists can change is our own business: they are looked at again.
        capabilities.list_changed = true;
        self.source().set_server(RemoteServer {
            capabilities,
            identity: self.settings.transparent.then(|| Arc::clone(&greeting.server_info.identity)),
            instructions: self.instructions(&greeting.server_info.instructions),
            endpoint: self.endpoint(),
            sessions: Some(Arc::clone(self) as _),
        });
        self.status_record.set_greeting(&greeting);
        self.fetch_all_lists(&connection).await?;
        let is_heard = self.subscriptions.restore(&connection).await && is_heard;
        self.set_announces_changes(&connection, is_heard);
        let before = self.status.send_replace(StartupStatus::Ready);
        if self.take_missed() || before != StartupStatus::Starting {
            // Lists may have changed while nobody looked, or somebody looked too early.
            self.announce_all_changes();
        }
        Ok((connection, ears))
    }

    /// Fetches every list that the server declares. Each fails by itself: only the end of the session ends this.
    async fn fetch_all_lists(self: &Arc<Self>, connection: &Connection) -> Result<(), Fault> {
        self.list_failures.clear_all();
        let declared = connection.greeting().server_info.capabilities;
        let wait = self.settings.startup_timeout / 3;
        for (kind, is_declared) in LISTS {
            if !is_declared(&declared) {
                continue;
            }
            let filled =
                timeout(wait, self.fetch_list(connection, kind)).await.unwrap_or_else(|_| {
                    let method = Operation::List(kind, None).method();
                    let detail = format!("`{method}` was not answered within {} s", wait.as_secs());
                    Err(Fault::new(FaultKind::BackendUnavailable, detail).with_subject(self.name()))
                });
            if let Err(fault) = filled {
                if let Some(closed) = connection.close_reason() {
                    return Err(closed.fault);
                }
                self.record_list_failure(kind, &fault);
            }
        }
        Ok(())
    }

    /// Notes that the server could not be reached. One that stays away is logged less and less often.
    fn record_unreachable(&self, fault: Fault, attempts: u32) {
        if attempts.is_power_of_two() || attempts.is_multiple_of(LOG_EVERY_ATTEMPTS) {
            let (upstream, reason) = (self.name(), self.with_address(&fault.detail));
            tracing::warn!(target: "creole", upstream, reason, attempts, "not reached");
        }
        self.status_record.set_error(&fault);
        self.status.send_replace(StartupStatus::Failed(fault));
    }

    /// Notes that a list could not be fetched. It is fetched again with backoff.
    pub(crate) fn record_list_failure(&self, kind: ListKind, fault: &Fault) {
        self.list_ages.record_failure(kind);
        self.status_record.set_error(fault);
        if let Some(attempts) = self.list_failures.record(kind, fault) {
            let (upstream, list, reason) = (self.name(), kind.member(), &*fault.detail);
            tracing::warn!(target: "creole", upstream, list, reason, attempts, "list not fetched");
        }
    }

    /// Why a list was never fetched, if that failed.
    pub(crate) fn list_failure(&self, kind: ListKind) -> Option<Fault> {
        let fault = self.list_failures.fault(kind).filter(|_| !self.lists.was_fetched(kind))?;
        Some(Fault { trace: None, ..fault })
    }

    /// Fetches the failed lists whose wait is over.
    pub(crate) async fn retry_failed_lists(self: &Arc<Self>, connection: &Connection) {
        for kind in self.list_failures.due() {
            self.refetch_one(connection, kind, false).await;
        }
    }

    /// Fetches a list again; if that fails, the old one stands. Everybody is told of what changed, or was said to.
    pub(crate) async fn refetch_list(
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
            self.refetch_one(connection, *kind, is_told).await;
        }
    }

    async fn refetch_one(self: &Arc<Self>, connection: &Connection, kind: ListKind, is_told: bool) {
        let changed = self.fetch_list(connection, kind).await.unwrap_or_else(|fault| {
            self.record_list_failure(kind, &fault);
            false
        });
        if changed || is_told {
            self.announce(Change::List(kind));
        }
    }

    pub(crate) fn log_refetch_failure(&self, fault: &Fault) -> bool {
        let reason = &*fault.detail;
        tracing::warn!(target: "creole", upstream = self.name(), reason, "a list was not fetched again");
        false
    }

    /// Whether a list has become too old, and nobody would tell us if it changed.
    pub(crate) fn is_list_stale(&self, kind: ListKind) -> bool {
        !self.announces_changes.load(Ordering::Acquire) && self.list_ages.is_stale(kind)
    }

    /// How long a list may be kept from now on, if the server has it and was reached.
    pub(crate) fn list_ttl(&self, kind: ListKind) -> Option<Duration> {
        if self.list_failures.fault(kind).is_some() {
            return Some(Duration::ZERO);
        }
        self.list_ages.remaining_ttl(kind, self.announces_changes.load(Ordering::Acquire))
    }

    /// Fetches a list again that has become too old; whoever asks for it waits for that, but not long.
    pub(crate) async fn refresh_list(self: &Arc<Self>, kind: ListKind) {
        let again = async {
            let _alone = self.refresh_lock.lock().await;
            if self.is_list_stale(kind) {
                let connection = self.gateway_connection().await?;
                self.refetch_list(&connection, kind, false).await;
            }
            Ok::<_, Fault>(())
        };
        // The old list is better than none, and nobody waits for another one right away.
        if !matches!(timeout(REFRESH_TIMEOUT, again).await, Ok(Ok(()))) {
            self.list_ages.record_failure(kind);
        }
    }

    /// Fetches the tools again, because the headers of a call were wrong by what was known of them; tells whether
    /// they are known anew, thanks to this call or another one.
    pub(crate) async fn refresh_tool_index(&self, known: &Arc<ToolIndex>) -> bool {
        let Some(this) = self.this.upgrade() else { return false };
        let again = async {
            let _alone = self.refresh_lock.lock().await;
            if !Arc::ptr_eq(known, &self.tool_index()) {
                return true;
            }
            let Ok(connection) = self.gateway_connection().await else { return false };
            let changed = this.fetch_list(&connection, ListKind::Tools).await;
            if matches!(changed, Ok(true)) {
                self.announce(Change::List(ListKind::Tools));
            }
            changed.map_or_else(|fault| self.log_refetch_failure(&fault), |_| true)
        };
        timeout(self.settings.startup_timeout, again).await.unwrap_or(false)
    }

    /// Fetches a list; tells whether it is another than before.
    async fn fetch_list(
        self: &Arc<Self>,
        connection: &Connection,
        kind: ListKind,
    ) -> Result<bool, Fault> {
        let began = Instant::now();
        let listed = match list_fetch::fetch(&mut ListFetcher::for_gateway(connection), kind).await
        {
            // Many servers have resources and know nothing of templates.
            Err(fault) if kind == ListKind::Templates && is_method_not_found(&fault) => {
                self.list_failures.clear(kind);
                return Ok(false);
            }
            listed => listed?,
        };
        self.status_record.set_latency(began.elapsed());
        self.list_failures.clear(kind);
        self.excluded_items.replace(
            self.name(),
            kind,
            ExclusionReason::Definition,
            listed.excluded,
        );
        let changed = self.list_ages.record_fetch(kind, &listed.items, listed.cache);
        let decides = connection.greeting().rules.tasks == TaskModel::Extension
            && connection.greeting().server_info.capabilities.tasks;
        self.decides_tasks.store(decides, Ordering::Release);
        self.lists.set_shared(kind, self.exclude_invalid_headers(kind, listed.items, connection));
        self.publish_list(kind);
        Ok(changed)
    }

    /// Notes what has to be known to call the tools of the shared list and of session lists.
    pub(crate) fn index_tools(&self, kind: ListKind) {
        if kind == ListKind::Tools {
            self.set_tool_index(ToolIndex::of(&self.lists.all_definitions(kind)));
        }
    }

    /// Lists what the server has for all who share its lists.
    pub(crate) fn publish_list(self: &Arc<Self>, kind: ListKind) {
        self.index_tools(kind);
        let (naming, endpoint) = (&self.settings.naming, self.endpoint());
        let chain = &self.settings.chain;
        chain.reassign_names(kind);
        let items = self.lists.shared(kind);
        let (mut shaped, mut withheld) = (Vec::with_capacity(items.len()), BTreeMap::new());
        for item in items {
            match chain.rewrite_definition(kind, Arc::clone(&item)) {
                Some(item) => shaped.push(item),
                None => withheld.extend(self.withheld_item(kind, item)),
            }
        }
        // Before anybody sees them.
        chain.save_definitions();
        if kind == ListKind::Tools {
            self.source().set_withheld(withheld);
        }
        let decides = self.decides_tasks.load(Ordering::Acquire);
        let (remotes, mut left_out) =
            list_fetch::remote_items(kind, &shaped, naming, &endpoint, decides);
        let taken = self.source().set_items(kind, remotes).into_iter();
        left_out.extend(taken.map(|it| ExcludedItem { reason: it.to_string(), name: it.name }));
        self.excluded_items.replace(self.name(), kind, ExclusionReason::Name, left_out);
    }

    /// An item that a layer withholds, by the name that it would have here, and what its callers are told.
    fn withheld_item(&self, kind: ListKind, item: Arc<Definition>) -> Option<(String, Fault)> {
        let here = self.settings.naming.local_name(item.name()).ok()?;
        Some((here, self.settings.chain.withheld_fault(kind, item)?))
    }

    /// Leaves out the tools that a client over HTTP has to refuse, because their schema names headers wrongly
    /// (2026-07-28 basic/transports/streamable-http, schema extension).
    pub(crate) fn exclude_invalid_headers(
        &self,
        kind: ListKind,
        mut items: Vec<Arc<Definition>>,
        connection: &Connection,
    ) -> Vec<Arc<Definition>> {
        let refuses = matches!(self.settings.address, Address::Http(_))
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
            self.excluded_items.replace(self.name(), kind, ExclusionReason::Headers, left_out);
        }
        items
    }

    /// Notes that the conversation is over.
    pub(crate) fn record_connection_lost(&self, fault: &Fault, session_only: bool) {
        if !session_only && !self.pool.is_closed() {
            let reason = self.with_address(&fault.detail);
            tracing::warn!(target: "creole", upstream = self.name(), reason, "lost");
            self.status_record.set_error(fault);
        }
    }

    pub(crate) fn endpoint(self: &Arc<Self>) -> Arc<dyn Endpoint> {
        self.settings.chain.wrap(Arc::clone(self) as _)
    }

    /// Tells of everything that may have changed while nobody was told.
    pub(crate) fn announce_all_changes(&self) {
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            self.announce(Change::List(kind));
        }
        self.subscriptions.uris().into_iter().for_each(|uri| self.announce(Change::Resource(uri)));
    }
}

/// Whether a server says that it has no such list.
fn is_method_not_found(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::MethodNotFound)
}
