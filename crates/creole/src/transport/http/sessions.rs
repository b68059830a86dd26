//! The sessions of an endpoint: found by their ids, bounded in number, forgotten when nobody uses them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::session::Session;
use crate::peers::Peers;
use crate::server::Service;
use crate::state::{State, StateError};

/// How often sessions are looked through, at most.
const SWEEP: Duration = Duration::from_secs(10);

/// No id of ours is longer.
const LONGEST_ID: usize = 64;

/// The sessions of an endpoint.
pub(super) struct Sessions {
    service: Service,
    state: State,
    /// The processes that share it, where there may be several.
    peers: Option<Peers>,
    most: usize,
    idle: Duration,
    table: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    /// Told when there is a first one.
    begun: Arc<Notify>,
}

impl Sessions {
    pub(super) fn new(
        service: Service,
        state: State,
        peers: Option<Peers>,
        most: usize,
        idle: Duration,
    ) -> Arc<Self> {
        let (table, begun) = (RwLock::default(), Arc::default());
        Arc::new(Self { service, state, peers, most, idle, table, begun })
    }

    /// Resolves its waiters when there is a first session.
    pub(super) fn begun(&self) -> Arc<Notify> {
        Arc::clone(&self.begun)
    }

    /// Whether there is room for one more, now that the unused ones are gone.
    pub(super) fn has_room(&self) -> bool {
        if self.read().len() >= self.most {
            self.expire();
        }
        self.read().len() < self.most
    }

    /// Adds a session; tells whether there was room.
    pub(super) fn insert(&self, session: Arc<Session>) -> bool {
        let mut table = self.write();
        if table.len() >= self.most {
            return false;
        }
        if table.is_empty() {
            self.begun.notify_one();
        }
        table.insert(Arc::clone(session.id()), session);
        true
    }

    /// The session of that id that belongs to the principal: somebody else's is none. One that another
    /// process opened goes on here.
    pub(super) async fn find(
        &self,
        id: &str,
        principal: &str,
    ) -> Result<Option<Arc<Session>>, StateError> {
        if let Some(found) = self.live(id, principal) {
            return Ok(found);
        }
        if id.len() > LONGEST_ID {
            return Ok(None);
        }
        let Some(entry) = self.state.get(&key(id)).await? else { return Ok(None) };
        let (service, peers) = (self.service.clone(), self.peers.clone());
        let resumed = Session::resume(service, id, principal, &entry.value, peers);
        let Some(resumed) = resumed else { return Ok(None) };
        // Somebody may have been faster; the first one counts.
        let mut table = self.write();
        let session = table.entry(id.into()).or_insert(resumed);
        self.begun.notify_one();
        Ok(Some(Arc::clone(session)))
    }

    /// The session of that id, if this process has it: theirs, or none for the principal.
    pub(super) fn live(&self, id: &str, principal: &str) -> Option<Option<Arc<Session>>> {
        let session = self.read().get(id).cloned()?;
        let is_theirs = session.owner() == principal && !session.is_closed();
        session.used();
        Some(is_theirs.then_some(session))
    }

    /// Whether there is nothing to write down.
    pub(super) fn is_saved(&self, session: &Session) -> bool {
        let is_recent = session.saved_since() + self.idle / 4 > Instant::now();
        is_recent && !session.is_changed()
    }

    /// Writes down what has to be kept of a session, and that it is in use.
    pub(super) async fn save(&self, session: &Session) -> Result<(), StateError> {
        if let Some(record) = session.changed_record() {
            self.state.put(&key(session.id()), record, Some(self.idle)).await?;
            session.saved();
        } else if session.saved_since() + self.idle / 4 <= Instant::now() {
            self.state.touch(&key(session.id()), Some(self.idle)).await?;
            session.saved();
        }
        Ok(())
    }

    /// Ends a session for good.
    pub(super) async fn end(&self, session: &Session) -> Result<(), StateError> {
        self.write().remove(&**session.id());
        session.close();
        self.state.remove(&key(session.id())).await.map(drop)
    }

    /// Forgets the sessions that were not used for too long; tells when to look again, if ever.
    pub(super) fn expire(&self) -> Option<Instant> {
        let now = Instant::now();
        let is_over = |session: &Session| {
            let is_unused = || !session.is_busy() && session.unused_since() + self.idle <= now;
            session.is_closed() || is_unused()
        };
        let over: Vec<_> =
            self.read().values().filter(|session| is_over(session)).cloned().collect();
        for session in over {
            // What was written down of it ends by its own age: somebody else may be using it.
            self.write().remove(&**session.id());
            session.close();
        }
        if self.peers.is_some() {
            self.read().values().for_each(|session| session.hide_if_empty());
        }
        let pause = SWEEP.min(self.idle).max(Duration::from_millis(10));
        (!self.read().is_empty()).then(|| now + pause)
    }

    /// Every session there is.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.read().values().cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(id: &str) -> String {
    format!("session/{id}")
}
