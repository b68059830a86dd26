//! Follows the notifications of an upstream, and detects when they are unavailable.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::internal::client::{Connection, ServerNotification};
use creole::internal::registry::Recipients;
use creole::proto::model::ListKind;
use creole::proto::operation::Change;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::upstream::connections::affinity::has_no_connection;
use crate::upstream::connections::pool::SessionChange;
use crate::upstream::connections::session_key::SessionOwner;
use crate::upstream::lists::UpstreamLists;
use crate::upstream::lists::list_fetch::LISTS;

/// The minimum wait before the gateway reconnects to an unreachable upstream.
pub(crate) const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// How often the layers are checked for changed definitions.
const CHAIN_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The notifications of an upstream from some moment on.
pub(crate) struct NotificationSources {
    notifications: broadcast::Receiver<ServerNotification>,
    /// Whether notifications can be received.
    available: watch::Receiver<bool>,
}

impl NotificationSources {
    /// The notifications from now on, and whether they can be received now.
    pub(crate) fn of(connection: &Connection) -> (Self, bool) {
        let mut hearing = connection.notifications_available();
        let is_listening = *hearing.borrow_and_update();
        (Self { notifications: connection.notifications(), available: hearing }, is_listening)
    }
}

/// Follows the notifications until the session ends.
pub(crate) async fn follow_notifications(
    lists: &Weak<UpstreamLists>,
    connection: Connection,
    sources: NotificationSources,
) {
    let NotificationSources { notifications: mut notices, available: mut hearing } = sources;
    let Some(mut elsewhere) =
        lists.upgrade().map(|upstream_lists| upstream_lists.sessions.pool.changes())
    else {
        return;
    };
    let Some(mut lost) =
        lists.upgrade().map(|upstream_lists| upstream_lists.subscriptions.stream_losses())
    else {
        return;
    };
    let Some(mut changed) =
        lists.upgrade().map(|upstream_lists| upstream_lists.sessions.era_changes())
    else {
        return;
    };
    // When missed notifications are made up for: after a delay, in case more are missed.
    let mut due = None;
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice,
            changed = elsewhere.recv() => {
                let Some(lists) = lists.upgrade() else { return };
                lists.on_session_change(&connection, changed).await;
                continue;
            }
            _ = lost.changed() => {
                let Some(lists) = lists.upgrade() else { return };
                lists.reopen_notifications(&connection).await;
                continue;
            }
            Ok(()) = hearing.changed() => {
                let Some(lists) = lists.upgrade() else { return };
                let is_listening = *hearing.borrow_and_update();
                due = is_listening.then(|| Instant::now() + RECONNECT_PAUSE);
                // The lists must be polled from now on, and earlier notifications may have been missed.
                lists.set_announces_changes(&connection, false);
                continue;
            }
            () = sleep_until_due(due) => {
                due = None;
                let Some(lists) = lists.upgrade() else { return };
                lists.refetch_all_lists(&connection).await;
                lists.set_announces_changes(&connection, *hearing.borrow());
                continue;
            }
            () = sleep_until_due(next_retry(lists)) => {
                let Some(lists) = lists.upgrade() else { return };
                lists.retry_failed_lists(&connection).await;
                continue;
            }
            // The upstream has changed its era, and everything is fetched again.
            Ok(()) = changed.changed() => return,
            () = chain_changed(lists) => Ok(ServerNotification::Changed(Change::List(ListKind::Tools))),
            closed = connection.wait_closed() => {
                if let Some(lists) = lists.upgrade() {
                    lists.record_connection_lost(&closed.fault, closed.session_lost);
                }
                return;
            }
        };
        let Some(lists) = lists.upgrade() else { return };
        match notice {
            Ok(ServerNotification::Changed(Change::List(kind))) => {
                lists.refetch_list(&connection, kind, true).await;
            }
            Ok(ServerNotification::Changed(change @ Change::Resource(_))) => lists.announce(change),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => {
                lists.refetch_all_lists(&connection).await;
                lists.announce_all_changes();
            }
            Err(RecvError::Closed) => return,
        }
    }
}

/// The clients that receive the notifications of a session.
pub(crate) fn recipients_of(owner: &SessionOwner) -> Recipients {
    match owner {
        SessionOwner::Gateway | SessionOwner::ListsOnly => Recipients::All,
        SessionOwner::Principal(principal) => Recipients::Principal(Arc::clone(principal)),
        // Its callers identify themselves in each request. They listen in another request than the call.
        SessionOwner::ClientSession { principal, name } if has_no_connection(name) => {
            Recipients::Principal(Arc::clone(principal))
        }
        SessionOwner::ClientSession { name, .. } => Recipients::Session(Arc::clone(name)),
    }
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// When the next failed list must be fetched again.
fn next_retry(lists: &Weak<UpstreamLists>) -> Option<Instant> {
    lists.upgrade()?.failures.next_retry()
}

/// Resolves when a layer has changed definitions, such as an approved tool.
async fn chain_changed(lists: &Weak<UpstreamLists>) {
    loop {
        sleep(CHAIN_CHECK_INTERVAL).await;
        let Some(chain) =
            lists.upgrade().map(|upstream_lists| upstream_lists.settings.chain.clone())
        else {
            return std::future::pending().await;
        };
        let asked = tokio::task::spawn_blocking(move || chain.definitions_changed());
        if asked.await.unwrap_or(false) {
            return;
        }
    }
}

impl UpstreamLists {
    /// Records whether the upstream announces changes of its lists, as its capabilities declare.
    pub(crate) fn set_announces_changes(&self, connection: &Connection, is_listening: bool) {
        let tells = connection.greeting().server_info.capabilities.list_changed;
        self.announces_changes.store(tells && is_listening, Ordering::Release);
    }

    /// Opens the notification stream of a stateless upstream again after it ended.
    async fn reopen_notifications(&self, connection: &Connection) {
        self.set_announces_changes(connection, false);
        sleep(RECONNECT_PAUSE).await;
        let is_listening = self.subscriptions.restore(connection).await;
        self.refetch_all_lists(connection).await;
        self.set_announces_changes(connection, is_listening);
        self.announce_all_changes();
    }

    /// Handles a notification in a caller's session. It concerns only the callers of that session. Lists that changed
    /// there may have changed for all callers.
    async fn on_session_change(
        &self,
        connection: &Connection,
        changed: Result<SessionChange, RecvError>,
    ) {
        match changed {
            Ok(SessionChange { key, change: Some(change) }) => {
                if let Change::List(kind) = &change {
                    self.store.set_stale(*kind, &key);
                }
                let list = match &change {
                    Change::List(kind) => Some(*kind),
                    _ => None,
                };
                self.announce_to(recipients_of(&key.owner), change);
                if let Some(kind) = list {
                    self.refetch_list(connection, kind, false).await;
                }
            }
            // A session for one call ends with it.
            Ok(SessionChange { key, change: None }) if self.is_for_one_call(&key) => {}
            Ok(SessionChange { key, change: None }) => {
                for kind in self.store.end_session(&key) {
                    self.announce_to(recipients_of(&key.owner), Change::List(kind));
                }
            }
            Err(RecvError::Lagged(_)) => {
                self.store.forget_all();
                self.announce_all_changes();
            }
            Err(RecvError::Closed) => {}
        }
    }

    /// Fetches all lists again, since notifications may have been missed.
    async fn refetch_all_lists(&self, connection: &Connection) {
        for (kind, is_offered) in LISTS {
            // Templates are fetched together with resources.
            if is_offered(&connection.greeting().server_info.capabilities)
                && kind != ListKind::Templates
            {
                self.refetch_list(connection, kind, false).await;
            }
        }
    }
}
