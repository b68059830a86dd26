//! The hosts that wait for changes.

use crate::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, Weak};

use tokio::sync::broadcast::Receiver;

use crate::registry::Announcement;
use crate::serve::http::mcp::streams::HttpHost;
use crate::server::Service;

/// The hosts that wait for changes. One task notifies them.
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

    /// Starts the task that announces changes, unless it runs already. It gets every change from now on, also those
    /// before it first runs.
    pub(crate) fn start(&self, spawn: impl FnOnce(Receiver<Announcement>)) {
        let mut inner = self.lock();
        if !inner.is_running {
            inner.is_running = true;
            spawn(self.service.registry().changes());
        }
    }

    /// Announces a change to every host, or that changes were missed.
    pub(crate) fn announce(&self, change: Option<&Announcement>) {
        self.listeners().iter().for_each(|host| host.announce(change));
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
