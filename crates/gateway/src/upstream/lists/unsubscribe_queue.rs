//! Queues resources without subscribers. The gateway unsubscribes after a delay, since many callers subscribe again at
//! once. One task per upstream serves all resources.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::sync::MutexGuard;
use std::time::Duration;

use tokio::time::Instant;

use crate::upstream::connections::session_key::SessionKey;

/// How long a subscription outlives its last subscriber, since many clients subscribe again at once.
pub(crate) const UNSUBSCRIBE_DELAY: Duration = Duration::from_secs(5);

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
    /// Queues a resource. Returns whether the caller must start the task that serves the queue.
    #[must_use]
    pub(crate) fn add(&self, key: Option<SessionKey>, uri: String) -> bool {
        let mut waiting = self.lock();
        waiting.due.insert((key, uri), Instant::now() + UNSUBSCRIBE_DELAY);
        !std::mem::replace(&mut waiting.has_task, true)
    }

    /// When the next resource is due. `None` ends the task.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let mut waiting = self.lock();
        let next = waiting.due.values().min().copied();
        waiting.has_task = next.is_some();
        next
    }

    /// Takes a resource that is due.
    pub(crate) fn take_due(&self) -> Option<(Option<SessionKey>, String)> {
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
