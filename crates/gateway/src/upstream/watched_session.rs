//! Resources that callers watch, each in the session that the caller's calls use: a server tells of changes there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use creole::call::{ConnectionId, Context};
use creole::client::Connection;
use creole::proto::fault::Fault;
use creole::proto::model::{ClientCapabilities, ListKind};
use creole::proto::operation::{Change, Outcome};
use tokio::time::sleep;

use super::follow::recipients;
use super::keeper::PAUSE;
use super::own_session::OwnSession;
use super::pool::{Hold, Key, Lease, Owner};
use super::watch::Watching;
use super::{Affinity, LINGER, Upstream};

/// What is watched in sessions of callers.
#[derive(Default)]
pub(super) struct WatchedSessions(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    sessions: HashMap<Key, Arc<WatchedSession>>,
    /// Where connections of clients watch a resource. One connection may watch a resource twice.
    watchers: HashMap<(ConnectionId, String), Vec<Watcher>>,
}

/// Where a connection of a client watches a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Watcher {
    /// The session of the caller, which need not be open; nothing for a caller that has none.
    key: Option<Key>,
    /// Whether it watches in the gateway's own session: instead, or until its session is open.
    is_in_main: bool,
}

struct WatchedSession {
    watching: Watching,
    /// Keeps the session open while something is watched in it.
    hold: Mutex<Option<Hold>>,
    /// Whether only a call of its caller opens the session.
    opens_with_calls: bool,
    /// Whether a task opens the session again when it ends, or looks for another place to watch in.
    is_kept: AtomicBool,
}

impl WatchedSessions {
    /// The session of this key.
    fn session(&self, key: &Key, opens_with_calls: bool) -> Arc<WatchedSession> {
        let sessions = &mut self.lock().sessions;
        let session = sessions.entry(key.clone()).or_insert_with(|| {
            Arc::new(WatchedSession {
                watching: Watching::default(),
                hold: Mutex::default(),
                opens_with_calls,
                is_kept: AtomicBool::new(false),
            })
        });
        Arc::clone(session)
    }

    fn known(&self, key: &Key) -> Option<Arc<WatchedSession>> {
        self.lock().sessions.get(key).map(Arc::clone)
    }

    /// Forgets a session in which nothing is watched any more. Returns whether it did.
    fn forget_empty(&self, key: &Key) -> bool {
        let sessions = &mut self.lock().sessions;
        let is_empty = sessions.get(key).is_none_or(|session| session.watching.is_empty());
        if is_empty {
            sessions.remove(key);
        }
        is_empty
    }

    fn add(&self, connection: ConnectionId, uri: &str, watcher: Watcher) {
        let watchers = &mut self.lock().watchers;
        watchers.entry((connection, uri.to_owned())).or_default().push(watcher);
    }

    /// Removes one subscription. Returns where it was.
    fn remove(&self, connection: ConnectionId, uri: &str) -> Option<Watcher> {
        let watchers = &mut self.lock().watchers;
        let connection = (connection, uri.to_owned());
        let all = watchers.get_mut(&connection)?;
        let watcher = all.pop();
        if all.is_empty() {
            watchers.remove(&connection);
        }
        watcher
    }

    /// Has the callers of a session watch in the gateway's own one too, or no longer. `act` does so for one of them, and
    /// returns whether it could.
    fn set_in_main(&self, key: &Key, is_in_main: bool, mut act: impl FnMut(&str) -> bool) {
        for ((_, uri), all) in &mut self.lock().watchers {
            for watcher in all.iter_mut().filter(|it| it.key.as_ref() == Some(key)) {
                if watcher.is_in_main != is_in_main && act(uri) {
                    watcher.is_in_main = is_in_main;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upstream {
    /// Watches a resource for a caller, in the session that its calls use. A caller whose calls have a session each
    /// watches in the gateway's own one.
    pub(super) async fn subscribe(&self, uri: &str, context: &Context) -> Outcome {
        let own = self.own_session(context).filter(|own| own.has_session());
        let own = own.filter(|_| self.affinity(context) != Affinity::Request);
        let mut is_in_main = own.is_none();
        let subscribed = match &own {
            None => self.subscribe_main(uri).await,
            Some(own) => match self.pool.opened(&own.key) {
                Some(connection) => Ok(self.subscribe_in(own, uri, &connection, context).await),
                None if own.opens_with_calls(context) => {
                    is_in_main = true;
                    self.subscribe_early(own, uri).await
                }
                None => match self.lease_own(own, context).await {
                    Ok(Some(lease)) => {
                        Ok(self.subscribe_in(own, uri, &lease.connection, context).await)
                    }
                    // It is of the other era, which keeps no sessions.
                    Ok(None) => return Box::pin(self.subscribe(uri, context)).await,
                    Err(fault) => Err(fault),
                },
            },
        };
        let outcome = subscribed.unwrap_or_else(Outcome::Fail);
        if matches!(outcome, Outcome::Complete(_)) {
            let key = own.map(|own| own.key);
            self.watched.add(
                context.connection_id(),
                uri,
                Watcher { key: key.clone(), is_in_main },
            );
            // A call may have opened the session meanwhile.
            if let Some(key) = key.filter(|_| is_in_main)
                && let Some(connection) = self.pool.opened(&key)
            {
                self.watch_in(&key, &connection).await;
            }
        }
        outcome
    }

    /// Watches a resource in the gateway's own session until a call opens that of the caller.
    async fn subscribe_early(&self, own: &OwnSession, uri: &str) -> Result<Outcome, Fault> {
        let outcome = self.subscribe_main(uri).await?;
        if matches!(outcome, Outcome::Complete(_))
            && let Err(fault) = self.watched.session(&own.key, true).watching.add(uri)
        {
            self.leave_main(uri.to_owned());
            return Err(fault);
        }
        Ok(outcome)
    }

    /// Watches in a session that a call opened what its callers watch.
    pub(super) async fn watch_in_new(&self, lease: &Lease) {
        let Some(key) = lease.new_key().filter(|key| key.owner != Owner::Gateway) else { return };
        // Further sessions of the caller are there while calls wait in the first one.
        let first = Key { lane: 0, ..key.clone() };
        match key.lane {
            0 => self.watch_in(&first, &lease.connection).await,
            _ => {
                if let Some(session) = self.watched.known(&first) {
                    session.watching.restore_in_time(&lease.connection).await;
                }
            }
        }
    }

    /// Watches in the open session of this key what its callers watch.
    async fn watch_in(&self, key: &Key, connection: &Connection) {
        let Some(session) = self.watched.known(key) else { return };
        session.set_hold(self.pool.hold(key));
        session.watching.restore_in_time(connection).await;
        self.watched.set_in_main(key, false, |uri| {
            self.leave_main(uri.to_owned());
            true
        });
        if session.opens_with_calls {
            // The task does not open such a session, so it needs no capabilities.
            self.keep(key, &session, &self.nothing);
        }
    }

    /// Watches in the gateway's own session what the callers of a session watch that is over, until a call opens it
    /// again.
    async fn watch_in_main(&self, key: &Key, session: &WatchedSession) {
        self.watched.set_in_main(key, true, |uri| self.watching.add(uri).is_ok());
        if let Ok(connection) = self.main().await {
            self.watching.restore_in_time(&connection).await;
        }
        for uri in session.watching.all() {
            self.announce_to(recipients(&key.owner), Change::Resource(uri));
        }
    }

    /// Has a task open a session again that ends while something is watched in it.
    fn keep(&self, key: &Key, session: &Arc<WatchedSession>, asks: &Arc<ClientCapabilities>) {
        if !session.is_kept.swap(true, Ordering::AcqRel) {
            let (key, session, asks) = (key.clone(), Arc::clone(session), Arc::clone(asks));
            tokio::spawn(keep(Weak::clone(&self.this), key, session, asks));
        }
    }

    async fn subscribe_main(&self, uri: &str) -> Result<Outcome, Fault> {
        let connection = self.main().await?;
        Ok(self.watching.subscribe(uri, &connection).await)
    }

    async fn subscribe_in(
        &self,
        own: &OwnSession,
        uri: &str,
        connection: &Connection,
        context: &Context,
    ) -> Outcome {
        let session = self.watched.session(&own.key, own.opens_with_calls(context));
        session.set_hold(self.pool.hold(&own.key));
        let outcome = session.watching.subscribe(uri, connection).await;
        self.keep(&own.key, &session, &own.capabilities);
        outcome
    }

    /// Ends one subscription of a connection.
    pub(super) fn unwatch(&self, uri: &str, connection: ConnectionId) {
        let Some(watcher) = self.watched.remove(connection, uri) else { return };
        if watcher.is_in_main {
            self.leave_main(uri.to_owned());
        }
        let session = watcher.key.as_ref().and_then(|key| self.watched.known(key));
        if session.is_some_and(|session| session.watching.remove(uri)) {
            self.unsubscribing.add(&self.this, watcher.key, uri.to_owned());
        }
    }

    /// Watches a resource for one less in the gateway's own session.
    fn leave_main(&self, uri: String) {
        if self.watching.remove(&uri) {
            self.unsubscribing.add(&self.this, None, uri);
        }
    }

    /// Unsubscribes from a resource that nobody watches any more.
    pub(super) async fn unsubscribe(&self, key: Option<&Key>, uri: &str) {
        let Some(key) = key else {
            if !self.watching.has(uri)
                && let Ok(connection) = self.main().await
            {
                self.watching.unsubscribe(uri, &connection).await;
            }
            return;
        };
        let Some(session) = self.watched.known(key).filter(|it| !it.watching.has(uri)) else {
            return;
        };
        if let Some(connection) = self.pool.opened(key) {
            session.watching.unsubscribe(uri, &connection).await;
        }
        // The other resources are unsubscribed from in the same session.
        if !self.unsubscribing.has(key) && self.watched.forget_empty(key) {
            session.set_hold(None);
        }
    }

    /// Opens a session again that ended while something was watched in it. Everything there may have changed.
    async fn watch_again(
        &self,
        key: &Key,
        session: &WatchedSession,
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<Connection, Fault> {
        let lease = self.pool.lease_again(key.clone(), capabilities, None);
        let connection = Box::pin(lease).await?.connection.clone();
        session.set_hold(self.pool.hold(key));
        session.watching.restore(&connection).await;
        for kind in [ListKind::Tools, ListKind::Resources, ListKind::Prompts] {
            self.announce_to(recipients(&key.owner), Change::List(kind));
        }
        for uri in session.watching.all() {
            self.announce_to(recipients(&key.owner), Change::Resource(uri));
        }
        Ok(connection)
    }
}

impl WatchedSession {
    fn set_hold(&self, hold: Option<Hold>) {
        let before = {
            let mut held = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *held, hold)
        };
        drop(before);
    }
}

/// Keeps the subscriptions of a session while there are any, also when the session ends.
async fn keep(
    upstream: Weak<Upstream>,
    key: Key,
    session: Arc<WatchedSession>,
    asks: Arc<ClientCapabilities>,
) {
    loop {
        let Some(strong) = upstream.upgrade().filter(|it| !it.pool.is_closed()) else { return };
        let known = strong.watched.known(&key);
        if known.is_none_or(|known| !Arc::ptr_eq(&known, &session)) {
            return;
        }
        if session.watching.is_empty() {
            // Whoever left last unsubscribes first.
            drop(strong);
            sleep(2 * LINGER).await;
            let Some(strong) = upstream.upgrade() else { return };
            if session.watching.is_empty() && strong.watched.forget_empty(&key) {
                return session.set_hold(None);
            }
            continue;
        }
        let connection = match strong.pool.opened(&key) {
            Some(connection) => connection,
            None if session.opens_with_calls => {
                session.set_hold(None);
                session.is_kept.store(false, Ordering::Release);
                return strong.watch_in_main(&key, &session).await;
            }
            None => match strong.watch_again(&key, &session, &asks).await {
                Ok(connection) => connection,
                Err(_) => {
                    drop(strong);
                    sleep(PAUSE).await;
                    continue;
                }
            },
        };
        drop(strong);
        tokio::select! {
            _ = connection.wait_closed() => {}
            () = session.watching.emptied() => continue,
        }
        sleep(PAUSE).await;
    }
}
