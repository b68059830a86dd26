//! Announces changes to hosts, and expires unused sessions.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, Weak};

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use crate::registry::Announcement;
use crate::serve::http::mcp::sessions::Sessions;
use crate::serve::http::mcp::streams::HttpHost;
use crate::server::Service;

/// The hosts that wait for changes, and the one task that notifies them.
pub(crate) struct ChangeFanout {
    service: Service,
    inner: Mutex<FanoutState>,
}

#[derive(Default)]
struct FanoutState {
    last_key: u64,
    listeners: HashMap<u64, Weak<HttpHost>>,
    is_running: bool,
    is_draining: bool,
}

/// A host gets changes as long as this lives.
pub(crate) struct ChangeSubscription {
    fanout: Arc<ChangeFanout>,
    key: u64,
}

impl ChangeFanout {
    pub(crate) fn new(service: Service) -> Arc<Self> {
        Arc::new(Self { service, inner: Mutex::default() })
    }

    /// Announces changes to this host from now on.
    pub(crate) fn subscribe(self: &Arc<Self>, host: &Arc<HttpHost>) -> ChangeSubscription {
        let mut inner = self.lock();
        inner.last_key += 1;
        let key = inner.last_key;
        inner.listeners.insert(key, Arc::downgrade(host));
        if inner.is_draining {
            host.end_subscriptions();
        }
        ChangeSubscription { fanout: Arc::clone(self), key }
    }

    /// Starts the task, once there is a subscriber.
    pub(crate) fn start(self: &Arc<Self>, sessions: &Arc<Sessions>) {
        let mut inner = self.lock();
        if !inner.is_running {
            inner.is_running = true;
            let (hub, sessions) = (Arc::downgrade(self), Arc::downgrade(sessions));
            // Subscribed now, not when the task first runs.
            tokio::spawn(run_fanout(self.service.registry().changes(), hub, sessions));
        }
    }

    /// Ends every notification stream, also those that are opened from now on.
    pub(crate) fn drain(&self) {
        self.lock().is_draining = true;
        self.listeners().iter().for_each(|host| host.end_subscriptions());
    }

    fn listeners(&self) -> Vec<Arc<HttpHost>> {
        self.lock().listeners.values().filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, FanoutState> {
        self.inner.lock()
    }
}

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        self.fanout.lock().listeners.remove(&self.key);
    }
}

/// Runs until the endpoint is dropped.
async fn run_fanout(
    mut changes: Receiver<Announcement>,
    hub: Weak<ChangeFanout>,
    sessions: Weak<Sessions>,
) {
    let Some(begun) = sessions.upgrade().map(|sessions| sessions.first_session()) else { return };
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
        for host in hub.listeners() {
            host.announce(change.as_ref());
        }
    }
}

fn far_away() -> Instant {
    Instant::now() + std::time::Duration::from_secs(86_400)
}
