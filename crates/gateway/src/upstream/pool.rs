//! Conversations with one server, each for one caller or purpose and never for another.
//!
//! Which callers share a conversation is a matter of security: what a server keeps in a session, and what it
//! asks there, is nobody else's.

mod key;
mod place;
mod slots;

pub(super) use key::{Asks, Key, Owner};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use creole::client::{Connection, ServerNotification};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{ClientCapabilities, Level, ListKind};
use creole::proto::operation::Change;
use creole::proto::revision::Era;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::callers::{Callers, Joined};
use super::dial::Dialer;
use super::outside::OnlyClient;
use super::park::{self, Parking};
use place::Place;
use slots::{Full, Slots};

/// How long a conversation may rest before it is closed.
const IDLE: Duration = Duration::from_secs(300);

/// How long a call may wait for a conversation that serves one call at a time.
const TURN: Duration = Duration::from_secs(60);

/// Conversations of one caller that serve one call at a time each.
const LANES: usize = park::MOST_OF_ONE;

/// How long a server may take to say what it says as soon as a conversation is open.
const SETTLING: Duration = Duration::from_secs(2);

/// Announcements of servers that may wait to be taken.
const CHANGES: usize = 256;

/// How long all conversations may take to end.
const FAREWELL: Duration = Duration::from_secs(20);

/// The conversations with one server.
pub(super) struct Pool {
    dialer: Arc<Dialer>,
    slots: Mutex<Slots>,
    /// What servers announce in callers' sessions.
    changes: broadcast::Sender<SessionChange>,
    is_closed: AtomicBool,
}

/// Something that changed in the session of one key.
#[derive(Clone, Debug)]
pub(super) struct SessionChange {
    pub(super) key: Key,
    /// Nothing when the session ended.
    pub(super) change: Option<Change>,
}

/// Keeps a session open while no call runs in it.
pub(super) struct Hold(#[expect(dead_code, reason = "a slot in use does not rest")] Arc<Slot>);

/// The place of one conversation.
pub(super) struct Slot {
    /// Nothing for a session that is not in the pool.
    key: Option<Key>,
    /// The conversation, while there is one; opened by the first who needs it.
    place: Place,
    callers: Callers,
    turn: Arc<Semaphore>,
    used: Mutex<Instant>,
    /// The least important messages that the server was told to send in this conversation.
    level: Mutex<Option<Level>>,
    /// Whether the only call in it waits for answers of its caller.
    is_parked: AtomicBool,
}

/// A conversation that one call uses.
pub(super) struct Lease {
    pub(super) connection: Connection,
    pub(super) joined: Joined,
    /// Which of its caller's conversations it is.
    pub(super) lane: usize,
    turn: Option<OwnedSemaphorePermit>,
    slot: Arc<Slot>,
    /// Whether the conversation was opened for it.
    is_new: bool,
}

impl Lease {
    /// A conversation that is there for one call and known to nobody else.
    pub(super) fn alone(connection: Connection, joined: Joined) -> Self {
        Self { connection, joined, lane: 0, turn: None, slot: Slot::new(None), is_new: false }
    }

    /// Waits until a server has said what it says as soon as a conversation is open: some ask for folders then. What
    /// it is asked next it answers after that. Where questions are the call's own, they may come at any time.
    pub(super) async fn settle(&self) {
        if self.repeat_roots() || (self.is_new && self.turn.is_some()) {
            self.heed().await;
        }
    }

    /// Whether the server may ask something before it is called: in a new session, or because it asked for roots before
    /// and nobody answered.
    pub(super) fn asks_before_calls(&self) -> bool {
        let has_session = self.connection.greeting().rules.era == Era::Handshake;
        self.repeat_roots() || (self.is_new && has_session)
    }

    /// Tells a server that asked for roots and got no answer that they changed, so that it asks again. Returns whether
    /// there was one.
    fn repeat_roots(&self) -> bool {
        let is_missed = self.joined.take_missed_roots();
        if is_missed {
            self.connection.roots_changed();
        }
        is_missed
    }

    /// Waits until a server has dealt with what it was told before.
    pub(super) async fn heed(&self) {
        // One that knows no ping refuses it, which is as good; one that says nothing is called all the same.
        _ = timeout(SETTLING, self.connection.ping()).await;
    }

    /// Whether it is the session of this session of a client, and of no other.
    pub(super) fn is_of(&self, client: &Arc<str>) -> bool {
        let owner = self.slot.key.as_ref().map(|key| &key.owner);
        matches!(owner, Some(Owner::Conversation { name, .. }) if name == client)
    }

    /// Its place.
    pub(super) fn slot(&self) -> Weak<Slot> {
        Arc::downgrade(&self.slot)
    }

    /// Whether it is the gateway's own session, which callers may share.
    pub(super) fn is_shared(&self) -> bool {
        self.slot.key.as_ref().is_some_and(|key| key.owner == Owner::Gateway)
    }

    /// The key of the session, if it was opened for this call.
    pub(super) fn new_key(&self) -> Option<&Key> {
        self.slot.key.as_ref().filter(|_| self.is_new)
    }

    /// Makes this the last call in the conversation.
    pub(super) fn spoil(&self) {
        self.slot.place.take();
    }

    /// Notes whether the call waits for answers of its caller.
    pub(super) fn set_parked(&self, parked: bool) {
        // The conversation of one call at a time waits only if that call does.
        if self.turn.is_some() {
            self.slot.is_parked.store(parked, Ordering::Release);
        }
    }

    /// Whether the server has to be told to send messages of this level too; it is taken for told then.
    pub(super) fn lowers_level(&self, wanted: Level) -> bool {
        let mut level = self.slot.level.lock().unwrap_or_else(PoisonError::into_inner);
        let lowers = level.is_none_or(|level| wanted < level);
        if lowers {
            *level = Some(wanted);
        }
        lowers
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.set_parked(false);
        self.slot.touch();
    }
}

impl Slot {
    fn new(key: Option<Key>) -> Arc<Self> {
        Arc::new(Self {
            key,
            place: Place::default(),
            callers: Callers::default(),
            turn: Arc::new(Semaphore::new(1)),
            used: Mutex::new(Instant::now()),
            level: Mutex::default(),
            is_parked: AtomicBool::new(false),
        })
    }

    /// Tells the server that the roots of its client changed.
    pub(super) fn roots_changed(&self) {
        if let Some(connection) = self.opened() {
            connection.roots_changed();
        }
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether no call runs in it.
    fn rests(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    fn rests_since(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a conversation whose server went on asking after its call was given up.
    fn forsake_if_astray(&self) {
        if self.callers.take_astray() {
            self.place.take();
        }
    }

    /// The conversation, if it is open.
    fn opened(&self) -> Option<Connection> {
        self.place.opened()
    }

    /// The conversation, opened if it is not.
    async fn open(
        &self,
        dialer: &Dialer,
        (owner, era): (&Owner, Era),
        capabilities: &Arc<ClientCapabilities>,
        changes: &broadcast::Sender<SessionChange>,
    ) -> Result<Connection, Fault> {
        let _filling = self.place.filling().await;
        if let Some(connection) = self.opened() {
            return Ok(connection);
        }
        if let Some(closed) = self.place.take().and_then(|gone| gone.close_reason())
            && !closed.session_lost
        {
            dialer.failed(&closed.fault, owner);
        }
        self.callers.begin();
        let connection = dialer.open(&self.callers.offer(capabilities), owner, era).await?;
        if let Some(key) = self.key.clone().filter(|_| *owner != Owner::Gateway) {
            tokio::spawn(tell_changes(connection.notifications(), key, changes.clone()));
        }
        self.place.fill(connection.clone());
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(connection)
    }
}

impl Pool {
    /// Room for so many conversations of callers, and for so many of them of one principal.
    pub(super) fn new(dialer: Arc<Dialer>, most: usize, share: usize) -> Arc<Self> {
        let pool = Arc::new(Self {
            dialer,
            slots: Mutex::new(Slots::new(most, share)),
            changes: broadcast::Sender::new(CHANGES),
            is_closed: AtomicBool::new(false),
        });
        tokio::spawn(sweep(Arc::downgrade(&pool)));
        pool
    }

    /// A conversation for one call, opened if there is none. Where the calls in all that there may be wait for
    /// their caller, the oldest of them has to make room.
    pub(super) async fn lease(
        &self,
        key: Key,
        capabilities: &Arc<ClientCapabilities>,
        conversation: Option<Arc<str>>,
        parking: &Parking,
    ) -> Result<Lease, Fault> {
        let (owner, era) = (key.owner.clone(), key.era);
        let (slot, turn, lane) = match key.exclusive {
            false => (self.slot(key)?, None, 0),
            true => {
                let (slot, turn, lane) = Box::pin(self.exclusive(key, parking)).await?;
                (slot, Some(turn), lane)
            }
        };
        if turn.is_some() {
            slot.forsake_if_astray();
        }
        // Joined before the conversation is opened: some servers ask as soon as it is.
        let joined = slot.callers.join(conversation);
        let (connection, is_new) = self.open(&slot, (&owner, era), capabilities).await?;
        Ok(Lease { connection, joined, lane, turn, slot, is_new })
    }

    /// A session that is opened for no call. What its server asks is asked of this client, if there is one.
    pub(super) async fn connect(
        &self,
        key: Key,
        capabilities: &Arc<ClientCapabilities>,
        client: impl FnOnce(Weak<Slot>) -> Option<OnlyClient>,
    ) -> Result<Connection, Fault> {
        let (owner, era) = (key.owner.clone(), key.era);
        let slot = self.slot(key)?;
        // Before it is opened: some servers ask as soon as it is.
        if slot.callers.client().is_none()
            && let Some(client) = client(Arc::downgrade(&slot))
        {
            slot.callers.set_client(client);
        }
        Ok(self.open(&slot, (&owner, era), capabilities).await?.0)
    }

    /// The conversation in which a call became a task. No turn is waited for: questions of tasks say which task
    /// they belong to, and what says nothing is for the call whose turn it is.
    pub(super) async fn lease_again(
        &self,
        key: Key,
        capabilities: &Arc<ClientCapabilities>,
        conversation: Option<Arc<str>>,
    ) -> Result<Lease, Fault> {
        let (owner, era) = (key.owner.clone(), key.era);
        let (lane, exclusive) = (key.lane, key.exclusive);
        let slot = self.slot(key)?;
        let joined = match exclusive {
            true => Callers::default().join(conversation),
            false => slot.callers.join(conversation),
        };
        let (connection, is_new) = self.open(&slot, (&owner, era), capabilities).await?;
        Ok(Lease { connection, joined, lane, turn: None, slot, is_new })
    }

    /// The conversation of a slot, and whether it has just been opened.
    async fn open(
        &self,
        slot: &Slot,
        whose: (&Owner, Era),
        capabilities: &Arc<ClientCapabilities>,
    ) -> Result<(Connection, bool), Fault> {
        if let Some(connection) = slot.opened() {
            return Ok((connection, false));
        }
        let opening = slot.open(&self.dialer, whose, capabilities, &self.changes);
        Ok((Box::pin(opening).await?, true))
    }

    /// A conversation that no other call uses: the first that is free, so that what a server keeps there is
    /// found again; a further one while calls wait for their answers in the others.
    async fn exclusive(
        &self,
        key: Key,
        parking: &Parking,
    ) -> Result<(Arc<Slot>, OwnedSemaphorePermit, usize), Fault> {
        for _ in 0..2 {
            // The one that is waited for if none is free: one whose call does not wait for its caller.
            let mut running = None;
            for lane in 0..LANES {
                let slot = match self.slot(Key { lane, ..key.clone() }) {
                    // There is no room for a further one: those that there are have to do.
                    Err(_) if lane > 0 => break,
                    slot => slot?,
                };
                if let Ok(turn) = Arc::clone(&slot.turn).try_acquire_owned() {
                    return Ok((slot, turn, lane));
                }
                if running.is_none() && !slot.is_parked.load(Ordering::Acquire) {
                    running = Some((slot, lane));
                }
            }
            if let Some((slot, lane)) = running {
                let turn = self.turn(&slot).await?;
                return Ok((slot, turn, lane));
            }
            let Some(principal) = key.owner.principal() else { break };
            if !parking.make_room(principal).await {
                break;
            }
        }
        Err(park::too_many())
    }

    async fn turn(&self, slot: &Slot) -> Result<OwnedSemaphorePermit, Fault> {
        let turn = timeout(TURN, Arc::clone(&slot.turn).acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or_else(|| {
            let name = self.dialer.name();
            let detail = format!(
                "{name} serves one call at a time that may ask something, and another one has not ended"
            );
            Fault::new(FaultKind::Busy, detail)
        })
    }

    fn slot(&self, key: Key) -> Result<Arc<Slot>, Fault> {
        self.lock().place(key).map_err(|full| {
            let name = self.dialer.name();
            let detail = match full {
                Full::All(most) => {
                    format!("{most} conversations with {name} are in use, the most allowed")
                }
                Full::Share(most) => {
                    format!("{most} conversations with {name} are in use by this caller, its share")
                }
            };
            Fault::new(FaultKind::Busy, detail)
        })
    }

    /// What servers announce in callers' sessions from now on.
    pub(super) fn changes(&self) -> broadcast::Receiver<SessionChange> {
        self.changes.subscribe()
    }

    /// The session of this key, if it is open.
    pub(super) fn opened(&self, key: &Key) -> Option<Connection> {
        let slot = self.lock().find(key)?;
        slot.touch();
        slot.opened()
    }

    /// Keeps the session of this key open while no call runs in it.
    pub(super) fn hold(&self, key: &Key) -> Option<Hold> {
        self.lock().find(key).map(Hold)
    }

    /// Whether all conversations were closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Leaves the conversations of an era that the server is not of any more; calls that run there go on. Tells whether
    /// there were any.
    pub(super) fn leave(&self, era: Era) -> bool {
        let is_of = |slot: &Slot| slot.opened().is_some_and(|it| it.greeting().rules.era == era);
        self.lock().leave(is_of)
    }

    /// Closes all conversations, each as patiently as if it were the only one.
    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let slots = self.lock().take();
        let mut closing = JoinSet::new();
        for slot in slots {
            closing.spawn(async move {
                let _filling = slot.place.filling().await;
                if let Some(connection) = slot.place.take() {
                    connection.close().await;
                }
            });
        }
        // What does not end by then is ended with this process.
        _ = timeout(FAREWELL, closing.join_all()).await;
    }

    /// Forgets conversations that rest, except the gateway's own.
    fn forget_idle(&self) {
        let now = Instant::now();
        self.lock().forget(|slot| slot.rests_since() + IDLE <= now);
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells of what a server announces, as long as the session lasts.
async fn tell_changes(
    mut notices: broadcast::Receiver<ServerNotification>,
    key: Key,
    changes: broadcast::Sender<SessionChange>,
) {
    // Nobody who keeps lists is nobody to tell.
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

async fn sweep(pool: Weak<Pool>) {
    loop {
        sleep(IDLE / 10).await;
        match pool.upgrade() {
            Some(pool) => pool.forget_idle(),
            None => return,
        }
    }
}
