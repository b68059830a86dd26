//! Queues resources without subscribers. The gateway unsubscribes after a delay, since many callers subscribe again at
//! once. One task per upstream serves all resources.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::sync::{MutexGuard, Weak};

use tokio::time::{Instant, sleep_until};

use crate::upstream::connections::pool::SessionKey;
use crate::upstream::{UNSUBSCRIBE_DELAY, Upstream};

/// Resources to unsubscribe from.
#[derive(Default)]
pub(crate) struct UnsubscribeQueue(Mutex<UnsubscribeQueueInner>);

#[derive(Default)]
struct UnsubscribeQueueInner {
    /// When to unsubscribe from each resource, by session. `None` is the gateway's own session.
    due: HashMap<(Option<SessionKey>, String), Instant>,
    has_task: bool,
}

impl UnsubscribeQueue {
    /// Unsubscribes from a resource after a delay, unless it has a subscriber again by then.
    pub(crate) fn add(&self, upstream: &Weak<Upstream>, key: Option<SessionKey>, uri: String) {
        let mut waiting = self.lock();
        waiting.due.insert((key, uri), Instant::now() + UNSUBSCRIBE_DELAY);
        if !waiting.has_task {
            waiting.has_task = true;
            tokio::spawn(run_unsubscribes(Weak::clone(upstream)));
        }
    }

    /// When the next resource is due. `None` ends the task.
    fn next_due(&self) -> Option<Instant> {
        let mut waiting = self.lock();
        let next = waiting.due.values().min().copied();
        waiting.has_task = next.is_some();
        next
    }

    /// Takes a resource that is due.
    fn take_due(&self) -> Option<(Option<SessionKey>, String)> {
        let (now, due) = (Instant::now(), &mut self.lock().due);
        let resource = due.iter().find(|(_, due)| **due <= now)?.0.clone();
        due.remove(&resource);
        Some(resource)
    }

    /// Whether another resource of this session is queued.
    pub(crate) fn has_session(&self, key: &SessionKey) -> bool {
        self.lock().due.keys().any(|(of, _)| of.as_ref() == Some(key))
    }

    fn lock(&self) -> MutexGuard<'_, UnsubscribeQueueInner> {
        self.0.lock()
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
