//! A replica request at the process that sent it: reads the other replica's responses.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout};

use super::replica_request::{ENTRY_BUSY, ENTRY_LAST, ENTRY_PART, ENTRY_UNKNOWN, encode_request};
use super::{
    ACCEPT_TIMEOUT, CHECK_INTERVAL, HEARTBEAT_TTL, REQUEST_TTL, ReplicaError, ReplicaShared,
    presence_path, request_path, responses_path, waiter_path,
};
use crate::state::{StateError, Subscription};
use crate::task::random_id;

/// Maximum number of entries per read.
const READ_BATCH: usize = 16;

/// How long a request can be read. Its sender removes it before that.
const UNREAD_TTL: Duration = Duration::from_secs(2 * ACCEPT_TIMEOUT.as_secs());

/// The responses to a replica request. Dropping it notifies the other replica that the requester stopped waiting, unless
/// it is [finished](Self::finish).
pub struct ReplicaResponses {
    shared: Arc<ReplicaShared>,
    replica: String,
    pub(super) id: String,
    notifications: Subscription,
    /// The position in the log.
    read_up_to: u64,
    /// Whether there may be entries behind that position.
    may_have_more: bool,
    /// Responses that were read and not returned, the next one last.
    ready: Vec<Bytes>,
    /// The parts of the current response so far.
    parts: BytesMut,
    /// Whether the other replica accepted the request.
    is_taken: bool,
    is_finished: bool,
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
            may_have_more: false,
            ready: Vec::new(),
            parts: BytesMut::new(),
            is_taken: false,
            is_finished: false,
            sent_at: Instant::now(),
        };
        responses.renew_waiter().await?;
        let value = encode_request(target, &request);
        let state = &responses.shared.state;
        state.put(&request_path(&responses.id), value, Some(UNREAD_TTL)).await?;
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
            match self.may_have_more {
                true => self.read_log().await?,
                false => self.wait_for_entries().await?,
            }
        }
    }

    /// Ends the request after its last response, for which the other replica waits no longer.
    pub fn finish(mut self) {
        self.is_finished = true;
    }

    /// Waits for the message that announces an entry. It may be lost, so the log is read in any case.
    async fn wait_for_entries(&mut self) -> Result<(), ReplicaError> {
        let is_late = timeout(CHECK_INTERVAL, self.notifications.next()).await.is_err();
        self.may_have_more = true;
        if is_late { self.check_replica().await } else { Ok(()) }
    }

    /// Continues to read the log.
    async fn read_log(&mut self) -> Result<(), ReplicaError> {
        let log = responses_path(&self.id);
        let found = self.shared.state.read_after(&log, self.read_up_to, READ_BATCH).await?;
        self.may_have_more = found.len() == READ_BATCH;
        for (number, entry) in found {
            self.read_up_to = number;
            self.decode_entry(&entry)?;
        }
        self.ready.reverse();
        Ok(())
    }

    fn decode_entry(&mut self, entry: &Bytes) -> Result<(), ReplicaError> {
        self.is_taken = true;
        match entry.split_first() {
            Some((&ENTRY_UNKNOWN, _)) => return Err(ReplicaError::Unknown),
            Some((&ENTRY_BUSY, _)) => return Err(ReplicaError::Busy),
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
            let position = self.read_up_to;
            self.read_log().await?;
            return if self.read_up_to > position {
                Ok(())
            } else {
                Err(self.shared.absence_error())
            };
        }
        if self.sent_at.elapsed() >= REQUEST_TTL {
            return Err(ReplicaError::Busy);
        }
        self.renew_waiter().await?;
        if !self.is_taken {
            self.check_acceptance().await?;
        }
        Ok(())
    }

    /// Checks whether the other replica accepted the request, which removes it, and announces it again otherwise.
    async fn check_acceptance(&mut self) -> Result<(), ReplicaError> {
        let (state, path) = (&self.shared.state, request_path(&self.id));
        if self.sent_at.elapsed() < ACCEPT_TIMEOUT {
            self.is_taken = state.get(&path).await?.is_none();
        } else if state.remove(&path).await? {
            return Err(ReplicaError::Busy);
        } else {
            self.is_taken = true;
        }
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
        let (is_taken, is_finished) = (self.is_taken, self.is_finished);
        runtime.spawn(async move {
            // A value that is not removed now expires.
            if !is_taken {
                _ = shared.state.remove(&request_path(&id)).await;
            }
            if !is_finished {
                _ = shared.state.remove(&waiter_path(&id)).await;
                _ = shared.state.publish(&waiter_path(&id), Bytes::new()).await;
            }
            _ = shared.state.remove_log(&responses_path(&id)).await;
        });
    }
}
