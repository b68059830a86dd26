//! The table of open sessions, with the number that each holder has.
//!
//! A holder may have as many sessions as there is room for. When the table is full, the holder with the most sessions
//! loses one; sessions that were never used go first. So no holder can keep all others out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::serve::http::mcp::session::{QuotaHolder, Session};

/// How long a session may be unused from its start before another holder with as many sessions may replace it.
const GRACE: Duration = Duration::from_secs(120);

/// Maximum number of stale ids, of sessions that ended or were used, in a queue.
const MAX_STALE: usize = 64;

/// There is no room for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionsFull;

/// A session that is in the table, and the session that it replaced.
pub(crate) type InsertedSession = (Arc<Session>, Option<Arc<Session>>);

/// The open sessions.
pub(crate) struct SessionTable {
    max: usize,
    sessions: HashMap<Arc<str>, Arc<Session>>,
    shares: HashMap<QuotaHolder, HolderSessions>,
    /// The sessions that were unused at the last check, oldest first.
    unused: UnusedQueue,
}

/// The sessions of one holder.
#[derive(Default)]
struct HolderSessions {
    count: usize,
    unused: UnusedQueue,
}

/// Session ids in the order in which the sessions were opened; some sessions were used or ended since.
#[derive(Default)]
struct UnusedQueue(VecDeque<Arc<str>>);

impl SessionTable {
    /// A table for at most this many sessions.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            sessions: HashMap::new(),
            shares: HashMap::new(),
            unused: UnusedQueue::default(),
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Session>> {
        self.sessions.get(id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.sessions.len() >= self.max
    }

    /// Adds a session, unless there is one with this id: the first one counts. Returns the session that is in the
    /// table, and the one that it replaced, which must be closed.
    pub(crate) fn insert(
        &mut self,
        session: Arc<Session>,
    ) -> Result<InsertedSession, SessionsFull> {
        if let Some(first) = self.get(session.id()) {
            return Ok((Arc::clone(first), None));
        }
        let gone = self.make_room(session.holder())?;
        let share = self.shares.entry(session.holder().clone()).or_default();
        share.count += 1;
        if !session.was_used() {
            share.unused.push(session.id(), share.count, &self.sessions);
            self.unused.push(session.id(), self.sessions.len(), &self.sessions);
        }
        self.sessions.insert(Arc::clone(session.id()), Arc::clone(&session));
        Ok((session, gone))
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.sessions.remove(id)?;
        if let Some(share) = self.shares.get_mut(session.holder()) {
            share.count -= 1;
            if share.count == 0 {
                self.shares.remove(session.holder());
            }
        }
        Some(session)
    }

    /// Whether there would be room for a session of this holder. May return true although there is none.
    pub(crate) fn may_have_room(&mut self, holder: &QuotaHolder) -> bool {
        !self.is_full()
            || self.find_larger_holder(holder).is_some()
            || self.find_abandoned(holder).is_some()
    }

    /// Removes a session in favour of this holder, if there is no room otherwise.
    fn make_room(&mut self, holder: &QuotaHolder) -> Result<Option<Arc<Session>>, SessionsFull> {
        if !self.is_full() {
            return Ok(None);
        }
        let victim = match self.find_larger_holder(holder) {
            Some(heaviest) => self.least_used(&heaviest),
            None => self.find_abandoned(holder),
        };
        let gone = victim.and_then(|id| self.remove(&id));
        gone.map(Some).ok_or(SessionsFull)
    }

    /// The holder with the most sessions, if it would still have at least as many as this holder after losing one to
    /// it.
    fn find_larger_holder(&self, holder: &QuotaHolder) -> Option<QuotaHolder> {
        let own = self.shares.get(holder).map_or(0, |share| share.count);
        let (heaviest, share) = self.shares.iter().max_by_key(|(_, share)| share.count)?;
        (share.count >= own + 2).then(|| heaviest.clone())
    }

    /// The session of this holder to remove: one that was never used, or else the least recently used one, busy ones
    /// last.
    fn least_used(&mut self, holder: &QuotaHolder) -> Option<Arc<str>> {
        let share = self.shares.get_mut(holder)?;
        if let Some(oldest) = share.unused.oldest(&self.sessions) {
            return Some(Arc::clone(oldest.id()));
        }
        let theirs = self.sessions.values().filter(|session| session.holder() == holder);
        let least = theirs.min_by_key(|session| (session.is_busy(), session.unused_since()))?;
        Some(Arc::clone(least.id()))
    }

    /// The oldest session that was not used within the grace period: one of this holder, or else of any holder.
    fn find_abandoned(&mut self, holder: &QuotaHolder) -> Option<Arc<str>> {
        let own = self.shares.get_mut(holder).and_then(|share| share.unused.oldest(&self.sessions));
        let is_old = |session: &&Arc<Session>| session.unused_since() + GRACE <= Instant::now();
        let oldest = own.filter(is_old);
        let oldest = oldest.or_else(|| self.unused.oldest(&self.sessions).filter(is_old));
        oldest.map(|session| Arc::clone(session.id()))
    }
}

/// Sessions by id.
type SessionsById = HashMap<Arc<str>, Arc<Session>>;

impl UnusedQueue {
    /// Adds an id to a queue for at most `count` sessions.
    fn push(&mut self, id: &Arc<str>, count: usize, known: &SessionsById) {
        if self.0.len() > 2 * count + MAX_STALE {
            self.0.retain(|id| find_unused(id, known).is_some());
        }
        self.0.push_back(Arc::clone(id));
    }

    /// The oldest session that was never used.
    fn oldest<'a>(&mut self, known: &'a SessionsById) -> Option<&'a Arc<Session>> {
        while let Some(id) = self.0.front() {
            if let Some(session) = find_unused(id, known) {
                return Some(session);
            }
            self.0.pop_front();
        }
        None
    }
}

/// The session, if it is open, no client is connected to it and it was never used.
fn find_unused<'a>(id: &str, known: &'a SessionsById) -> Option<&'a Arc<Session>> {
    known.get(id).filter(|session| !session.was_used())
}
