//! The lease of an upstream connection: one call's use of a pool slot.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::internal::client::Connection;
use creole::proto::model::Level;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::UpstreamSlot;
use crate::upstream::connections::active_calls::ActiveCallHandle;
use crate::upstream::connections::session_key::{SessionKey, SessionOwner};

/// How long an upstream may take to send its first requests after a connection opens.
const INITIAL_REQUESTS_TIMEOUT: Duration = Duration::from_secs(2);

/// The use of a connection by one call.
pub(crate) struct UpstreamLease {
    pub(crate) connection: Connection,
    pub(crate) active_call: ActiveCallHandle,
    /// The index among its caller's exclusive connections.
    pub(crate) lane: usize,
    pub(super) permit: Option<OwnedSemaphorePermit>,
    pub(super) pool_slot: Arc<UpstreamSlot>,
    /// Whether the connection was opened for this lease.
    pub(super) is_new: bool,
}

impl UpstreamLease {
    /// A lease of a connection outside of the pool, for one call.
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

    /// Waits until the upstream has sent its first requests: some request roots immediately after the handshake. An
    /// upstream responds to the ping after that. If input requests identify their call, no wait is needed.
    pub(crate) async fn wait_for_initial_requests(&self) {
        if self.renotify_roots() || (self.is_new && self.permit.is_some()) {
            self.wait_until_processed().await;
        }
    }

    /// Whether the upstream may send input requests before the call: in a new session, or because an earlier request
    /// for roots got no response.
    pub(crate) fn may_request_input_first(&self) -> bool {
        let has_session = self.connection.greeting().rules.has_sessions;
        self.renotify_roots() || (self.is_new && has_session)
    }

    /// If an earlier request for roots got no response, notifies the upstream that they changed, so that it requests
    /// them again. Returns whether there was such a request.
    fn renotify_roots(&self) -> bool {
        let is_missed = self.active_call.take_missed_roots();
        if is_missed {
            self.connection.roots_changed();
        }
        is_missed
    }

    /// Waits until the upstream has processed the earlier messages.
    pub(crate) async fn wait_until_processed(&self) {
        // An upstream without ping responds with an error, which is enough. One that does not respond is called anyway.
        _ = timeout(INITIAL_REQUESTS_TIMEOUT, self.connection.ping()).await;
    }

    /// Whether the session belongs to this client session alone.
    pub(crate) fn belongs_to(&self, client: &Arc<str>) -> bool {
        let owner = self.pool_slot.key.as_ref().map(|key| &key.owner);
        matches!(owner, Some(SessionOwner::ClientSession { name, .. }) if name == client)
    }

    /// Its slot.
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

    /// Retires the connection after this call.
    pub(crate) fn retire_connection(&self) {
        self.pool_slot.cell.take();
    }

    /// Records whether the call is parked.
    pub(crate) fn set_parked(&self, parked: bool) {
        // Only an exclusive connection is blocked by its parked call.
        if self.permit.is_some() {
            self.pool_slot.is_parked.store(parked, Ordering::Release);
        }
    }

    /// Whether a lower log level must be requested from the upstream. The level counts as requested afterwards.
    pub(crate) fn claim_lower_level(&self, wanted: Level) -> bool {
        let mut level = self.pool_slot.log_level.lock();
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
