//! An errand, at the process that runs it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::{HEARTBEAT, REQUEST_TTL, ReplicaShared, request_path, responses_path, waiter_path};
use crate::state::{LogRetention, StateError, Subscription};

/// What an entry of the log of replies begins with.
pub(super) const ENTRY_TAKEN: u8 = b't';
pub(super) const ENTRY_UNKNOWN: u8 = b'u';
pub(super) const ENTRY_PART: u8 = b'p';
pub(super) const ENTRY_LAST: u8 = b'l';

/// The longest part of something that is said.
const MAX_PART_BYTES: usize = 256 * 1024;

/// The longest thing that is said.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// The most entries of a log: something as long as that, and many short things before it.
const MAX_LOG_ENTRIES: usize = 4096;

/// Something that another process wants done here.
pub struct ReplicaRequest {
    /// What it is.
    pub payload: Bytes,
    /// Where to say something to it.
    pub responder: ReplicaResponder,
    /// Who waits for it.
    pub requester: Requester,
}

/// Where the one who runs an errand says something to it.
pub struct ReplicaResponder {
    shared: Arc<ReplicaShared>,
    id: String,
    _slot: OwnedSemaphorePermit,
}

/// The process that waits for an errand.
pub struct Requester {
    shared: Arc<ReplicaShared>,
    id: String,
    /// Tells when it leaves.
    notifications: Subscription,
}

impl ReplicaRequest {
    /// Takes an errand and says so; also tells what it is about. Nothing if it was taken before.
    pub(super) async fn take(
        shared: Arc<ReplicaShared>,
        id: &str,
        slot: OwnedSemaphorePermit,
    ) -> Result<Option<(String, Self)>, StateError> {
        let path = request_path(id);
        let Some(found) = shared.state.get(&path).await? else { return Ok(None) };
        // Of several that were told of it, one finds something to remove.
        if !shared.state.remove(&path).await? {
            return Ok(None);
        }
        let news = shared.state.subscribe(&waiter_path(id)).await?;
        let Some((target, payload)) = decode_request(&found.value) else { return Ok(None) };
        let sender =
            Requester { shared: Arc::clone(&shared), id: id.to_owned(), notifications: news };
        let desk = ReplicaResponder { shared, id: id.to_owned(), _slot: slot };
        desk.append(ENTRY_TAKEN, &[]).await?;
        desk.notify().await?;
        Ok(Some((target, Self { payload, responder: desk, requester: sender })))
    }
}

impl ReplicaResponder {
    /// Says something to the one who waits.
    ///
    /// # Errors
    /// When it is too long, or the state fails.
    pub async fn send(&self, text: &[u8]) -> Result<(), StateError> {
        if text.len() > MAX_RESPONSE_BYTES {
            let what = "what another process is told";
            return Err(StateError::TooLong {
                kind: what,
                bytes: text.len(),
                max: MAX_RESPONSE_BYTES,
            });
        }
        let mut rest = text;
        while let Some((part, after)) = rest.split_at_checked(MAX_PART_BYTES) {
            self.append(ENTRY_PART, part).await?;
            rest = after;
        }
        self.append(ENTRY_LAST, rest).await?;
        self.notify().await
    }

    /// Says that what it is about is not here.
    pub(super) async fn reject_unknown(self) {
        let refused = async {
            self.append(ENTRY_UNKNOWN, &[]).await?;
            self.notify().await
        };
        if let Err(error) = refused.await {
            log_state_error(&error);
        }
    }

    async fn append(&self, kind: u8, part: &[u8]) -> Result<(), StateError> {
        let mut entry = BytesMut::with_capacity(1 + part.len());
        entry.put_u8(kind);
        entry.put_slice(part);
        let keep = LogRetention { entries: MAX_LOG_ENTRIES, ttl: REQUEST_TTL };
        self.shared.state.append(&responses_path(&self.id), entry.freeze(), keep).await.map(drop)
    }

    async fn notify(&self) -> Result<(), StateError> {
        self.shared.state.publish(&responses_path(&self.id), Bytes::new()).await
    }
}

impl Requester {
    /// Resolves when nobody waits for the errand any more.
    pub async fn disconnected(mut self) {
        let path = waiter_path(&self.id);
        loop {
            // Whoever cannot say that it left is noticed by its silence.
            _ = timeout(HEARTBEAT, self.notifications.next()).await;
            if matches!(self.shared.state.get(&path).await, Ok(None)) {
                return;
            }
        }
    }
}

/// What an errand is about and what it is, as one value.
pub(super) fn encode_request(target: &str, payload: &[u8]) -> Bytes {
    [target.as_bytes(), b"\n", payload].concat().into()
}

fn decode_request(value: &Bytes) -> Option<(String, Bytes)> {
    let end = value.iter().position(|byte| *byte == b'\n')?;
    let target = std::str::from_utf8(&value[..end]).ok()?.to_owned();
    Some((target, value.slice(end + 1..)))
}

pub(super) fn log_state_error(error: &StateError) {
    tracing::warn!(%error, "an errand of another process was not run");
}
