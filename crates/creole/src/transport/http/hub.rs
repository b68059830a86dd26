//! Tells conversations of changes, and forgets sessions that nobody uses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::conversation::Conversation;
use super::sessions::Sessions;
use crate::registry::Announcement;
use crate::server::Service;

/// The conversations that wait for changes, and one task that tells them.
pub(super) struct Hub {
    service: Service,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    last: u64,
    listeners: HashMap<u64, Weak<Conversation>>,
    runs: bool,
    draining: bool,
}

/// A conversation is told of changes for as long as this lives.
pub(super) struct Listening {
    hub: Arc<Hub>,
    key: u64,
}

impl Hub {
    pub(super) fn new(service: Service) -> Arc<Self> {
        Arc::new(Self { service, inner: Mutex::default() })
    }

    /// Tells this conversation of changes from now on.
    pub(super) fn listen(self: &Arc<Self>, conversation: &Arc<Conversation>) -> Listening {
        let mut inner = self.lock();
        inner.last += 1;
        let key = inner.last;
        inner.listeners.insert(key, Arc::downgrade(conversation));
        if inner.draining {
            conversation.end_listening();
        }
        Listening { hub: Arc::clone(self), key }
    }

    /// Starts the task, once there is somebody to tell.
    pub(super) fn start(self: &Arc<Self>, sessions: &Arc<Sessions>) {
        let mut inner = self.lock();
        if !inner.runs {
            inner.runs = true;
            let (hub, sessions) = (Arc::downgrade(self), Arc::downgrade(sessions));
            // From now on, and not from when the task first runs.
            tokio::spawn(run(self.service.registry().changes(), hub, sessions));
        }
    }

    /// Ends every stream of notifications, also those that are opened from now on.
    pub(super) fn drain(&self) {
        self.lock().draining = true;
        self.listeners().iter().for_each(|conversation| conversation.end_listening());
    }

    fn listeners(&self) -> Vec<Arc<Conversation>> {
        self.lock().listeners.values().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.hub.lock().listeners.remove(&self.key);
    }
}

/// Runs until the endpoint is gone.
async fn run(mut changes: Receiver<Announcement>, hub: Weak<Hub>, sessions: Weak<Sessions>) {
    let Some(begun) = sessions.upgrade().map(|sessions| sessions.begun()) else { return };
    loop {
        let Some(expiry) = sessions.upgrade().map(|sessions| sessions.expire()) else { return };
        let change = tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => Some(change),
                Err(RecvError::Lagged(_)) => None,
                Err(RecvError::Closed) => return,
            },
            () = sleep_until(expiry.unwrap_or_else(far_away)), if expiry.is_some() => continue,
            () = begun.notified() => continue,
        };
        let Some(hub) = hub.upgrade() else { return };
        for conversation in hub.listeners() {
            conversation.announce(change.as_ref());
        }
    }
}

fn far_away() -> Instant {
    Instant::now() + std::time::Duration::from_secs(86_400)
}
