//! The sessions of an endpoint: found by id, limited in number, shared out among callers, and expired when unused.

mod table;

use crate::sync::{Mutex, RwLock};
use std::net::IpAddr;
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::principal::Principal;
use crate::replicas::Replicas;
use crate::serve::http::mcp::session::{QuotaHolder, Session, state_key};
use crate::serve::http::mcp::sessions::table::{SessionTable, SessionsFull};
use crate::server::Service;
use crate::state::{State, StateError};
use crate::telemetry::metrics::{Gauge, table as metric_table};

/// Minimum interval between two sweeps for expired sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum interval between two searches for room, so that rejected clients cannot cause one search each.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum length of our session ids.
const MAX_ID_BYTES: usize = 64;

/// Why there is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionError {
    /// There are too many sessions.
    Full,
    /// No id can be generated.
    NoRandomness,
    /// The request names no session.
    Missing,
    /// The session does not exist, or belongs to another principal.
    Unknown,
    /// The state failed.
    StateUnavailable,
    /// The server shuts down.
    Leaving,
}

impl From<StateError> for SessionError {
    fn from(error: StateError) -> Self {
        tracing::error!(%error, "cannot store a session");
        Self::StateUnavailable
    }
}

/// The sessions of an endpoint.
pub(crate) struct Sessions {
    service: Service,
    state: State,
    /// The replicas that share the state, if there may be several.
    replicas: Option<Replicas>,
    idle: Duration,
    table: RwLock<SessionTable>,
    /// When the last search for room was.
    last_search: Mutex<Option<Instant>>,
    /// Notified when the first session is added.
    first_session: Arc<Notify>,
    _limit: Option<Gauge>,
}

impl Sessions {
    pub(crate) fn new(
        service: Service,
        state: State,
        peers: Option<Replicas>,
        max: usize,
        idle: Duration,
    ) -> Arc<Self> {
        let limit = service.server_metrics().map(|server| {
            let limit = server.metrics().gauge(&metric_table::SESSIONS_LIMIT, &[server.name()]);
            limit.set(i64::try_from(max).unwrap_or(i64::MAX));
            limit
        });
        let (table, searched) = (RwLock::new(SessionTable::new(max)), Mutex::default());
        Arc::new(Self {
            service,
            state,
            replicas: peers,
            idle,
            table,
            last_search: searched,
            first_session: Arc::default(),
            _limit: limit,
        })
    }

    /// Notified when the first session is added.
    pub(crate) fn first_session(&self) -> Arc<Notify> {
        Arc::clone(&self.first_session)
    }

    /// Whether there may be room for another session of this holder, after expired sessions are removed.
    pub(crate) fn has_room(&self, holder: &QuotaHolder) -> bool {
        if self.read().is_full() {
            self.expire_if_due();
        }
        self.write().may_have_room(holder)
    }

    /// Removes expired sessions, unless that was just done.
    fn expire_if_due(&self) {
        let now = Instant::now();
        let mut searched = self.last_search.lock();
        if searched.is_none_or(|last| last + SEARCH_INTERVAL <= now) {
            *searched = Some(now);
            drop(searched);
            self.expire();
        }
    }

    /// Adds a session, if necessary in the place of another. Returns the session with this id that was added first.
    pub(crate) async fn insert(&self, session: Arc<Session>) -> Result<Arc<Session>, SessionError> {
        let inserted = self.write().insert(session);
        let (session, gone) = inserted.map_err(|SessionsFull| SessionError::Full)?;
        self.first_session.notify_one();
        if let Some(gone) = gone {
            self.evict(&gone).await;
        }
        Ok(session)
    }

    /// Ends a session that had to make room.
    async fn evict(&self, gone: &Session) {
        tracing::debug!(target: "creole::http", "a session was evicted");
        gone.close();
        if self.replicas.is_some() {
            // Another replica may use it; its saved record expires.
            return;
        }
        if let Err(error) = self.state.remove(&state_key(gone.id())).await {
            tracing::warn!(%error, "cannot remove an evicted session from the state");
        }
    }

    /// The session with this id that belongs to the principal; another principal's is reported as not found. A session
    /// that another replica opened continues here.
    pub(crate) async fn find(
        &self,
        id: &str,
        principal: &Principal,
        client: Option<IpAddr>,
    ) -> Result<Option<Arc<Session>>, SessionError> {
        if let Some(session) = self.find_local(id, principal) {
            return Ok(session);
        }
        if id.len() > MAX_ID_BYTES {
            return Ok(None);
        }
        let Some(entry) = self.state.get(&state_key(id)).await? else { return Ok(None) };
        let (service, peers) = (self.service.clone(), self.replicas.clone());
        let holder = QuotaHolder::new(principal, client);
        let resumed = Session::resume(service, id, principal, holder, &entry, peers);
        let Some(resumed) = resumed else { return Ok(None) };
        if !self.has_room(resumed.holder()) {
            return Err(SessionError::Full);
        }
        resumed.mark_used();
        self.insert(resumed).await.map(Some)
    }

    /// The session with this id, if this process has it; `Some(None)` if it belongs to another principal or is closed.
    pub(crate) fn find_local(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Option<Option<Arc<Session>>> {
        let session = self.read().get(id).cloned()?;
        if !session.is_owned_by(principal) || session.is_closed() {
            return Some(None);
        }
        session.mark_used();
        Some(Some(session))
    }

    /// Whether there is nothing to save.
    pub(crate) fn is_saved(&self, session: &Session) -> bool {
        let is_recent = session.saved_since() + self.idle / 4 > Instant::now();
        let is_current = session.saved_format() == self.state.written_format();
        is_recent && is_current && !session.is_changed()
    }

    /// Saves the changes of a session, and that it is in use. Changes that could not be saved are saved with the next
    /// request.
    pub(crate) async fn save(&self, session: &Session) -> Result<(), StateError> {
        let format = self.state.written_format();
        if session.saved_format() != format {
            // Not all replicas may read the record as it is.
            session.host().keep_changed_record();
        }
        if let Some(record) = session.changed_record() {
            let mut taken = TakenRecord { session, is_saved: false };
            self.state.put(&state_key(session.id()), record, Some(self.idle)).await?;
            taken.is_saved = true;
            session.mark_saved(format);
        } else if session.saved_since() + self.idle / 4 <= Instant::now() {
            self.state.touch(&state_key(session.id()), Some(self.idle)).await?;
            session.mark_saved(format);
        }
        Ok(())
    }

    /// Forgets a session that could not be saved, and that its client does not know.
    pub(crate) fn discard(&self, session: &Session) {
        self.write().remove(session.id());
        session.close();
    }

    /// Ends a session permanently.
    pub(crate) async fn end(&self, session: &Session) -> Result<(), StateError> {
        self.discard(session);
        self.state.remove(&state_key(session.id())).await.map(drop)
    }

    /// Removes the sessions that were unused for too long; returns when the next check is due, if any.
    pub(crate) fn expire(&self) -> Option<Instant> {
        let now = Instant::now();
        let is_over = |session: &Session| {
            let is_unused = || !session.is_busy() && session.unused_since() + self.idle <= now;
            session.is_closed() || is_unused()
        };
        let over: Vec<_> = self.read().all().filter(|session| is_over(session)).cloned().collect();
        for session in over {
            // Its saved record expires: another replica may use it.
            self.write().remove(session.id());
            session.close();
        }
        // Idle sessions must not keep old streams for longer than active ones, which drop them with their next request.
        self.read().all().for_each(|session| session.host().forget_streams());
        if self.replicas.is_some() {
            self.read().all().for_each(|session| session.unregister_if_empty());
        }
        let pause = SWEEP_INTERVAL.min(self.idle).max(Duration::from_millis(10));
        (!self.read().is_empty()).then(|| now + pause)
    }

    /// All sessions.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.read().all().cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, SessionTable> {
        self.table.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, SessionTable> {
        self.table.write()
    }
}

/// A record on its way to the state. If it does not get there, it is taken again.
struct TakenRecord<'a> {
    session: &'a Session,
    is_saved: bool,
}

impl Drop for TakenRecord<'_> {
    fn drop(&mut self) {
        if !self.is_saved {
            self.session.host().keep_changed_record();
        }
    }
}
