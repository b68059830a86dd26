//! A replica request at the process that sent it: reads the other replica's responses.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout};

use super::replica_request::{ENTRY_LAST, ENTRY_PART, ENTRY_TAKEN, ENTRY_UNKNOWN, encode_request};
use super::{
    ACCEPT_TIMEOUT, HEARTBEAT, HEARTBEAT_TTL, REQUEST_TTL, ReplicaError, ReplicaShared,
    presence_path, request_path, responses_path, waiter_path,
};
use crate::state::{StateError, Subscription};
use crate::task::random_id;

/// Maximum number of entries per read.
const READ_BATCH: usize = 16;

/// The responses to a replica request. Dropping it notifies the other replica that the requester stopped waiting.
pub struct ReplicaResponses {
    shared: Arc<ReplicaShared>,
    replica: String,
    pub(super) id: String,
    notifications: Subscription,
    /// The position in the log.
    read_up_to: u64,
    /// Responses that were read and not returned, the next one last.
    ready: Vec<Bytes>,
    /// The parts of the current response so far.
    parts: BytesMut,
    is_taken: bool,
    sent_at: Instant,
}

impl ReplicaResponses {
    pub(super) async fn send(
        shared: Arc<ReplicaShared>,
        to: &str,
        target: &str,
        request: Bytes,
    ) -> Result<Self, ReplicaError> {
        let id = random_id().map_err(|_| ReplicaError::State(StateError::Stopped))?;
        let subscription = shared.state.subscribe(&responses_path(&id)).await?;
        let responses = Self {
            shared,
            replica: to.to_owned(),
            id,
            notifications: subscription,
            read_up_to: 0,
            ready: Vec::new(),
            parts: BytesMut::new(),
            is_taken: false,
            sent_at: Instant::now(),
        };
        responses.renew_waiter().await?;
        let value = encode_request(target, &request);
        let state = &responses.shared.state;
        state.put(&request_path(&responses.id), value, Some(ACCEPT_TIMEOUT)).await?;
        responses.notify_replica().await?;
        Ok(responses)
    }

    /// Waits for the next response. Cancel-safe.
    ///
    /// # Errors
    /// When the other replica has stopped, does not have the target or does not accept the request, or the state fails.
    pub async fn next(&mut self) -> Result<Bytes, ReplicaError> {
        loop {
            if let Some(bytes) = self.ready.pop() {
                return Ok(bytes);
            }
            if self.read_log().await? {
                continue;
            }
            if timeout(HEARTBEAT, self.notifications.next()).await.is_err() {
                self.check_replica().await?;
            }
        }
    }

    /// Continues to read the log; returns whether there was an entry.
    async fn read_log(&mut self) -> Result<bool, ReplicaError> {
        let log = responses_path(&self.id);
        let found = self.shared.state.read_after(&log, self.read_up_to, READ_BATCH).await?;
        let is_any = !found.is_empty();
        for (number, entry) in found {
            self.read_up_to = number;
            self.decode_entry(&entry)?;
        }
        self.ready.reverse();
        Ok(is_any)
    }

    fn decode_entry(&mut self, entry: &Bytes) -> Result<(), ReplicaError> {
        self.is_taken = true;
        match entry.split_first() {
            Some((&ENTRY_TAKEN, _)) => {}
            Some((&ENTRY_UNKNOWN, _)) => return Err(ReplicaError::Unknown),
            Some((&ENTRY_PART, part)) => self.parts.extend_from_slice(part),
            Some((&ENTRY_LAST, part)) => {
                self.parts.extend_from_slice(part);
                self.ready.push(self.parts.split().freeze());
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks whether the other replica is present, and renews our own sign of waiting.
    async fn check_replica(&mut self) -> Result<(), ReplicaError> {
        if !self.shared.is_alive(&self.replica).await? {
            // Its responses before it left are still there.
            return if self.read_log().await? { Ok(()) } else { Err(self.shared.absence_error()) };
        }
        if !self.is_taken && self.sent_at.elapsed() >= ACCEPT_TIMEOUT {
            return Err(ReplicaError::Busy);
        }
        if self.sent_at.elapsed() >= REQUEST_TTL {
            return Err(ReplicaError::Busy);
        }
        self.renew_waiter().await?;
        if self.is_taken { Ok(()) } else { Ok(self.notify_replica().await?) }
    }

    async fn renew_waiter(&self) -> Result<(), StateError> {
        let path = waiter_path(&self.id);
        self.shared.state.put(&path, Bytes::new(), Some(HEARTBEAT_TTL)).await.map(drop)
    }

    /// Announces the request to the other replica.
    pub(super) async fn notify_replica(&self) -> Result<(), StateError> {
        let id = Bytes::copy_from_slice(self.id.as_bytes());
        self.shared.state.publish(&presence_path(&self.replica), id).await
    }
}

impl Drop for ReplicaResponses {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (shared, id) = (Arc::clone(&self.shared), std::mem::take(&mut self.id));
        runtime.spawn(async move {
            // A value that cannot be removed now expires.
            _ = shared.state.remove(&request_path(&id)).await;
            _ = shared.state.remove(&waiter_path(&id)).await;
            _ = shared.state.publish(&waiter_path(&id), Bytes::new()).await;
            _ = shared.state.remove_log(&responses_path(&id)).await;
        });
    }
}
