//! Resources that callers watch, each in the session that the caller's calls use: a server tells of changes there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use creole::call::{ConnectionId, Context};
use creole::client::Connection;
use creole::proto::fault::Fault;
use creole::proto::model::{ClientCapabilities, ListKind};
use creole::proto::op::{Change, Outcome};
use tokio::time::sleep;

use super::follow::recipients;
use super::keeper::PAUSE;
use super::pool::{Hold, Key};
use super::watch::Watching;
use super::{Affinity, LINGER, Upstream};

/// What is watched in sessions of callers.
#[derive(Default)]
pub(super) struct WatchedSessions(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    sessions: HashMap<Key, Arc<WatchedSession>>,
    /// The sessions in which connections of clients watch a resource: nothing for the gateway's own. One connection
    /// may watch a resource twice.
    watchers: HashMap<(ConnectionId, String), Vec<Option<Key>>>,
}

struct WatchedSession {
    watching: Watching,
    /// Keeps the session open while something is watched in it.
    hold: Mutex<Option<Hold>>,
}

impl WatchedSessions {
    /// The session of this key, and whether it is new.
    fn session(&self, key: &Key) -> (Arc<WatchedSession>, bool) {
        let sessions = &mut self.lock().sessions;
        if let Some(session) = sessions.get(key) {
            return (Arc::clone(session), false);
        }
        let session =
            Arc::new(WatchedSession { watching: Watching::default(), hold: Mutex::default() });
        sessions.insert(key.clone(), Arc::clone(&session));
        (session, true)
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

    fn add(&self, connection: ConnectionId, uri: &str, key: Option<Key>) {
        let watchers = &mut self.lock().watchers;
        watchers.entry((connection, uri.to_owned())).or_default().push(key);
    }

    /// Removes one subscription. Returns the session that it was in.
    fn remove(&self, connection: ConnectionId, uri: &str) -> Option<Option<Key>> {
        let watchers = &mut self.lock().watchers;
        let watcher = (connection, uri.to_owned());
        let keys = watchers.get_mut(&watcher)?;
        let key = keys.pop();
        if keys.is_empty() {
            watchers.remove(&watcher);
        }
        key
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
        let subscribed = match &own {
            None => self.subscribe_main(uri).await,
            Some(own) => match self.pool.opened(&own.key) {
                Some(connection) => Ok(self.subscribe_in(own, uri, &connection).await),
                None => match self.lease_own(own, context).await {
                    Ok(Some(lease)) => Ok(self.subscribe_in(own, uri, &lease.connection).await),
                    // It is of the other era, which keeps no sessions.
                    Ok(None) => return Box::pin(self.subscribe(uri, context)).await,
                    Err(fault) => Err(fault),
                },
            },
        };
        let outcome = subscribed.unwrap_or_else(Outcome::Fail);
        if matches!(outcome, Outcome::Complete(_)) {
            self.watched.add(context.connection_id(), uri, own.map(|own| own.key));
        }
        outcome
    }

    async fn subscribe_main(&self, uri: &str) -> Result<Outcome, Fault> {
        let connection = self.main().await?;
        Ok(self.watching.subscribe(uri, &connection).await)
    }

    async fn subscribe_in(
        &self,
        own: &super::own_session::OwnSession,
        uri: &str,
        connection: &Connection,
    ) -> Outcome {
        let (session, is_new) = self.watched.session(&own.key);
        session.set_hold(self.pool.hold(&own.key));
        let outcome = session.watching.subscribe(uri, connection).await;
        if is_new {
            let (key, capabilities) = (own.key.clone(), Arc::clone(&own.capabilities));
            tokio::spawn(keep(Weak::clone(&self.this), key, capabilities));
        }
        outcome
    }

    /// Ends one subscription of a connection.
    pub(super) fn unwatch(&self, uri: &str, connection: ConnectionId) {
        let Some(key) = self.watched.remove(connection, uri) else { return };
        let is_last = match &key {
            None => self.watching.remove(uri),
            Some(key) => self.watched.known(key).is_some_and(|it| it.watching.remove(uri)),
        };
        if is_last {
            tokio::spawn(leave(Weak::clone(&self.this), key, uri.to_owned()));
        }
    }

    /// Unsubscribes from a resource that nobody watches any more.
    async fn unsubscribe(&self, key: Option<&Key>, uri: &str) {
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
        if self.watched.forget_empty(key) {
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

/// Unsubscribes after a while: many come back at once.
async fn leave(upstream: Weak<Upstream>, key: Option<Key>, uri: String) {
    sleep(LINGER).await;
    if let Some(upstream) = upstream.upgrade() {
        upstream.unsubscribe(key.as_ref(), &uri).await;
    }
}

/// Keeps the subscriptions of a session while there are any, also when the session ends.
async fn keep(upstream: Weak<Upstream>, key: Key, capabilities: Arc<ClientCapabilities>) {
    loop {
        let Some(strong) = upstream.upgrade().filter(|it| !it.pool.is_closed()) else { return };
        let Some(session) = strong.watched.known(&key) else { return };
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
            None => match strong.watch_again(&key, &session, &capabilities).await {
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
            _ = connection.closed() => {}
            () = session.watching.emptied() => continue,
        }
        sleep(PAUSE).await;
    }
}
