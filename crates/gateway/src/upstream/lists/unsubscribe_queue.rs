//! Resources that nobody watches any more. The server is told after a while, since many callers come back at once. One
//! task per upstream does that, however many resources there are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use tokio::time::{Instant, sleep_until};

use crate::upstream::connections::pool::SessionKey;
use crate::upstream::{UNSUBSCRIBE_DELAY, Upstream};

/// Resources to unsubscribe from.
#[derive(Default)]
pub(crate) struct UnsubscribeQueue(Mutex<UnsubscribeQueueInner>);

#[derive(Default)]
struct UnsubscribeQueueInner {
    /// When to unsubscribe from each, by session: nothing is the gateway's own.
    due: HashMap<(Option<SessionKey>, String), Instant>,
    has_task: bool,
}

impl UnsubscribeQueue {
    /// Unsubscribes from a resource after a while, unless somebody watches it again by then.
    pub(crate) fn add(&self, upstream: &Weak<Upstream>, key: Option<SessionKey>, uri: String) {
        let mut waiting = self.lock();
        waiting.due.insert((key, uri), Instant::now() + UNSUBSCRIBE_DELAY);
        if !waiting.has_task {
            waiting.has_task = true;
            tokio::spawn(run_unsubscribes(Weak::clone(upstream)));
        }
    }

    /// When the next one is due. Without one the task is over.
    fn next_due(&self) -> Option<Instant> {
        let mut waiting = self.lock();
        let next = waiting.due.values().min().copied();
        waiting.has_task = next.is_some();
        next
    }

    /// Takes one that is due.
    fn take_due(&self) -> Option<(Option<SessionKey>, String)> {
        let (now, due) = (Instant::now(), &mut self.lock().due);
        let resource = due.iter().find(|(_, due)| **due <= now)?.0.clone();
        due.remove(&resource);
        Some(resource)
    }

    /// Whether there is another resource of this session.
    pub(crate) fn has_session(&self, key: &SessionKey) -> bool {
        self.lock().due.keys().any(|(of, _)| of.as_ref() == Some(key))
    }

    fn lock(&self) -> MutexGuard<'_, UnsubscribeQueueInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn run_unsubscribes(upstream: Weak<Upstream>) {
    loop {
        let next = upstream.upgrade().and_then(|upstream| upstream.unsubscribe_queue.next_due());
        let Some(next) = next else { return };
        sleep_until(next).await;
        let Some(upstream) = upstream.upgrade() else { return };
        while let Some((key, uri)) = upstream.unsubscribe_queue.take_due() {
            upstream.unsubscribe(key.as_ref(), &uri).await;
        }
    }
}
