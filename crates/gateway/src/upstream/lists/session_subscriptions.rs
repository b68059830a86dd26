//! Resource subscriptions of callers. Each is made in the session that the caller's calls use, where the upstream
//! announces changes.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, Weak};

use creole::Context;
use creole::internal::call::ConnectionId;
use creole::internal::client::Connection;
use creole::proto::fault::Fault;
use creole::proto::model::{ClientCapabilities, ListKind};
use creole::proto::operation::{Change, Outcome};
use tokio::time::{sleep, sleep_until};

use crate::upstream::connections::pool::{SessionHold, UpstreamLease};
use crate::upstream::connections::session_key::{SessionKey, SessionOwner};
use crate::upstream::lists::UpstreamLists;
use crate::upstream::lists::caller_session::CallerSession;
use crate::upstream::lists::notifications::{RECONNECT_PAUSE, recipients_of};
use crate::upstream::lists::subscriptions::ResourceSubscriptions;
use crate::upstream::lists::unsubscribe_queue::UNSUBSCRIBE_DELAY;
use crate::upstream::settings::Affinity;

/// The subscriptions in sessions of callers.
#[derive(Default)]
pub(crate) struct SessionSubscriptions(Mutex<SessionSubscriptionsInner>);

#[derive(Default)]
struct SessionSubscriptionsInner {
    sessions: HashMap<SessionKey, Arc<SubscribedSession>>,
    /// The sessions in which client connections have subscribed. One connection may subscribe to a resource twice.
    placements: HashMap<(ConnectionId, String), Vec<SubscriptionPlacement>>,
}

/// The session in which a client connection has subscribed to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SubscriptionPlacement {
    /// The session of the caller, which may not be open. `None` for a caller without one.
    key: Option<SessionKey>,
    /// Whether the subscription is in the gateway's own session: always, or until the caller's session opens.
    is_in_gateway_session: bool,
}

struct SubscribedSession {
    subscriptions: ResourceSubscriptions,
    /// Keeps the session open while it has subscriptions.
    hold: Mutex<Option<SessionHold>>,
    /// Whether only a call of its caller opens the session.
    is_opened_by_calls: bool,
    /// Whether a task opens the session again after it ended, or moves its subscriptions.
    is_maintained: AtomicBool,
}

impl SessionSubscriptions {
    /// The session of this key, created if necessary.
    fn get_or_insert(&self, key: &SessionKey, opens_with_calls: bool) -> Arc<SubscribedSession> {
        let sessions = &mut self.lock().sessions;
        let session = sessions.entry(key.clone()).or_insert_with(|| {
            Arc::new(SubscribedSession {
                subscriptions: ResourceSubscriptions::default(),
                hold: Mutex::default(),
                is_opened_by_calls: opens_with_calls,
                is_maintained: AtomicBool::new(false),
            })
        });
        Arc::clone(session)
    }

    fn get(&self, key: &SessionKey) -> Option<Arc<SubscribedSession>> {
        self.lock().sessions.get(key).map(Arc::clone)
    }

    /// Removes a session without subscriptions. Returns whether it did.
    fn forget_empty(&self, key: &SessionKey) -> bool {
        let sessions = &mut self.lock().sessions;
        let is_empty = sessions.get(key).is_none_or(|session| session.subscriptions.is_empty());
        if is_empty {
            sessions.remove(key);
        }
        is_empty
    }

    fn add(&self, connection: ConnectionId, uri: &str, watcher: SubscriptionPlacement) {
        let watchers = &mut self.lock().placements;
        watchers.entry((connection, uri.to_owned())).or_default().push(watcher);
    }

    /// Removes one subscription. Returns its session.
    fn remove(&self, connection: ConnectionId, uri: &str) -> Option<SubscriptionPlacement> {
        let watchers = &mut self.lock().placements;
        let connection = (connection, uri.to_owned());
        let all = watchers.get_mut(&connection)?;
        let watcher = all.pop();
        if all.is_empty() {
            watchers.remove(&connection);
        }
        watcher
    }

    /// Adds the subscriptions of a session to the gateway's own session, or removes them from it. `act` does so for one
    /// subscription and returns whether it succeeded.
    fn set_in_gateway_session(
        &self,
        key: &SessionKey,
        is_in_main: bool,
        mut act: impl FnMut(&str) -> bool,
    ) {
        for ((_, uri), all) in &mut self.lock().placements {
            for watcher in all
                .iter_mut()
                .filter(|subscription_placement| subscription_placement.key.as_ref() == Some(key))
            {
                if watcher.is_in_gateway_session != is_in_main && act(uri) {
                    watcher.is_in_gateway_session = is_in_main;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionSubscriptionsInner> {
        self.0.lock()
    }
}

impl UpstreamLists {
    /// Subscribes a caller to a resource, in the session that its calls use. A caller whose calls have separate
    /// sessions uses the gateway's own one.
    pub(crate) async fn subscribe(&self, uri: &str, context: &Context) -> Outcome {
        let own = self.caller_session(context).filter(|own| own.has_session());
        let own = own.filter(|_| self.sessions.affinity(context) != Affinity::Request);
        let mut is_in_main = own.is_none();
        let subscribed = match &own {
            None => self.subscribe_in_gateway_session(uri).await,
            Some(own) => match self.sessions.pool.connection_if_open(&own.key) {
                Some(connection) => Ok(self.subscribe_in(own, uri, &connection, context).await),
                None if own.is_opened_by_calls(context) => {
                    is_in_main = true;
                    self.subscribe_until_opened(own, uri).await
                }
                None => match self.lease_caller_session(own, context).await {
                    Ok(Some(lease)) => {
                        Ok(self.subscribe_in(own, uri, &lease.connection, context).await)
                    }
                    // The upstream has the other era, which has no sessions.
                    Ok(None) => return Box::pin(self.subscribe(uri, context)).await,
                    Err(fault) => Err(fault),
                },
            },
        };
        let outcome = subscribed.unwrap_or_else(Outcome::Fail);
        if matches!(outcome, Outcome::Complete(_)) {
            let key = own.map(|own| own.key);
            self.session_subscriptions.add(
                context.connection_id(),
                uri,
                SubscriptionPlacement { key: key.clone(), is_in_gateway_session: is_in_main },
            );
            // A call may have opened the session meanwhile.
            if let Some(key) = key.filter(|_| is_in_main)
                && let Some(connection) = self.sessions.pool.connection_if_open(&key)
            {
                self.resubscribe_in(&key, &connection).await;
            }
        }
        outcome
    }

    /// Subscribes in the gateway's own session until a call opens the caller's session.
    async fn subscribe_until_opened(
        &self,
        own: &CallerSession,
        uri: &str,
    ) -> Result<Outcome, Fault> {
        let outcome = self.subscribe_in_gateway_session(uri).await?;
        if matches!(outcome, Outcome::Complete(_))
            && let Err(fault) = self
                .session_subscriptions
                .get_or_insert(&own.key, true)
                .subscriptions
                .add_subscriber(uri)
        {
            self.release_in_gateway_session(uri.to_owned());
            return Err(fault);
        }
        Ok(outcome)
    }

    /// Subscribes in a session that a call opened to the resources of its callers.
    pub(crate) async fn resubscribe_in_new(&self, lease: &UpstreamLease) {
        let Some(key) = lease.opened_key().filter(|key| key.owner != SessionOwner::Gateway) else {
            return;
        };
        // Further sessions of the caller exist only while calls are parked in the first one.
        let first = SessionKey { lane: 0, ..key.clone() };
        match key.lane {
            0 => self.resubscribe_in(&first, &lease.connection).await,
            _ => {
                if let Some(session) = self.session_subscriptions.get(&first) {
                    session.subscriptions.restore_with_timeout(&lease.connection).await;
                }
            }
        }
    }

    /// Subscribes in the open session of this key to the resources of its callers.
    async fn resubscribe_in(&self, key: &SessionKey, connection: &Connection) {
        let Some(session) = self.session_subscriptions.get(key) else { return };
        session.set_hold(self.sessions.pool.hold_session(key));
        session.subscriptions.restore_with_timeout(connection).await;
        self.session_subscriptions.set_in_gateway_session(key, false, |uri| {
            self.release_in_gateway_session(uri.to_owned());
            true
        });
        if session.is_opened_by_calls {
            // The task does not open such a session, so it needs no capabilities.
            self.spawn_maintenance(key, &session, &Arc::default());
        }
    }

    /// Moves the subscriptions of a session that ended to the gateway's own session, until a call opens it again.
    async fn resubscribe_in_gateway_session(&self, key: &SessionKey, session: &SubscribedSession) {
        self.session_subscriptions.set_in_gateway_session(key, true, |uri| {
            self.subscriptions.add_subscriber(uri).is_ok()
        });
        if let Ok(connection) = self.sessions.gateway_connection().await {
            self.subscriptions.restore_with_timeout(&connection).await;
        }
        for uri in session.subscriptions.uris() {
            self.announce_to(recipients_of(&key.owner), Change::Resource(uri));
        }
    }

    /// Spawns the task that opens a session with subscriptions again after it ended.
    fn spawn_maintenance(
        &self,
        key: &SessionKey,
        session: &Arc<SubscribedSession>,
        capabilities: &Arc<ClientCapabilities>,
    ) {
        if !session.is_maintained.swap(true, Ordering::AcqRel) {
            let (key, session, capabilities) =
                (key.clone(), Arc::clone(session), Arc::clone(capabilities));
            tokio::spawn(maintain_subscriptions(
                Weak::clone(&self.this),
                key,
                session,
                capabilities,
            ));
        }
    }

    async fn subscribe_in_gateway_session(&self, uri: &str) -> Result<Outcome, Fault> {
        let connection = self.sessions.gateway_connection().await?;
        Ok(self.subscriptions.subscribe(uri, &connection).await)
    }

    async fn subscribe_in(
        &self,
        own: &CallerSession,
        uri: &str,
        connection: &Connection,
        context: &Context,
    ) -> Outcome {
        let session =
            self.session_subscriptions.get_or_insert(&own.key, own.is_opened_by_calls(context));
        session.set_hold(self.sessions.pool.hold_session(&own.key));
        let outcome = session.subscriptions.subscribe(uri, connection).await;
        self.spawn_maintenance(&own.key, &session, &own.capabilities);
        outcome
    }

    /// Ends one subscription of a connection.
    pub(crate) fn release_subscription(&self, uri: &str, connection: ConnectionId) {
        let Some(watcher) = self.session_subscriptions.remove(connection, uri) else { return };
        if watcher.is_in_gateway_session {
            self.release_in_gateway_session(uri.to_owned());
        }
        let session = watcher.key.as_ref().and_then(|key| self.session_subscriptions.get(key));
        if session.is_some_and(|session| session.subscriptions.remove_subscriber(uri)) {
            self.queue_unsubscribe(watcher.key, uri.to_owned());
        }
    }

    /// Removes one subscriber of a resource in the gateway's own session.
    fn release_in_gateway_session(&self, uri: String) {
        if self.subscriptions.remove_subscriber(&uri) {
            self.queue_unsubscribe(None, uri);
        }
    }

    /// Unsubscribes from a resource after a delay, unless it has a subscriber again by then.
    fn queue_unsubscribe(&self, key: Option<SessionKey>, uri: String) {
        if self.unsubscribe_queue.add(key, uri) {
            tokio::spawn(run_unsubscribes(Weak::clone(&self.this)));
        }
    }

    /// Unsubscribes from a resource without subscribers.
    async fn unsubscribe(&self, key: Option<&SessionKey>, uri: &str) {
        let Some(key) = key else {
            if !self.subscriptions.contains(uri)
                && let Ok(connection) = self.sessions.gateway_connection().await
            {
                self.subscriptions.unsubscribe(uri, &connection).await;
            }
            return;
        };
        let Some(session) = self
            .session_subscriptions
            .get(key)
            .filter(|subscribed_session| !subscribed_session.subscriptions.contains(uri))
        else {
            return;
        };
        if let Some(connection) = self.sessions.pool.connection_if_open(key) {
            session.subscriptions.unsubscribe(uri, &connection).await;
        }
        // The other resources of the session are unsubscribed from in it.
        if !self.unsubscribe_queue.has_session(key) && self.session_subscriptions.forget_empty(key)
        {
            session.set_hold(None);
        }
    }

    /// Opens a session with subscriptions again. Announces its lists and subscribed resources as changed.
    async fn reopen_session(
        &self,
        key: &SessionKey,
        session: &SubscribedSession,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<Connection, Fault> {
        let lease = self.sessions.pool.lease_for_task(key.clone(), capabilities, None);
        let connection = Box::pin(lease).await?.connection.clone();
        session.set_hold(self.sessions.pool.hold_session(key));
        session.subscriptions.restore(&connection).await;
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            self.announce_to(recipients_of(&key.owner), Change::List(kind));
        }
        for uri in session.subscriptions.uris() {
            self.announce_to(recipients_of(&key.owner), Change::Resource(uri));
        }
        Ok(connection)
    }
}

impl SubscribedSession {
    fn set_hold(&self, hold: Option<SessionHold>) {
        let before = {
            let mut held = self.hold.lock();
            std::mem::replace(&mut *held, hold)
        };
        drop(before);
    }
}

/// Maintains the subscriptions of a session across reconnects, until there are none.
async fn maintain_subscriptions(
    lists: Weak<UpstreamLists>,
    key: SessionKey,
    session: Arc<SubscribedSession>,
    capabilities: Arc<ClientCapabilities>,
) {
    loop {
        let Some(strong) =
            lists.upgrade().filter(|upstream_lists| !upstream_lists.sessions.pool.is_closed())
        else {
            return;
        };
        let known = strong.session_subscriptions.get(&key);
        if known.is_none_or(|known| !Arc::ptr_eq(&known, &session)) {
            return;
        }
        if session.subscriptions.is_empty() {
            // The last subscriber unsubscribes before the task drops the session.
            drop(strong);
            sleep(2 * UNSUBSCRIBE_DELAY).await;
            let Some(strong) = lists.upgrade() else { return };
            if session.subscriptions.is_empty() && strong.session_subscriptions.forget_empty(&key) {
                return session.set_hold(None);
            }
            continue;
        }
        let connection = match strong.sessions.pool.connection_if_open(&key) {
            Some(connection) => connection,
            None if session.is_opened_by_calls => {
                session.set_hold(None);
                session.is_maintained.store(false, Ordering::Release);
                return strong.resubscribe_in_gateway_session(&key, &session).await;
            }
            None => match strong.reopen_session(&key, &session, &capabilities).await {
                Ok(connection) => connection,
                Err(_) => {
                    drop(strong);
                    sleep(RECONNECT_PAUSE).await;
                    continue;
                }
            },
        };
        drop(strong);
        tokio::select! {
            _ = connection.wait_closed() => {}
            () = session.subscriptions.wait_until_empty() => continue,
        }
        sleep(RECONNECT_PAUSE).await;
    }
}

/// Serves the queue of resources to unsubscribe from, until it is empty.
async fn run_unsubscribes(lists: Weak<UpstreamLists>) {
    loop {
        let next = lists.upgrade().and_then(|lists| lists.unsubscribe_queue.next_due());
        let Some(next) = next else { return };
        sleep_until(next).await;
        let Some(lists) = lists.upgrade() else { return };
        while let Some((key, uri)) = lists.unsubscribe_queue.take_due() {
            lists.unsubscribe(key.as_ref(), &uri).await;
        }
    }
}
