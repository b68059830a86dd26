//! The pool of upstream connections. Each connection serves one session key and is never reused for another.
//!
//! Session sharing is a matter of security: the state of an upstream session, and its input requests, must not reach
//! another caller.

mod connection_cell;
mod lease;
mod slots;

pub(crate) use lease::UpstreamLease;

use creole::internal::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

use creole::internal::client::{Connection, ServerNotification};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{ClientCapabilities, Level, ListKind};
use creole::proto::operation::Change;
use creole::proto::revision::Era;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::upstream::connections::active_calls::ActiveCalls;
use crate::upstream::connections::connector::UpstreamConnector;
use crate::upstream::connections::inspected_connection::{InspectedConnection, owner_name};
use crate::upstream::connections::session_client::SessionClient;
use crate::upstream::connections::session_key::{SessionKey, SessionOwner};
use connection_cell::ConnectionCell;
use slots::{PoolFull, UpstreamSlots};

/// How long a connection may be idle before it is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a call may wait for an exclusive connection.
const EXCLUSIVE_WAIT: Duration = Duration::from_secs(60);

/// The maximum number of exclusive connections of one caller. Each holds at most one parked call.
pub(crate) const MAX_LANES: usize = 16;

/// How long an evicted call may take to free its connection.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(5);

/// The capacity of the queue of session changes.
const CHANGE_QUEUE: usize = 256;

/// How long it may take to close all connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

/// The calls that hold exclusive connections while their callers fetch input.
pub(crate) trait EvictParkedCall: Send + Sync {
    /// Evicts the oldest parked call of this principal that no caller waits for, if there is one. The sender is dropped
    /// when its connection is free. Calls of other principals are not affected.
    fn evict_oldest(&self, principal: &str) -> Option<oneshot::Receiver<()>>;
}

/// The connections to one upstream.
pub(crate) struct UpstreamPool {
    connector: Arc<UpstreamConnector>,
    parked_calls: Arc<dyn EvictParkedCall>,
    slots: Mutex<UpstreamSlots>,
    /// The changes that the upstream announces in callers' sessions.
    changes: broadcast::Sender<SessionChange>,
    is_closed: AtomicBool,
}

/// A change in the session of one key.
#[derive(Clone, Debug)]
pub(crate) struct SessionChange {
    pub(crate) key: SessionKey,
    /// `None` when the session ended.
    pub(crate) change: Option<Change>,
}

/// Keeps a session open while no call runs in it.
pub(crate) struct SessionHold(
    #[expect(dead_code, reason = "a slot in use is not idle")] Arc<UpstreamSlot>,
);

/// The slot of one connection.
pub(crate) struct UpstreamSlot {
    /// `None` for a session that is not in the pool.
    key: Option<SessionKey>,
    /// The connection, if there is one. The first caller that needs it opens it.
    cell: ConnectionCell,
    active_calls: ActiveCalls,
    exclusive: Arc<Semaphore>,
    last_used: Mutex<Instant>,
    /// The lowest log level that was requested in this session.
    log_level: Mutex<Option<Level>>,
    /// Whether the only call in it is parked.
    is_parked: AtomicBool,
}

impl UpstreamSlot {
    fn new(key: Option<SessionKey>) -> Arc<Self> {
        Arc::new(Self {
            key,
            cell: ConnectionCell::default(),
            active_calls: ActiveCalls::default(),
            exclusive: Arc::new(Semaphore::new(1)),
            last_used: Mutex::new(Instant::now()),
            log_level: Mutex::default(),
            is_parked: AtomicBool::new(false),
        })
    }

    /// Notifies the upstream that the roots of its client changed.
    pub(crate) fn notify_roots_changed(&self) {
        if let Some(connection) = self.connection_if_open() {
            connection.roots_changed();
        }
    }

    fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    /// Whether no call runs in it.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    fn idle_since(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Retires the connection if the upstream sent input requests after its call was abandoned.
    fn retire_if_stray(&self) {
        if self.active_calls.take_stray_requests() {
            self.cell.take();
        }
    }

    /// The connection, if it is open.
    fn connection_if_open(&self) -> Option<Connection> {
        self.cell.open_connection()
    }

    /// Returns the connection and opens it if necessary.
    async fn open(
        &self,
        connector: &UpstreamConnector,
        (owner, era): (&SessionOwner, Era),
        capabilities: &Arc<ClientCapabilities>,
        changes: &broadcast::Sender<SessionChange>,
    ) -> Result<Connection, Fault> {
        let _filling = self.cell.lock_for_filling().await;
        if let Some(connection) = self.connection_if_open() {
            return Ok(connection);
        }
        if let Some(closed) = self.cell.take().and_then(|gone| gone.close_reason())
            && !closed.session_lost
        {
            connector.record_failure(&closed.fault, owner);
        }
        self.active_calls.reset();
        let connection =
            connector.open(&self.active_calls.client_offer(capabilities), owner, era).await?;
        if let Some(key) = self.key.clone().filter(|_| *owner != SessionOwner::Gateway) {
            tokio::spawn(forward_changes(connection.notifications(), key, changes.clone()));
        }
        self.cell.fill(connection.clone());
        *self.log_level.lock() = None;
        Ok(connection)
    }
}

impl UpstreamPool {
    /// A pool with these limits: connections of callers in total, and per principal.
    pub(crate) fn new(
        connector: Arc<UpstreamConnector>,
        parked_calls: Arc<dyn EvictParkedCall>,
        (max, share): (usize, usize),
    ) -> Arc<Self> {
        let pool = Arc::new(Self {
            connector,
            parked_calls,
            slots: Mutex::new(UpstreamSlots::new(max, share)),
            changes: broadcast::Sender::new(CHANGE_QUEUE),
            is_closed: AtomicBool::new(false),
        });
        tokio::spawn(sweep_idle(Arc::downgrade(&pool)));
        pool
    }

    /// Leases a connection for one call and opens it if necessary. If all exclusive connections of the caller hold
    /// parked calls, the oldest of these is evicted.
    pub(crate) async fn lease(
        &self,
        key: SessionKey,
        capabilities: &Arc<ClientCapabilities>,
        session: Option<Arc<str>>,
    ) -> Result<UpstreamLease, Fault> {
        let (owner, era) = (key.owner.clone(), key.era);
        let (slot, permit, lane) = match key.exclusive {
            false => (self.slot_for(key)?, None, 0),
            true => {
                let (slot, permit, lane) = Box::pin(self.lease_exclusive(key)).await?;
                (slot, Some(permit), lane)
            }
        };
        if permit.is_some() {
            slot.retire_if_stray();
        }
        // Added before the connection opens: some upstreams send input requests immediately.
        let joined = slot.active_calls.add_call(session);
        let (connection, is_new) = self.open_slot(&slot, (&owner, era), capabilities).await?;
        Ok(UpstreamLease { connection, active_call: joined, lane, permit, pool_slot: slot, is_new })
    }

    /// Opens a session for no call. Its input requests go to this client, if there is one.
    pub(crate) async fn open_session(
        &self,
        key: SessionKey,
        capabilities: &Arc<ClientCapabilities>,
        client: impl FnOnce(Weak<UpstreamSlot>) -> Option<SessionClient>,
    ) -> Result<Connection, Fault> {
        let (owner, era) = (key.owner.clone(), key.era);
        let slot = self.slot_for(key)?;
        // Set before the connection opens: some upstreams send input requests immediately.
        if slot.active_calls.client().is_none()
            && let Some(client) = client(Arc::downgrade(&slot))
        {
            slot.active_calls.set_client(client);
        }
        Ok(self.open_slot(&slot, (&owner, era), capabilities).await?.0)
    }

    /// Leases the connection in which a call became a task, without waiting for exclusive use: input requests of tasks
    /// name their task, and those that name none belong to the call with exclusive use.
    pub(crate) async fn lease_for_task(
        &self,
        key: SessionKey,
        capabilities: &Arc<ClientCapabilities>,
        session: Option<Arc<str>>,
    ) -> Result<UpstreamLease, Fault> {
        let (owner, era) = (key.owner.clone(), key.era);
        let (lane, exclusive) = (key.lane, key.exclusive);
        let slot = self.slot_for(key)?;
        let joined = match exclusive {
            true => ActiveCalls::default().add_call(session),
            false => slot.active_calls.add_call(session),
        };
        let (connection, is_new) = self.open_slot(&slot, (&owner, era), capabilities).await?;
        Ok(UpstreamLease {
            connection,
            active_call: joined,
            lane,
            permit: None,
            pool_slot: slot,
            is_new,
        })
    }

    /// The connection of a slot, and whether this call opened it.
    async fn open_slot(
        &self,
        slot: &UpstreamSlot,
        whose: (&SessionOwner, Era),
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<(Connection, bool), Fault> {
        if let Some(connection) = slot.connection_if_open() {
            return Ok((connection, false));
        }
        let opening = slot.open(&self.connector, whose, capabilities, &self.changes);
        Ok((Box::pin(opening).await?, true))
    }

    /// Leases a connection for exclusive use: the first free one, so that a caller finds its session state again, or a
    /// further one while the others hold parked calls.
    async fn lease_exclusive(
        &self,
        key: SessionKey,
    ) -> Result<(Arc<UpstreamSlot>, OwnedSemaphorePermit, usize), Fault> {
        for _ in 0..2 {
            // The slot to wait for if none is free: one whose call is not parked.
            let mut running = None;
            for lane in 0..MAX_LANES {
                let slot = match self.slot_for(SessionKey { lane, ..key.clone() }) {
                    // The limit is reached: use the existing ones.
                    Err(_) if lane > 0 => break,
                    slot => slot?,
                };
                if let Ok(permit) = Arc::clone(&slot.exclusive).try_acquire_owned() {
                    return Ok((slot, permit, lane));
                }
                if running.is_none() && !slot.is_parked.load(Ordering::Acquire) {
                    running = Some((slot, lane));
                }
            }
            if let Some((slot, lane)) = running {
                let permit = self.wait_exclusive(&slot).await?;
                return Ok((slot, permit, lane));
            }
            let Some(principal) = key.owner.principal() else { break };
            let Some(freed) = self.parked_calls.evict_oldest(principal) else { break };
            // The next attempt finds out whether the connection is free.
            _ = timeout(EVICTION_TIMEOUT, freed).await;
        }
        Err(too_many_parked_calls())
    }

    async fn wait_exclusive(&self, slot: &UpstreamSlot) -> Result<OwnedSemaphorePermit, Fault> {
        let permit = timeout(EXCLUSIVE_WAIT, Arc::clone(&slot.exclusive).acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| {
            let name = self.connector.name();
            let detail = format!(
                "`{name}` handles one call that may request input at a time, and another one is \
                    still running; try again later"
            );
            Fault::new(FaultKind::Busy, detail)
        })
    }

    fn slot_for(&self, key: SessionKey) -> Result<Arc<UpstreamSlot>, Fault> {
        self.lock().get_or_insert(key).map_err(|full| {
            let name = self.connector.name();
            let detail = match full {
                PoolFull::All(max) => {
                    format!("all {max} connections to `{name}` are in use (the limit is \
                        `max_sessions`); try again later")
                }
                PoolFull::PerOwner(max) => {
                    format!("this principal uses all of its {max} connections to `{name}`; try again later")
                }
            };
            Fault::new(FaultKind::Busy, detail)
        })
    }

    /// The changes that the upstream announces in callers' sessions from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<SessionChange> {
        self.changes.subscribe()
    }

    /// The connection of this key, if it is open.
    pub(crate) fn connection_if_open(&self, key: &SessionKey) -> Option<Connection> {
        let slot = self.lock().find(key)?;
        slot.touch();
        slot.connection_if_open()
    }

    /// Keeps the session of this key open while no call runs in it.
    pub(crate) fn hold_session(&self, key: &SessionKey) -> Option<SessionHold> {
        self.lock().find(key).map(SessionHold)
    }

    /// Whether the pool is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Retires the connections of an era that the upstream no longer uses. Their active calls continue. Returns whether
    /// there were any.
    pub(crate) fn retire_era(&self, era: Era) -> bool {
        let is_of = |slot: &UpstreamSlot| {
            slot.connection_if_open()
                .is_some_and(|connection| connection.greeting().rules.is_of(era))
        };
        self.lock().remove_matching(is_of)
    }

    /// Closes all connections concurrently, each with its full grace period.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.close_connections().await;
    }

    /// Closes all connections gracefully. Later calls open new ones.
    pub(crate) async fn close_connections(&self) {
        let slots = self.lock().take_all();
        let mut closing = JoinSet::new();
        for slot in slots {
            closing.spawn(async move {
                let _filling = slot.cell.lock_for_filling().await;
                if let Some(connection) = slot.cell.take() {
                    connection.close().await;
                }
            });
        }
        // Connections that remain open end with this process.
        _ = timeout(CLOSE_TIMEOUT, closing.join_all()).await;
    }

    /// The number of open connections without and with a call.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let slots = self.lock();
        let is_busy =
            |slot: &Arc<UpstreamSlot>| slot.connection_if_open().is_some().then(|| !slot.is_idle());
        let open: Vec<bool> = slots.all().filter_map(is_busy).collect();
        let busy = open.iter().filter(|is_busy| **is_busy).count();
        (open.len() - busy, busy)
    }

    /// The open connections as operators see them.
    pub(crate) fn inspect(&self) -> Vec<InspectedConnection> {
        let slots = self.lock();
        let open = slots.all().filter(|slot| slot.connection_if_open().is_some());
        open.map(|slot| InspectedConnection {
            owner: owner_name(slot.key.as_ref().map(|key| &key.owner)),
            is_busy: !slot.is_idle(),
            calls: slot.active_calls.count(),
        })
        .collect()
    }

    /// Removes idle connections, except the gateway's own.
    fn close_idle(&self) {
        let now = Instant::now();
        self.lock().remove_idle(|slot| slot.idle_since() + IDLE_TIMEOUT <= now);
    }

    fn lock(&self) -> MutexGuard<'_, UpstreamSlots> {
        self.slots.lock()
    }
}

/// The fault of a call that needs input while too many others are parked.
pub(crate) fn too_many_parked_calls() -> Fault {
    let detail = "too many calls are waiting for input; answer or cancel one of them";
    Fault::new(FaultKind::Busy, detail)
}

/// Forwards the announcements of an upstream until the session ends.
async fn forward_changes(
    mut notices: broadcast::Receiver<ServerNotification>,
    key: SessionKey,
    changes: broadcast::Sender<SessionChange>,
) {
    // Without a receiver the send fails, which is fine.
    let tell = |change| _ = changes.send(SessionChange { key: key.clone(), change });
    loop {
        match notices.recv().await {
            Ok(ServerNotification::Changed(change)) => tell(Some(change)),
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => {
                let lists = [ListKind::Tools, ListKind::Resources, ListKind::Prompts];
                lists.into_iter().for_each(|kind| tell(Some(Change::List(kind))));
            }
            Err(RecvError::Closed) => return tell(None),
        }
    }
}

async fn sweep_idle(pool: Weak<UpstreamPool>) {
    loop {
        sleep(IDLE_TIMEOUT / 10).await;
        match pool.upgrade() {
            Some(pool) => pool.close_idle(),
            None => return,
        }
    }
}
