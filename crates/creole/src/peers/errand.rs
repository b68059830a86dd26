//! An errand, at the process that runs it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::{BEAT, LONGEST, Shared, errand_path, replies_path, waiting_path};
use crate::state::{Keep, StateError, Subscription};

/// What an entry of the log of replies begins with.
pub(super) const TAKEN: u8 = b't';
pub(super) const UNKNOWN: u8 = b'u';
pub(super) const PART: u8 = b'p';
pub(super) const LAST: u8 = b'l';

/// The longest part of something that is said.
const LONGEST_PART: usize = 256 * 1024;

/// The longest thing that is said.
const LONGEST_REPLY: usize = 16 * 1024 * 1024;

/// The most entries of a log: something as long as that, and many short things before it.
const MOST_ENTRIES: usize = 4096;

/// Something that another process wants done here.
pub struct Errand {
    /// What it is.
    pub payload: Bytes,
    /// Where to say something to it.
    pub desk: Desk,
    /// Who waits for it.
    pub sender: Sender,
}

/// Where the one who runs an errand says something to it.
pub struct Desk {
    shared: Arc<Shared>,
    id: String,
    _slot: OwnedSemaphorePermit,
}

/// The process that waits for an errand.
pub struct Sender {
    shared: Arc<Shared>,
    id: String,
    /// Tells when it leaves.
    news: Subscription,
}

impl Errand {
    /// Takes an errand and says so; also tells what it is about. Nothing if it was taken before.
    pub(super) async fn take(
        shared: Arc<Shared>,
        id: &str,
        slot: OwnedSemaphorePermit,
    ) -> Result<Option<(String, Self)>, StateError> {
        let path = errand_path(id);
        let Some(found) = shared.state.get(&path).await? else { return Ok(None) };
        // Of several that were told of it, one finds something to remove.
        if !shared.state.remove(&path).await? {
            return Ok(None);
        }
        let news = shared.state.subscribe(&waiting_path(id)).await?;
        let Some((target, payload)) = opened(&found.value) else { return Ok(None) };
        let sender = Sender { shared: Arc::clone(&shared), id: id.to_owned(), news };
        let desk = Desk { shared, id: id.to_owned(), _slot: slot };
        desk.append(TAKEN, &[]).await?;
        desk.tell().await?;
        Ok(Some((target, Self { payload, desk, sender })))
    }
}

impl Desk {
    /// Says something to the one who waits.
    ///
    /// # Errors
    /// When it is too long, or the state fails.
    pub async fn say(&self, text: &[u8]) -> Result<(), StateError> {
        if text.len() > LONGEST_REPLY {
            let what = "what another process is told";
            return Err(StateError::TooLong { what, bytes: text.len(), most: LONGEST_REPLY });
        }
        let mut rest = text;
        while let Some((part, after)) = rest.split_at_checked(LONGEST_PART) {
            self.append(PART, part).await?;
            rest = after;
        }
        self.append(LAST, rest).await?;
        self.tell().await
    }

    /// Says that what it is about is not here.
    pub(super) async fn refuse(self) {
        let refused = async {
            self.append(UNKNOWN, &[]).await?;
            self.tell().await
        };
        if let Err(error) = refused.await {
            warn(&error);
        }
    }

    async fn append(&self, kind: u8, part: &[u8]) -> Result<(), StateError> {
        let mut entry = BytesMut::with_capacity(1 + part.len());
        entry.put_u8(kind);
        entry.put_slice(part);
        let keep = Keep { entries: MOST_ENTRIES, ttl: LONGEST };
        self.shared.state.append(&replies_path(&self.id), entry.freeze(), keep).await.map(drop)
    }

    async fn tell(&self) -> Result<(), StateError> {
        self.shared.state.publish(&replies_path(&self.id), Bytes::new()).await
    }
}

impl Sender {
    /// Resolves when nobody waits for the errand any more.
    pub async fn left(mut self) {
        let path = waiting_path(&self.id);
        loop {
            // Whoever cannot say that it left is noticed by its silence.
            _ = timeout(BEAT, self.news.next()).await;
            if matches!(self.shared.state.get(&path).await, Ok(None)) {
                return;
            }
        }
    }
}

/// What an errand is about and what it is, as one value.
pub(super) fn closed(target: &str, payload: &[u8]) -> Bytes {
    [target.as_bytes(), b"\n", payload].concat().into()
}

fn opened(value: &Bytes) -> Option<(String, Bytes)> {
    let end = value.iter().position(|byte| *byte == b'\n')?;
    let target = std::str::from_utf8(&value[..end]).ok()?.to_owned();
    Some((target, value.slice(end + 1..)))
}

pub(super) fn warn(error: &StateError) {
    tracing::warn!(%error, "an errand of another process was not run");
}
