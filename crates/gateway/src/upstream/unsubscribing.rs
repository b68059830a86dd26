//! Resources that nobody watches any more. The server is told after a while, since many callers come back at once. One
//! task per upstream does that, however many resources there are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use tokio::time::{Instant, sleep_until};

use super::pool::Key;
use super::{LINGER, Upstream};

/// Resources to unsubscribe from.
#[derive(Default)]
pub(super) struct Unsubscribing(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// When to unsubscribe from each, by session: nothing is the gateway's own.
    due: HashMap<(Option<Key>, String), Instant>,
    has_task: bool,
}

impl Unsubscribing {
    /// Unsubscribes from a resource after a while, unless somebody watches it again by then.
    pub(super) fn add(&self, upstream: &Weak<Upstream>, key: Option<Key>, uri: String) {
        let mut waiting = self.lock();
        waiting.due.insert((key, uri), Instant::now() + LINGER);
        if !waiting.has_task {
            waiting.has_task = true;
            tokio::spawn(run(Weak::clone(upstream)));
        }
    }

    /// When the next one is due. Without one the task is over.
    fn next(&self) -> Option<Instant> {
        let mut waiting = self.lock();
        let next = waiting.due.values().min().copied();
        waiting.has_task = next.is_some();
        next
    }

    /// Takes one that is due.
    fn take_due(&self) -> Option<(Option<Key>, String)> {
        let (now, due) = (Instant::now(), &mut self.lock().due);
        let resource = due.iter().find(|(_, due)| **due <= now)?.0.clone();
        due.remove(&resource);
        Some(resource)
    }

    /// Whether there is another resource of this session.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.lock().due.keys().any(|(of, _)| of.as_ref() == Some(key))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn run(upstream: Weak<Upstream>) {
    loop {
        let next = upstream.upgrade().and_then(|upstream| upstream.unsubscribing.next());
        let Some(next) = next else { return };
        sleep_until(next).await;
        let Some(upstream) = upstream.upgrade() else { return };
        while let Some((key, uri)) = upstream.unsubscribing.take_due() {
            upstream.unsubscribe(key.as_ref(), &uri).await;
        }
    }
}
