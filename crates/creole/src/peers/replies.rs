//! An errand, at the process that sent it: what the other one says to it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout};

use super::errand::{LAST, PART, TAKEN, UNKNOWN, closed};
use super::{
    ALIVE, BEAT, LONGEST, Shared, TAKEN_WITHIN, Unreached, errand_path, presence_path,
    replies_path, waiting_path,
};
use crate::state::{StateError, Subscription};
use crate::task::random_id;

/// How many entries are read at once.
const AT_ONCE: usize = 16;

/// What another process says to an errand. Dropping it tells that process that nobody waits any more.
pub struct Replies {
    shared: Arc<Shared>,
    to: String,
    pub(super) id: String,
    news: Subscription,
    /// How far the log was read.
    read: u64,
    /// What was read and not handed out, the next one last.
    ready: Vec<Bytes>,
    /// The parts so far of what is being said.
    parts: BytesMut,
    taken: bool,
    sent: Instant,
}

impl Replies {
    pub(super) async fn send(
        shared: Arc<Shared>,
        to: &str,
        target: &str,
        errand: Bytes,
    ) -> Result<Self, Unreached> {
        let id = random_id().map_err(|_| Unreached::State(StateError::Stopped))?;
        let news = shared.state.subscribe(&replies_path(&id)).await?;
        let replies = Self {
            shared,
            to: to.to_owned(),
            id,
            news,
            read: 0,
            ready: Vec::new(),
            parts: BytesMut::new(),
            taken: false,
            sent: Instant::now(),
        };
        replies.wait_on().await?;
        let value = closed(target, &errand);
        let state = &replies.shared.state;
        state.put(&errand_path(&replies.id), value, Some(TAKEN_WITHIN)).await?;
        replies.call().await?;
        Ok(replies)
    }

    /// What is said next; waits for it. Cancel-safe.
    ///
    /// # Errors
    /// When the other process is gone, knows nothing of it or does not take it, or the state fails.
    pub async fn next(&mut self) -> Result<Bytes, Unreached> {
        loop {
            if let Some(said) = self.ready.pop() {
                return Ok(said);
            }
            if self.look().await? {
                continue;
            }
            if timeout(BEAT, self.news.next()).await.is_err() {
                self.look_after().await?;
            }
        }
    }

    /// Reads on in the log; tells whether there was something.
    async fn look(&mut self) -> Result<bool, Unreached> {
        let log = replies_path(&self.id);
        let found = self.shared.state.read_after(&log, self.read, AT_ONCE).await?;
        let is_any = !found.is_empty();
        for (number, entry) in found {
            self.read = number;
            self.take(&entry)?;
        }
        self.ready.reverse();
        Ok(is_any)
    }

    fn take(&mut self, entry: &Bytes) -> Result<(), Unreached> {
        self.taken = true;
        match entry.split_first() {
            Some((&TAKEN, _)) => {}
            Some((&UNKNOWN, _)) => return Err(Unreached::Unknown),
            Some((&PART, part)) => self.parts.extend_from_slice(part),
            Some((&LAST, part)) => {
                self.parts.extend_from_slice(part);
                self.ready.push(self.parts.split().freeze());
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks whether the other process is still there, and says that we are.
    async fn look_after(&mut self) -> Result<(), Unreached> {
        if !self.shared.is_alive(&self.to).await? {
            // What it said before it left is still there.
            return if self.look().await? { Ok(()) } else { Err(Unreached::Gone) };
        }
        if !self.taken && self.sent.elapsed() >= TAKEN_WITHIN {
            return Err(Unreached::Busy);
        }
        if self.sent.elapsed() >= LONGEST {
            return Err(Unreached::Busy);
        }
        self.wait_on().await?;
        if self.taken { Ok(()) } else { Ok(self.call().await?) }
    }

    async fn wait_on(&self) -> Result<(), StateError> {
        let path = waiting_path(&self.id);
        self.shared.state.put(&path, Bytes::new(), Some(ALIVE)).await.map(drop)
    }

    /// Tells the other process that there is an errand.
    pub(super) async fn call(&self) -> Result<(), StateError> {
        let id = Bytes::copy_from_slice(self.id.as_bytes());
        self.shared.state.publish(&presence_path(&self.to), id).await
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (shared, id) = (Arc::clone(&self.shared), std::mem::take(&mut self.id));
        runtime.spawn(async move {
            // What cannot be removed now goes by its age.
            _ = shared.state.remove(&errand_path(&id)).await;
            _ = shared.state.remove(&waiting_path(&id)).await;
            _ = shared.state.publish(&waiting_path(&id), Bytes::new()).await;
            _ = shared.state.remove_log(&replies_path(&id)).await;
        });
    }
}
