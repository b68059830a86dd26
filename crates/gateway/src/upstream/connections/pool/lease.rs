//! The lease of an upstream connection: one call's use of a pool slot.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use creole::client::Connection;
use creole::proto::model::Level;
use creole::proto::revision::Era;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::{SessionKey, SessionOwner, UpstreamSlot};
use crate::upstream::forward::active_calls::ActiveCallHandle;

/// How long an upstream may take to send its first requests after a connection opens.
const INITIAL_REQUESTS_TIMEOUT: Duration = Duration::from_secs(2);

/// A conversation that one call uses.
pub(crate) struct UpstreamLease {
    pub(crate) connection: Connection,
    pub(crate) active_call: ActiveCallHandle,
    /// Which of its caller's conversations it is.
    pub(crate) lane: usize,
    pub(super) permit: Option<OwnedSemaphorePermit>,
    pub(super) pool_slot: Arc<UpstreamSlot>,
    /// Whether the conversation was opened for it.
    pub(super) is_new: bool,
}

impl UpstreamLease {
    /// A conversation that is there for one call and known to nobody else.
    pub(crate) fn unpooled(connection: Connection, joined: ActiveCallHandle) -> Self {
        Self {
            connection,
            active_call: joined,
            lane: 0,
            permit: None,
            pool_slot: UpstreamSlot::new(None),
            is_new: false,
        }
    }

    /// Waits until a server has said what it says as soon as a conversation is open: some ask for folders then. What
    /// it is asked next it answers after that. Where questions are the call's own, they may come at any time.
    pub(crate) async fn wait_for_initial_requests(&self) {
        if self.renotify_roots() || (self.is_new && self.permit.is_some()) {
            self.wait_until_processed().await;
        }
    }

    /// Whether the server may ask something before it is called: in a new session, or because it asked for roots before
    /// and nobody answered.
    pub(crate) fn may_request_input_first(&self) -> bool {
        let has_session = self.connection.greeting().rules.era == Era::Handshake;
        self.renotify_roots() || (self.is_new && has_session)
    }

    /// Tells a server that asked for roots and got no answer that they changed, so that it asks again. Returns whether
    /// there was one.
    fn renotify_roots(&self) -> bool {
        let is_missed = self.active_call.take_missed_roots();
        if is_missed {
            self.connection.roots_changed();
        }
        is_missed
    }

    /// Waits until a server has dealt with what it was told before.
    pub(crate) async fn wait_until_processed(&self) {
        // One that knows no ping refuses it, which is as good; one that says nothing is called all the same.
        _ = timeout(INITIAL_REQUESTS_TIMEOUT, self.connection.ping()).await;
    }

    /// Whether it is the session of this session of a client, and of no other.
    pub(crate) fn belongs_to(&self, client: &Arc<str>) -> bool {
        let owner = self.pool_slot.key.as_ref().map(|key| &key.owner);
        matches!(owner, Some(SessionOwner::ClientSession { name, .. }) if name == client)
    }

    /// Its place.
    pub(crate) fn weak_slot(&self) -> Weak<UpstreamSlot> {
        Arc::downgrade(&self.pool_slot)
    }

    /// Whether it is the gateway's own session, which callers may share.
    pub(crate) fn is_shared(&self) -> bool {
        self.pool_slot.key.as_ref().is_some_and(|key| key.owner == SessionOwner::Gateway)
    }

    /// The key of the session, if it was opened for this call.
    pub(crate) fn opened_key(&self) -> Option<&SessionKey> {
        self.pool_slot.key.as_ref().filter(|_| self.is_new)
    }

    /// Makes this the last call in the conversation.
    pub(crate) fn retire_connection(&self) {
        self.pool_slot.cell.take();
    }

    /// Notes whether the call waits for answers of its caller.
    pub(crate) fn set_parked(&self, parked: bool) {
        // The conversation of one call at a time waits only if that call does.
        if self.permit.is_some() {
            self.pool_slot.is_parked.store(parked, Ordering::Release);
        }
    }

    /// Whether the server has to be told to send messages of this level too; it is taken for told then.
    pub(crate) fn claim_lower_level(&self, wanted: Level) -> bool {
        let mut level = self.pool_slot.log_level.lock().unwrap_or_else(PoisonError::into_inner);
        let lowers = level.is_none_or(|level| wanted < level);
        if lowers {
            *level = Some(wanted);
        }
        lowers
    }
}

impl Drop for UpstreamLease {
    fn drop(&mut self) {
        self.set_parked(false);
        self.pool_slot.touch();
    }
}
