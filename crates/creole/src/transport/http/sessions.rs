//! The sessions of an endpoint: found by their ids, bounded in number, forgotten when nobody uses them.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::session::Session;

/// How often sessions are looked through, at most.
const SWEEP: Duration = Duration::from_secs(10);

/// The sessions of an endpoint.
pub(super) struct Sessions {
    most: usize,
    idle: Duration,
    table: RwLock<HashMap<Arc<str>, Arc<Session>>>,
    /// Told when there is a first one.
    begun: Arc<Notify>,
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Arc<Self> {
        let (table, begun) = (RwLock::default(), Arc::default());
        Arc::new(Self { most, idle, table, begun })
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

    /// The session of that id that belongs to the principal: somebody else's is none.
    pub(super) fn find(&self, id: &str, principal: &str) -> Option<Arc<Session>> {
        let session = self.read().get(id).cloned()?;
        (session.principal() == principal && !session.is_closed()).then(|| {
            session.used();
            session
        })
    }

    /// Takes a session out.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.write().remove(id)
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
            self.remove(session.id());
            session.close();
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
