//! A replica request at the process that handles it.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};

use super::{
    CHECK_INTERVAL, REQUEST_TTL, ReplicaShared, request_path, responses_path, waiter_path,
};
use crate::state::{LogRetention, StateError};

/// The first byte of an entry in the log of responses.
pub(super) const ENTRY_UNKNOWN: u8 = b'u';
pub(super) const ENTRY_BUSY: u8 = b'b';
pub(super) const ENTRY_PART: u8 = b'p';
pub(super) const ENTRY_LAST: u8 = b'l';

/// Maximum length of one part of a response.
const MAX_PART_BYTES: usize = 256 * 1024;

/// Maximum length of a response.
const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of entries of a log: one response of maximum length, and many short ones before it.
const MAX_LOG_ENTRIES: usize = 4096;

/// How long a request runs before it is noticed at once that its requester stopped waiting.
const SUBSCRIPTION_DELAY: Duration = Duration::from_millis(50);

/// A request from another replica.
pub struct ReplicaRequest {
    /// Its content.
    pub payload: Bytes,
    /// Sends responses to it.
    pub responder: ReplicaResponder,
    /// The replica that waits for it.
    pub requester: Requester,
}

/// Sends responses to a replica request.
pub struct ReplicaResponder {
    shared: Arc<ReplicaShared>,
    id: String,
    _slot: OwnedSemaphorePermit,
}

/// The replica that waits for a request.
pub struct Requester {
    shared: Arc<ReplicaShared>,
    id: String,
}

impl ReplicaRequest {
    /// Accepts a request, which removes it; returns it with its target. `None` if it was accepted before, or cannot be
    /// read: its sender tries again.
    pub(super) async fn take(
        shared: Arc<ReplicaShared>,
        id: &str,
        slot: OwnedSemaphorePermit,
    ) -> Result<Option<(String, Self)>, StateError> {
        let path = request_path(id);
        let entry = match shared.state.get(&path).await {
            Err(StateError::UnknownFormat { .. }) => {
                let responder = ReplicaResponder { shared, id: id.to_owned(), _slot: slot };
                return responder.refuse(ENTRY_BUSY).await.map(|()| None);
            }
            found => found?,
        };
        let Some(entry) = entry else { return Ok(None) };
        // Of several receivers, only one finds the value to remove.
        if !shared.state.remove(&path).await? {
            return Ok(None);
        }
        let Some((target, payload)) = decode_request(&entry.value) else { return Ok(None) };
        let requester = Requester { shared: Arc::clone(&shared), id: id.to_owned() };
        let responder = ReplicaResponder { shared, id: id.to_owned(), _slot: slot };
        Ok(Some((target, Self { payload, responder, requester })))
    }
}

impl ReplicaResponder {
    /// Sends a response to the requester.
    ///
    /// # Errors
    /// When it is too long, or the state fails.
    pub async fn send(&self, text: &[u8]) -> Result<(), StateError> {
        if text.len() > MAX_RESPONSE_BYTES {
            let description = "the response to a replica";
            return Err(StateError::TooLong {
                kind: description,
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

    /// Reports that the target is not here.
    pub(super) async fn reject_unknown(self) {
        if let Err(error) = self.refuse(ENTRY_UNKNOWN).await {
            log_state_error(&error);
        }
    }

    async fn refuse(&self, reason: u8) -> Result<(), StateError> {
        self.append(reason, &[]).await?;
        self.notify().await
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
    /// Resolves when the requester stopped waiting.
    pub async fn disconnected(self) {
        // Most requests are answered by then, and need no subscription.
        sleep(SUBSCRIPTION_DELAY).await;
        let path = waiter_path(&self.id);
        let mut messages = None;
        loop {
            if messages.is_none() {
                messages = self.shared.state.subscribe(&path).await.ok();
            }
            if matches!(self.shared.state.get(&path).await, Ok(None)) {
                return;
            }
            // A requester that cannot signal that it left is noticed by its missing heartbeat.
            match &mut messages {
                Some(messages) => _ = timeout(CHECK_INTERVAL, messages.next()).await,
                None => sleep(CHECK_INTERVAL).await,
            }
        }
    }
}

/// Encodes the target and the content of a request as one value.
pub(super) fn encode_request(target: &str, payload: &[u8]) -> Bytes {
    [target.as_bytes(), b"\n", payload].concat().into()
}

fn decode_request(value: &Bytes) -> Option<(String, Bytes)> {
    let end = value.iter().position(|byte| *byte == b'\n')?;
    let target = std::str::from_utf8(&value[..end]).ok()?.to_owned();
    Some((target, value.slice(end + 1..)))
}

pub(super) fn log_state_error(error: &StateError) {
    tracing::warn!(%error, "cannot serve a replica request");
}
