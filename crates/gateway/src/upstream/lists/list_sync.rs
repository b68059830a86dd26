//! Keeps the lists of an upstream current: fetches them at startup, after a change notification and after a reconnect.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::client::Address;
use creole::internal::client::Connection;
use creole::internal::registry::RemoteServer;
use creole::internal::telemetry::CallOutcome;
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{Definition, ExcludedItem, ListKind};
use creole::proto::operation::{Change, Operation};
use creole::proto::revision::{Rules, TaskModel};
use tokio::time::{Instant, sleep, timeout};

use crate::upstream::lists::UpstreamLists;
use crate::upstream::lists::excluded_items::ExclusionReason;
use crate::upstream::lists::list_fetch;
use crate::upstream::lists::list_fetch::{LISTS, ListFetcher, ToolIndex};
use crate::upstream::lists::notifications::{
    NotificationSources, RECONNECT_PAUSE, follow_notifications,
};
use crate::upstream::observed_start::record_starts;

/// The number of attempts between two reports about an upstream that stays unreachable.
const REPORT_EVERY_ATTEMPTS: u32 = 300;

/// Whether an attempt to reach an upstream is logged if it fails, and recorded: the first ones and then fewer and fewer.
fn is_reported(attempt: u32) -> bool {
    attempt.is_power_of_two() || attempt.is_multiple_of(REPORT_EVERY_ATTEMPTS)
}

/// The method of the record of a start.
const START: &str = "upstream/start";

/// How long a list request waits for a refresh.
pub(crate) const REFRESH_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs until the upstream is dropped.
pub(crate) async fn run_list_sync(lists: Weak<UpstreamLists>) {
    let mut attempts: u32 = 0;
    loop {
        let Some(mut start) =
            lists.upgrade().map(|upstream_lists| upstream_lists.startup.start_time())
        else {
            return;
        };
        // An upstream that is dropped before it starts is not kept by this task.
        if start.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let Some(strong) = lists.upgrade() else { return };
        match strong.connect_and_fetch(attempts).await {
            Ok((connection, sources)) => {
                attempts = 0;
                drop(strong);
                follow_notifications(&lists, connection, sources).await;
            }
            Err(fault) => {
                attempts = attempts.saturating_add(1);
                strong.record_unreachable(fault, attempts);
            }
        }
        sleep(RECONNECT_PAUSE).await;
    }
}

impl UpstreamLists {
    /// Connects to the upstream, after this number of failed attempts, and fetches all its lists. Notifications during
    /// the fetch are not lost.
    async fn connect_and_fetch(
        self: &Arc<Self>,
        failed: u32,
    ) -> Result<(Connection, NotificationSources), Fault> {
        let connection = self.start_upstream(failed).await?;
        let greeting = Arc::clone(connection.greeting());
        let mut capabilities = greeting.server_info.capabilities;
        let (sources, is_listening) = NotificationSources::of(&connection);
        // The gateway polls the lists, so it can announce changes even if the upstream does not.
        capabilities.list_changed = true;
        if let Some(endpoint) = self.endpoint() {
            let is_shown = self.settings.transparent;
            self.source().set_server(RemoteServer {
                capabilities,
                identity: is_shown.then(|| Arc::clone(&greeting.server_info.identity)),
                instructions: self.instructions(&greeting.server_info.instructions),
                endpoint,
                sessions: Some(Arc::clone(self) as _),
            });
        }
        let declared = LISTS.iter().filter(|(_, is_declared)| is_declared(&capabilities));
        let declared = declared.map(|(kind, _)| *kind).collect();
        self.status_record.set_server(&greeting, declared);
        self.fetch_all_lists(&connection).await?;
        let is_listening = self.subscriptions.restore(&connection).await && is_listening;
        self.set_announces_changes(&connection, is_listening);
        let is_first = self.startup.set_ready();
        if self.startup.take_missed() || !is_first {
            // Lists may have changed while the gateway was not connected, or a client fetched them too early.
            self.announce_all_changes();
        }
        Ok((connection, sources))
    }

    /// Opens the gateway's own session with the upstream, after this number of failed attempts.
    async fn start_upstream(&self, failed: u32) -> Result<Connection, Fault> {
        let settings = &self.settings;
        // An upstream that stays unreachable must not displace the records of calls.
        let is_recorded = is_reported(failed.saturating_add(1));
        let work = is_recorded
            .then(|| settings.telemetry.start_work(START, settings.name(), Rules::CANONICAL, None));
        let Some(work) = work.flatten() else { return self.sessions.gateway_connection().await };
        let opening = self.sessions.gateway_connection();
        let opened = record_starts(work.record(), None, opening).await;
        work.finish(match &opened {
            Ok(_) => CallOutcome::Success,
            Err(fault) => CallOutcome::Fault(fault.kind, fault.foreign_code),
        });
        opened
    }

    /// Fetches every list that the upstream declares. Each list fails on its own; only the end of the session is an
    /// error.
    async fn fetch_all_lists(&self, connection: &Connection) -> Result<(), Fault> {
        self.failures.clear_all();
        let declared = connection.greeting().server_info.capabilities;
        let wait = self.settings.startup_timeout / 3;
        for (kind, is_declared) in LISTS {
            if !is_declared(&declared) {
                continue;
            }
            let filled =
                timeout(wait, self.fetch_list(connection, kind)).await.unwrap_or_else(|_| {
                    let method = Operation::List(kind, None).method();
                    let detail = format!("no response to `{method}` within {} s", wait.as_secs());
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

    /// Records that the upstream is unreachable. Repeated failures are logged less and less often.
    fn record_unreachable(&self, fault: Fault, attempts: u32) {
        if is_reported(attempts) {
            let (upstream, reason) = (self.name(), self.settings.with_address(&fault.detail));
            tracing::warn!(target: "creole", upstream, reason, attempts, "upstream not reached");
        }
        self.status_record.set_error(&fault);
        self.startup.set_failed(fault);
    }

    /// Records a failed fetch of a list. It is fetched again with backoff.
    pub(crate) fn record_list_failure(&self, kind: ListKind, fault: &Fault) {
        self.ages.record_failure(kind);
        self.status_record.set_error(fault);
        if let Some(attempts) = self.failures.record(kind, fault) {
            let (upstream, list, reason) = (self.name(), kind.member(), &*fault.detail);
            tracing::warn!(target: "creole", upstream, list, reason, attempts, "cannot fetch a \
                list of the upstream");
        }
    }

    /// Why a list was never fetched, if its fetch failed.
    pub(crate) fn list_failure(&self, kind: ListKind) -> Option<Fault> {
        let mut fault = self.failures.fault(kind).filter(|_| !self.store.was_fetched(kind))?;
        fault.trace = None;
        Some(fault)
    }

    /// Fetches the failed lists whose wait is over.
    pub(crate) async fn retry_failed_lists(&self, connection: &Connection) {
        for kind in self.failures.due() {
            self.refetch_one(connection, kind, false).await;
        }
    }

    /// Fetches a list again. After a failure the old one stays. Clients are notified if it changed or was announced as
    /// changed.
    pub(crate) async fn refetch_list(
        &self,
        connection: &Connection,
        kind: ListKind,
        is_notified: bool,
    ) {
        let kinds: &[ListKind] = match kind {
            ListKind::Resources | ListKind::Templates => {
                &[ListKind::Resources, ListKind::Templates]
            }
            other => &[other],
        };
        for kind in kinds {
            self.refetch_one(connection, *kind, is_notified).await;
        }
    }

    async fn refetch_one(&self, connection: &Connection, kind: ListKind, is_notified: bool) {
        let changed = self.fetch_list(connection, kind).await.unwrap_or_else(|fault| {
            self.record_list_failure(kind, &fault);
            false
        });
        if changed || is_notified {
            self.announce(Change::List(kind));
        }
    }

    pub(crate) fn log_refetch_failure(&self, fault: &Fault) -> bool {
        let reason = &*fault.detail;
        tracing::warn!(target: "creole", upstream = self.name(), reason, "cannot fetch a list of \
            the upstream again");
        false
    }

    /// Whether a list is stale and the upstream does not announce changes.
    pub(crate) fn is_list_stale(&self, kind: ListKind) -> bool {
        !self.announces_changes.load(Ordering::Acquire) && self.ages.is_stale(kind)
    }

    /// The remaining time to live of a list, if the upstream has it and is ready.
    pub(crate) fn list_ttl(&self, kind: ListKind) -> Option<Duration> {
        if self.failures.fault(kind).is_some() {
            return Some(Duration::ZERO);
        }
        self.ages.remaining_ttl(kind, self.announces_changes.load(Ordering::Acquire))
    }

    /// Fetches a stale list again. The request for the list waits for it, up to a timeout.
    pub(crate) async fn refresh_list(&self, kind: ListKind) {
        let again = async {
            let _alone = self.refresh_lock.lock().await;
            if self.is_list_stale(kind) {
                let connection = self.sessions.gateway_connection().await?;
                self.refetch_list(&connection, kind, false).await;
            }
            Ok::<_, Fault>(())
        };
        // The old list is better than none, and the next requests do not wait again immediately.
        if !matches!(timeout(REFRESH_TIMEOUT, again).await, Ok(Ok(()))) {
            self.ages.record_failure(kind);
        }
    }

    /// Fetches the tools again after the mirrored headers of a call were wrong. Returns whether the tool index is new,
    /// by this call or another one.
    pub(crate) async fn refresh_tool_index(&self, known: &Arc<ToolIndex>) -> bool {
        let again = async {
            let _alone = self.refresh_lock.lock().await;
            if !Arc::ptr_eq(known, &self.tool_index()) {
                return true;
            }
            let Ok(connection) = self.sessions.gateway_connection().await else { return false };
            let changed = self.fetch_list(&connection, ListKind::Tools).await;
            if matches!(changed, Ok(true)) {
                self.announce(Change::List(ListKind::Tools));
            }
            changed.map_or_else(|fault| self.log_refetch_failure(&fault), |_| true)
        };
        timeout(self.settings.startup_timeout, again).await.unwrap_or(false)
    }

    /// Fetches a list. Returns whether it has changed.
    async fn fetch_list(&self, connection: &Connection, kind: ListKind) -> Result<bool, Fault> {
        let started = Instant::now();
        let metrics = self.sessions.metrics.as_deref();
        let mut fetcher = ListFetcher::for_gateway(connection, &self.settings, metrics, kind);
        let listed = match list_fetch::fetch(&mut fetcher, kind).await {
            // Many upstreams have resources and do not implement templates.
            Err(fault) if kind == ListKind::Templates && is_method_not_found(&fault) => {
                self.failures.clear(kind);
                return Ok(false);
            }
            listed => listed?,
        };
        self.status_record.set_latency(started.elapsed());
        self.failures.clear(kind);
        self.excluded_items.replace(
            self.name(),
            kind,
            ExclusionReason::Definition,
            listed.excluded,
        );
        let changed = self.ages.record_fetch(kind, &listed.items, listed.cache);
        let decides = connection.greeting().rules.tasks == TaskModel::Extension
            && connection.greeting().server_info.capabilities.tasks;
        self.decides_tasks.store(decides, Ordering::Release);
        self.store.set_shared(kind, self.exclude_invalid_headers(kind, listed.items, connection));
        self.publish_list(kind);
        Ok(changed)
    }

    /// Indexes the tools of the shared list and of session lists.
    pub(crate) fn index_tools(&self, kind: ListKind) {
        if kind == ListKind::Tools {
            self.set_tool_index(ToolIndex::of(&self.store.all_definitions(kind)));
        }
    }

    /// Publishes the shared list in the registry.
    pub(crate) fn publish_list(&self, kind: ListKind) {
        self.index_tools(kind);
        let Some(endpoint) = self.endpoint() else { return };
        let naming = &self.settings.naming;
        let chain = &self.settings.chain;
        chain.reassign_names(kind);
        let items = self.store.shared(kind);
        if let Some(metrics) = &self.sessions.metrics {
            metrics.set_items(kind, &items);
        }
        let (mut shaped, mut withheld) = (Vec::with_capacity(items.len()), BTreeMap::new());
        for item in items {
            match chain.rewrite_definition(kind, Arc::clone(&item)) {
                Some(item) => shaped.push(item),
                None => withheld.extend(self.withheld_item(kind, item)),
            }
        }
        // Saved before a client sees the definitions.
        chain.save_definitions();
        if kind == ListKind::Tools {
            self.withheld.store(withheld.len(), Ordering::Relaxed);
            self.source().set_withheld(withheld);
        }
        let decides = self.decides_tasks.load(Ordering::Acquire);
        let (remotes, mut left_out) =
            list_fetch::remote_items(kind, &shaped, naming, &endpoint, decides);
        let taken = self.source().set_items(kind, remotes).into_iter();
        left_out.extend(taken.map(|name_collision| ExcludedItem {
            reason: name_collision.to_string(),
            name: name_collision.name,
        }));
        self.excluded_items.replace(self.name(), kind, ExclusionReason::Name, left_out);
    }

    /// An item that a layer withholds, under its local name, with the fault for its callers.
    fn withheld_item(&self, kind: ListKind, item: Arc<Definition>) -> Option<(String, Fault)> {
        let here = self.settings.naming.local_name(item.name()).ok()?;
        Some((here, self.settings.chain.withheld_fault(kind, item)?))
    }

    /// Excludes the tools that an HTTP client must reject, because their schema names headers incorrectly (2026-07-28
    /// basic/transports/streamable-http, schema extension).
    pub(crate) fn exclude_invalid_headers(
        &self,
        kind: ListKind,
        mut items: Vec<Arc<Definition>>,
        connection: &Connection,
    ) -> Vec<Arc<Definition>> {
        let refuses = matches!(self.settings.address, Address::Http(_))
            && connection.greeting().rules.mirrored_headers;
        if kind == ListKind::Tools && refuses {
            let mut left_out = Vec::new();
            items.retain(|tool| {
                let mirrors = tool.mirrored_headers();
                let cause = mirrors.as_ref().err().map(ToString::to_string);
                let name = tool.name().to_owned();
                left_out.extend(cause.map(|reason| ExcludedItem { name, reason }));
                mirrors.is_ok()
            });
            self.excluded_items.replace(self.name(), kind, ExclusionReason::Headers, left_out);
        }
        items
    }

    /// Records that the session has ended.
    pub(crate) fn record_connection_lost(&self, fault: &Fault, session_only: bool) {
        if !session_only && !self.sessions.pool.is_closed() {
            let reason = self.settings.with_address(&fault.detail);
            tracing::warn!(target: "creole", upstream = self.name(), reason, "lost");
            self.status_record.set_error(fault);
        }
    }

    /// Announces all lists and subscribed resources as changed, since changes may have been missed.
    pub(crate) fn announce_all_changes(&self) {
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            self.announce(Change::List(kind));
        }
        self.subscriptions.uris().into_iter().for_each(|uri| self.announce(Change::Resource(uri)));
    }
}

/// Whether the upstream reports that it has no such list.
fn is_method_not_found(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::MethodNotFound)
}
